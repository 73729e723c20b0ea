"""What plugin hosts take of a plugin, and what they refuse: its manifest, its module, what it registers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from signet_conformance import trace
from signet_conformance.finding import Verdict
from signet_conformance.trace.marks import InstalledMark, LoadedMark, RegisteredMark, marks_of

from .conftest import FIXTURES, PROMPT, START, Broken, Made, Recorded, greeted, of_the_host, performed

MODULE = str(FIXTURES / "openclaw_plugin.mjs")


def copied_plugin(folder: Path) -> str:
    """The module of a plugin for OpenClaw, copied with what it imports into a folder that a package may lie around."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("openclaw_plugin.mjs", "tiny.mjs"):
        (folder / name).write_bytes((FIXTURES / name).read_bytes())
    return str(folder / "openclaw_plugin.mjs")


@pytest.mark.parametrize(("mode", "heard"), [("conforming", True), ("full-only", False)])
@of_the_host
def test_runs_know_the_registration_for_discovery(
    mode: str, heard: bool, runtime: str, made: Made, tmp_path: Path
) -> None:
    """OpenClaw 2026.9.6 registers for runs apart: a plugin that registers only in the mode full hears of no run."""
    target = made("openclaw", mode=mode, face="openclaw-2026.9.6", module=MODULE, runtime=runtime)
    _, turn = performed(target, tmp_path / "home", [START, PROMPT])
    assert ("before_prompt_build" in {call["event"] for call in turn["calls"]}) is heard


@pytest.mark.parametrize("named", [True, False])
@of_the_host
def test_tools_that_the_manifest_names(named: bool, runtime: str, made: Made, tmp_path: Path) -> None:
    """A tool that the plugin's manifest does not name is refused: the greeting says so, and the run goes on with it."""
    folder = tmp_path / "plugin"
    module = copied_plugin(folder / "dist")
    manifest = {"id": "tiny-memory", "contracts": {"tools": ["memory_get"]}} if named else {"id": "tiny-memory"}
    (folder / "openclaw.plugin.json").write_text(json.dumps(manifest))
    target = made("openclaw", face="openclaw-2026.9.6", module=module, runtime=runtime)
    tool = {"step": "tool", "session": "s1", "tool": "memory_get", "arguments": {"id": "m-1"}}
    about, (_, answer) = greeted(target, tmp_path / "home", [START, tool])
    (installed,) = about["installed"]
    assert (installed["file"], installed["accepted"]) == ("openclaw.plugin.json", named)
    assert named or "memory_get under contracts.tools" in installed["words"]
    assert answer["content"] == {"id": "m-1"}


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ("{", "failed to parse plugin manifest: "),
        ("[]", "plugin manifest must be an object"),
        ("{}", "plugin manifest requires id"),
        ('{"id": "tiny"}', 'plugin id mismatch (config uses "tiny", export uses "'),
    ],
)
@of_the_host
def test_manifest_that_openclaw_does_not_take(
    manifest: str, words: str, runtime: str, made: Made, tmp_path: Path
) -> None:
    """It is told with the host's words, and the run goes on."""
    module = copied_plugin(tmp_path)
    (tmp_path / "openclaw.plugin.json").write_text(manifest)
    target = made("openclaw", module=module, runtime=runtime)
    about, _ = greeted(target, tmp_path / "home", [])
    (row,) = about["installed"]
    assert (row["file"], row["accepted"], row["words"].startswith(words)) == ("openclaw.plugin.json", False, True)


@pytest.mark.parametrize(
    ("about", "manifest", "is_refused"),
    [
        ({"openclaw": {"extensions": ["./dist/openclaw_plugin.mjs"]}}, None, True),
        ({"peerDependencies": {"openclaw": ">=2026.2"}}, None, True),
        ({"peerDependencies": {"openclaw": ">=2026.2"}}, "assets/openclaw.plugin.json", False),
        ({"name": "tools of ours", "dependencies": {"openclaw": "2026.6.1"}}, None, False),
        (None, None, False),
    ],
    ids=["extension", "peer", "packed from another folder", "another package", "a file"],
)
@of_the_host
def test_package_for_openclaw_without_a_manifest(
    about: Mapping[str, Any] | None, manifest: str | None, is_refused: bool, runtime: str, made: Made, tmp_path: Path
) -> None:
    """OpenClaw refuses it. A plugin outside such a package may still get its manifest when it is packed."""
    (tmp_path / "assets").mkdir()
    module = copied_plugin(tmp_path / "dist")
    if about is not None:
        (tmp_path / "package.json").write_text(json.dumps({"type": "module", **about}))
    if manifest is not None:
        (tmp_path / manifest).write_text('{"id": "tiny-memory"}')
    target = made("openclaw", module=module, runtime=runtime)
    greeting, _ = greeted(target, tmp_path / "home", [])
    refused = {
        "file": "openclaw.plugin.json",
        "accepted": False,
        "words": "plugin manifest not found: openclaw.plugin.json",
    }
    assert greeting.get("installed", []) == ([refused] if is_refused else [])


