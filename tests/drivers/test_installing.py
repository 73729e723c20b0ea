"""Installations as users have them: what stands twice, what is left of an older release, what others lose."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from signet_conformance import engine, trace
from signet_conformance.drivers.installing import find_additions, find_leftovers, find_losses, has_installer
from signet_conformance.finding import Verdict
from signet_conformance.targets import load
from signet_conformance.trace.marks import ReinstalledMark, RemarkMark, marks_of

from .conftest import FIXTURES, Made, Recorded

HOOK = shlex.join([sys.executable, str(FIXTURES / "hook.py")])
SETTINGS = ".claude/settings.json"
TWICE = "each hook is sent twice (session-start 1 time, user-prompt-submit 1 time, session-end 1 time)"
OLD = "what the older release wrote is still there beside the new"
SAID = {
    "conforming": [],
    "beside-others": [],
    "copies-what-is-broken": [],
    "adds-again": [
        f"{TWICE}: installed once, claude-code 2.1.197 has the hooks of SessionStart, UserPromptSubmit and",
        f"{TWICE}: installed twice, claude-code 2.1.197 has 3 entries of /hooks/SessionStart, 2 after the first",
    ],
    "overwrites-others": [
        f"installed twice, settings of others are changed or gone: {SETTINGS}: /hooks/SessionStart/0 is gone"
    ],
    "deletes-what-names-it": [
        "installed twice, what the user wrote for the model is changed or gone: .claude/CLAUDE.md is gone"
    ],
    "leaves-old-words": [f"installed over 0.43.1, {OLD}: .claude/CLAUDE.md"],
    "leaves-old-hooks": [
        f"installed over 0.14.0, {OLD}: {SETTINGS}: /hooks/PreCompaction/*/hooks/*",
        f"installed over 0.1.101, {OLD}: {SETTINGS}: /mcpServers/signet/type",
    ],
    "loses-what-is-broken": [
        f"installed once, settings of others are changed or gone: {SETTINGS}, which cannot be parsed, is written anew"
    ],
}
"""What an installer does wrong, to the beginnings of what is said of it."""
# What is said of files does not depend on the program that wrote them: node stands for both where something is wrong.
INSTALLATIONS = [(mode, runtime) for mode in SAID for runtime in (["node"] if SAID[mode] else ["node", "bun"])]


@pytest.mark.parametrize(("mode", "runtime"), INSTALLATIONS, indirect=["runtime"])
def test_each_way_to_install(mode: str, made: Made, recorded: Recorded, runtime: str) -> None:
    """Beside other tools, twice, over older releases, over broken files: what is wrong is named, and nothing else."""
    module = str(FIXTURES / "settings_installer.mjs")
    target = made("claude-code", mode=mode, module=module, runtime=[runtime], capabilities=["session-start"])
    target.env["FIXTURE_HOOK"] = HOOK
    assert has_installer(target)
    (path,) = recorded(target, ["installed-again"])
    judged = engine.judge(trace.read(path)).judgements["SIG-LOAD-005"]
    said = [finding.message for finding in judged.findings if finding.verdict is Verdict.WARN]
    assert judged.verdict is (Verdict.WARN if SAID[mode] else Verdict.PASS), said
    assert [words for words in SAID[mode] if not any(message.startswith(words) for message in said)] == [], said
    ways = [(mark.how, mark.older) for mark in marks_of(trace.read(path), ReinstalledMark)]
    assert [way for way in ways if way[0] != "once"] == [
        ("again", None),
        *(("over", release) for release in ("0.43.1", "0.14.0", "0.1.101")),
    ]


def test_an_installer_that_writes_nothing_and_says_otherwise_is_remarked_on(
    made: Made, recorded: Recorded, runtime: str
) -> None:
    """Over read-only settings; no verdict rests on it."""
    module = str(FIXTURES / "settings_installer.mjs")
    target = made("claude-code", mode="gives-up-silently", module=module, runtime=[runtime])
    target.env["FIXTURE_HOOK"] = HOOK
    (path,) = recorded(target, ["installed-again"])
    said = [mark.text for mark in marks_of(trace.read(path), RemarkMark)]
    assert "the installer reports success but wrote nothing: the settings are read-only" in said
    assert engine.judge(trace.read(path)).judgements["SIG-LOAD-005"].verdict is Verdict.PASS


def test_only_what_is_older_is_installed_over(made: Made, recorded: Recorded, tmp_path: Path) -> None:
    """The setting `older` names a folder whose installer runs first; of the profile, the releases before this one."""
    text = (FIXTURES / "settings_installer.mjs").read_text()
    package = {"name": "@signet/connector-claude-code"}
    for folder, version, installer in (
        ("older/integrations/claude-code/connector", "0.13.1", text.replace('SessionEnd: "', 'Stop: "')),
        ("now", "0.13.9", text),
    ):
        (tmp_path / folder / "dist").mkdir(parents=True)
        (tmp_path / folder / "package.json").write_text(json.dumps({**package, "version": version}))
        (tmp_path / folder / "dist" / "index.js").write_text(installer)
    module = str(tmp_path / "now" / "dist" / "index.js")
    target = made("claude-code", module=module, older="older", capabilities=["session-start"])
    target.env["FIXTURE_HOOK"] = HOOK
    (path,) = recorded(target, ["installed-again"])
    over = {mark.older: mark.old for mark in marks_of(trace.read(path), ReinstalledMark) if mark.how == "over"}
    assert over == {"0.13.1": (".claude/settings.json: /hooks/Stop/*/hooks/*",), "0.1.101": ()}


HOOKS_INSTALLER = """
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
export class Connector {
  async install() {
    const file = `${homedir()}/.codex/hooks.json`;
    mkdirSync(`${homedir()}/.codex`, { recursive: true });
    let stood = {};
    try { stood = JSON.parse(readFileSync(file, "utf8")).hooks ?? {}; } catch {}
    const isOurs = ({ command }) => OURS.test(command);
    const hooks = {};
    for (const [event, name] of [["SessionStart", "session-start"], ["Stop", "session-end"]]) {
      const others = (stood[event] ?? []).filter((group) => !group.hooks?.some(isOurs));
      const command = `signet hook ${name} -H codex --codex-json`;
      hooks[event] = [...others, { hooks: [{ type: "command", command, timeout: 20 }] }];
    }
    writeFileSync(file, JSON.stringify({ hooks: { ...stood, ...hooks } }));
  }
}
"""


@pytest.mark.parametrize(
    ("ours", "knows"), [("^signet hook ", False), ("^(SIGNET_DAEMON_URL=\\S+ )?signet hook ", True)]
)
def test_hooks_that_were_installed_with_the_daemon_s_address_are_known_again(
    ours: str, knows: bool, made: Made, recorded: Recorded, tmp_path: Path
) -> None:
    """Their commands begin with it; an installer that does not recognise them writes its own beside them."""
    (tmp_path / "index.mjs").write_text(HOOKS_INSTALLER.replace("OURS", f"/{ours}/"))
    target = made("codex", module=str(tmp_path / "index.mjs"), capabilities=["session-start"])
    (path,) = recorded(target, ["installed-again"])
    over = {mark.older: mark.old for mark in marks_of(trace.read(path), ReinstalledMark) if mark.how == "over"}
    hooks = [f".codex/hooks.json: /hooks/{event}/*/hooks/*" for event in ("SessionStart", "Stop")]
    assert list(over["0.109"]) == ([] if knows else hooks)


PLUGIN_INSTALLER = """
import { mkdirSync, writeFileSync, existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
export class Connector {
  async install() {
    const folder = `${homedir()}/.config/opencode`, settings = `${folder}/opencode.json`;
    mkdirSync(`${folder}/plugins`, { recursive: true });
    writeFileSync(`${folder}/plugins/acme.MODE`, "export default 1;");
    if (!existsSync(settings) || "MODE" === "js") return;
    const data = JSON.parse(readFileSync(settings, "utf8"));
    if (!NAMES) return;
    writeFileSync(settings, JSON.stringify({ ...data, plugin: [...data.plugin, "./plugins/acme.MODE"] }));
  }
}
"""
UNLOADED = "opencode 1.18.33 does not accept .config/opencode/plugins/acme.mjs"
UNASKED = "in ~/.config/opencode only plugins/*.js and plugins/*.ts are loaded automatically"


@pytest.mark.parametrize(
    ("ending", "names", "said"),
    [
        ("mjs", "false", f"{UNLOADED}: {UNASKED}"),
        ("mjs", "true", f"{UNLOADED} if the user has no opencode.json yet: {UNASKED}"),
        ("js", "true", None),
    ],
)
def test_what_a_plugin_s_installer_leaves_is_held_against_its_host(
    ending: str, names: str, said: str | None, made: Made, recorded: Recorded, tmp_path: Path
) -> None:
    """A file that the host does not load unasked, and that no settings name, also where there are none yet."""
    installer = tmp_path / "integrations/opencode/connector/dist/index.js"
    installer.parent.mkdir(parents=True)
    installer.write_text(PLUGIN_INSTALLER.replace("MODE", ending).replace("NAMES", names))
    module = str(FIXTURES / "opencode_plugin.mjs")
    (path,) = recorded(made("opencode", module=module, capabilities=["session-start"]), ["installed-again"])
    judged = engine.judge(trace.read(path)).judgements["SIG-LOAD-002"]
    found = [finding.message for finding in judged.findings if finding.verdict is Verdict.FAIL]
    assert found == [] if said is None else [message for message in found if message.startswith(said)] == found != []


def test_connectors_without_an_installer_are_not_installed(tmp_path: Path) -> None:
    """A program of the author's, an adapter over HTTP, a plugin whose installer is not built, a file of hooks."""
    assert [name for name in ("reference", "llama-cpp", "pi", "mcp") if has_installer(load(name, tmp_path))] == []


def test_what_of_others_is_lost() -> None:
    """Members and items that are gone or another; what was added in a list or an object is none."""
    before = {"a.json": {"x": 1, "rows": [{"n": 1, "inner": [1]}, {"n": 2}]}, "b.yaml": "one: 1\ntwo: 2\n", "c.js": "x"}
    rows = [{"n": 3}, {"n": 1, "inner": [0, 1]}]
    after = {"a.json": {"x": 2, "new": 0, "rows": rows}, "b.yaml": "two: 2\n  three: 3\n"}
    told = ["a.json: /x is another one", "a.json: /rows/1 is gone", "b.yaml: the line `one: 1`", "c.js is gone"]
    assert find_losses(before, after) == told
    assert find_losses(before, before) == []


def test_what_a_second_installation_adds() -> None:
    """A list that is longer, lines that stand there already; a file that is rewritten alike is none."""
    first = {"a.json": {"hooks": {"Stop": [{"hooks": [1]}]}}, "b.yaml": "memory:\n  provider: acme\n", "c.json": [1]}
    again = {"a.json": {"hooks": {"Stop": [{"hooks": [1, 1]}]}}, "b.yaml": first["b.yaml"] * 2, "c.json": [2]}
    assert find_additions(first, again) == [
        "2 entries of /hooks/Stop/*/hooks, 1 after the first installation, in a.json",
        "the line `memory:` again in b.yaml",
    ]
    assert find_additions(first, first) == []


def test_what_is_left_of_an_older_release() -> None:
    """Its entries that a fresh installation does not write; a member that holds another value now is none."""
    former = {"a.json": {"old": 1, "kept": 2, "on": True}, "b.js": "old"}
    after = {"a.json": {"old": 1, "kept": 2, "on": False}, "b.js": "old"}
    assert find_leftovers(former, after, {"a.json": {"kept": 2}}) == ["a.json: /old", "b.js"]
    assert find_leftovers(former, {"a.json": {"kept": 2}}, {"a.json": {"kept": 2}}) == []