def test_plugin_that_cannot_be_loaded_is_a_mark(runtime: str, made: Made, recorded: Recorded) -> None:
    """The recording says that the host could not load the connector, in the host's words; the kit does not fail."""
    code = "export default { id: 'x', register() { throw new Error('no acme here'); } };"
    (path,) = recorded(made("openclaw", code=code, runtime=runtime), ["plain"])
    (loaded,) = marks_of(trace.read(path), LoadedMark)
    assert (loaded.ok, loaded.host) == (False, "openclaw")
    assert "register(api) threw: Error: no acme here" in str(loaded.words)


REFUSED = [
    (
        "api.on('session:compact:before', () => {}); api.on('before_compaction', () => {})",
        "a handler of session:compact:",
    ),
    ("api.registerTool({ name: 'a', execute() {} })", "the tool a"),
    ("api.registerTool({ name: 'a', parameters: {} })", "the tool a"),
    ("for (const _ of [1, 2]) api.registerTool({ name: 'a', parameters: {}, execute() {} })", "the tool a"),
]


@pytest.mark.parametrize(("body", "file"), REFUSED, ids=["event", "schema", "execute", "twice"])
@of_the_host
def test_what_openclaw_refuses_of_a_plugin(body: str, file: str, runtime: str, made: Made, tmp_path: Path) -> None:
    """An event that it does not know, a tool without a schema or a function, and a second one of the same name."""
    code = f"export default {{ id: 'x', register(api) {{ {body}; api.on('agent_end', () => {{}}); }} }};"
    about, _ = greeted(made("openclaw", code=code, runtime=runtime), tmp_path / "home", [])
    (row,) = about["installed"]
    assert (row["accepted"], row["file"].startswith(file)) == (False, True)
    assert row.get("elsewhere") == ("before_compaction" if "event" in row else None)
    (taken,) = about["registered"]
    assert taken["refused"] == 1


EMPTY = ["export default () => ({ name: 'x', tools: {} });", "export default { id: 'x', register() {} };"]


@pytest.mark.parametrize("code", EMPTY, ids=["a factory", "an empty register"])
@of_the_host
def test_plugin_that_registers_nothing_is_found_out(code: str, runtime: str, made: Made, broken: Broken) -> None:
    """It is loaded, and nothing of it is ever called."""
    assert broken(made("openclaw", code=code, runtime=runtime), ("plain",)) == {"SIG-LOAD-001": Verdict.FAIL}


@of_the_host
def test_registration_that_leaves_out_the_runs_is_remarked_on(runtime: str, made: Made, tmp_path: Path) -> None:
    """A plugin that registers nothing in the mode of the runs is told so: it explains why nothing ever comes."""
    target = made("openclaw", mode="full-only", face="openclaw-2026.9.6", module=MODULE, runtime=runtime)
    about, _ = greeted(target, tmp_path / "home", [])
    assert "registers nothing there" in about["unheard"][0]
    refused = {row["file"]: row.get("minor", False) for row in about["installed"]}
    assert refused == {
        "the registration in the mode discovery": False, "the registration in the mode tool-discovery": True
    }  # fmt: skip
    assert [row["mode"] for row in about["registered"]] == ["full", "discovery"]


TWICE = "export default { register(api) { if (api.registrationMode !== 'REFUSED') api.on('agent_end', () => {}); } }"


@pytest.mark.parametrize(("refused", "doubles"), [("cli-metadata", False), ("nothing", True)])
@of_the_host
def test_registration_for_command_lines_that_doubles(
    refused: str, doubles: bool, runtime: str, made: Made, tmp_path: Path
) -> None:
    """OpenClaw 2026.3 registers a plugin once more for command lines: one that registers it all again is told so."""
    target = made("openclaw", face="openclaw-2026.3", code=TWICE.replace("REFUSED", refused), runtime=runtime)
    about, _ = greeted(target, tmp_path / "home", [])
    assert [row["file"] for row in about["installed"]] == (["a second registration"] if doubles else [])
    assert about["registered"] == [{"handlers": 1, "tools": 0, "others": 0, "refused": 0}]


HOOKS = "async () => ({ event: async () => {}, 'chat.message': async () => {}, 'chat.done': async () => {} })"
LOADED = [
    (f"export const A = {HOOKS}; export default A;", 1),
    (f"export default {{ id: 'x', server: {HOOKS} }}; export const helper = 'not looked at';", 1),
    (f"export const A = {HOOKS}; export const B = {HOOKS};", 2),
]


@pytest.mark.parametrize(
    ("code", "plugins"), LOADED, ids=["a function, once", "an object with server()", "two functions"]
)
def test_plugins_of_a_module_for_opencode(
    code: str, plugins: int, runtime: str, made: Made, recorded: Recorded
) -> None:
    """Each function that it exports is one, or its default export holds one; a hook that is never called is told."""
    (plain,) = map(trace.read, recorded(made("opencode", code=code, runtime=runtime), ["plain"]))
    (taken,) = marks_of(plain, RegisteredMark)
    assert (taken.handlers, taken.refused) == (2 * plugins, plugins)
    files = [mark.file for mark in marks_of(plain, InstalledMark)]
    assert files == ["a handler of chat.done", *(["a second plugin"] if plugins > 1 else [])]


NOT_LOADED = [
    (f"export const A = {HOOKS}; export const VERSION = '1.0';", "Plugin export is not a function"),
    (f"export default {{ server: {HOOKS} }};", "a path plugin must export id"),
    ("export default { id: 'x' };", "the plugin must default export an object with server()"),
    ("export default { id: 'x', server: {} };", "the plugin has invalid server export"),
]


@pytest.mark.parametrize(("code", "words"), NOT_LOADED)
def test_module_that_opencode_does_not_load(
    code: str, words: str, runtime: str, made: Made, recorded: Recorded
) -> None:
    """It says why, and calls nothing of it."""
    (plain,) = map(trace.read, recorded(made("opencode", code=code, runtime=runtime), ["plain"]))
    (loaded,) = marks_of(plain, LoadedMark)
    assert (loaded.ok, loaded.words) == (False, words)


@of_the_host
def test_what_pi_does_not_take(runtime: str, made: Made, recorded: Recorded) -> None:
    """An event that it never fires, unless another release does; a tool without a field is taken as it is."""
    events = "for (const one of ['session_start', 'session_switch', 'turn_done']) pi.on(one, () => {});"
    tool = "pi.registerTool({ name: 'memory_store', parameters: { type: 'object', properties: {} }, execute() {} });"
    code = f"export default (pi) => {{ {events} {tool} }};"
    (plain,) = map(trace.read, recorded(made("pi", code=code, runtime=runtime, tools={}), ["plain"]))
    assert [(mark.file, mark.formerly, mark.minor) for mark in marks_of(plain, InstalledMark)] == [
        ("the tool memory_store", False, True),
        ("a handler of session_switch", True, False),
        ("a handler of turn_done", False, False),
    ]
    (taken,) = marks_of(plain, RegisteredMark)
    assert (taken.handlers, taken.tools, taken.others, taken.refused) == (1, 1, 0, 2)


@of_the_host
def test_a_plugin_that_is_switched_off_is_not_told_of_modes(runtime: str, made: Made, tmp_path: Path) -> None:
    """It registers nothing in any mode, and so nothing is amiss with one of them."""
    on = "if (process.env.SIGNET_BYPASS !== '1') api.on('agent_end', () => {});"
    code = f"export default {{ id: 'acme', register(api) {{ {on} }} }};"
    target = made("openclaw", code=code, runtime=runtime, face="openclaw-2026.9.6")
    off, _ = greeted(target, tmp_path / "off", [], SIGNET_BYPASS="1")
    assert not off.get("unheard")
    assert [one["handlers"] for one in off["registered"]] == [0, 0]
