"""Plugin hosts: a conforming connector passes in each, a broken one is found out, a host is what the real one was."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance import engine, trace
from signet_conformance.finding import Verdict
from signet_conformance.reports.remarks import remarks
from signet_conformance.trace.marks import InstalledMark, LoadedMark, RegisteredMark, marks_of
from signet_conformance.trace.recordings import recordings_in

from .conftest import FIXTURES, PROMPT, SCENARIOS, START, Broken, Made, Recorded, greeted, performed

MODULE = str(FIXTURES / "openclaw_plugin.mjs")
AGENT = {"SIG-AGENT-001": Verdict.FAIL, "SIG-AGENT-002": Verdict.FAIL}
PROMPT_TEXT = {"SIG-PROMPT-001": Verdict.FAIL, "SIG-PROMPT-002": Verdict.FAIL}
HOSTS = [
    ("openclaw", "openclaw_plugin.mjs", {}, {"misnames": PROMPT_TEXT}),
    ("openclaw", "openclaw_plugin.mjs", {"face": "openclaw-2026.9.6"}, {"misnames": PROMPT_TEXT}),
    ("opencode", "opencode_plugin.mjs", {}, {"drops-agent": AGENT}),
    ("pi", "pi_extension.mjs", {"harness": "pi"}, {"drops-agent": AGENT, "misnames": PROMPT_TEXT}),
    ("pi", "pi_extension.mjs", {"face": "pi-0.54"}, {}),
    ("sdk", "sdk_client.mjs", {"agents": ["atlas-agent"]}, {"drops-agent": AGENT, "misnames": PROMPT_TEXT}),
    ("oh-my-pi", "pi_extension.mjs", {"harness": "pi"}, {"drops-agent": AGENT}),
]
TAKEN = {
    ("openclaw", None): ["openclaw 2026.6.1 took 5 handlers and 1 tool"],
    ("openclaw", "openclaw-2026.9.6"): [
        "openclaw 2026.9.6 took 5 handlers and 1 tool in the mode full; 5 handlers and 1 tool in the mode discovery"
    ],
    ("opencode", None): ["opencode 1.18.33 took 5 handlers and 0 tools"],
    ("pi", None): ["pi 0.73.1 took 5 handlers and 0 tools, and refused 1 more"],
    ("pi", "pi-0.54"): ["pi 0.54.2 took 5 handlers and 0 tools, and refused 1 more"],
    ("sdk", None): [],
    ("oh-my-pi", None): ["oh-my-pi 13.19.0 took 6 handlers and 0 tools"],
}
"""What is remarked of a connector that conforms, by its host and the release of it that is named."""
# Which breach is found in a trace does not depend on the program that ran the plugin, nor does the release of the host
# that is played: node stands for both there.
CASES = [
    pytest.param(runtime, name, module, own, mode, expected, id=f"{runtime}-{name}-{own.get('face', 'default')}-{mode}")
    for name, module, own, breaches in HOSTS
    for mode, expected in {"conforming": {}, **breaches}.items()
    for runtime in (["node", "bun"] if mode == "conforming" and "face" not in own else ["node"])
]
of_the_host = pytest.mark.parametrize("runtime", ["node"], indirect=True)
"""What a host takes of a plugin, and when it calls it, is decided by the kit's own code: one program shows it."""


@pytest.mark.parametrize(("runtime", "name", "module", "own", "mode", "expected"), CASES, indirect=["runtime"])
def test_plugin_host(
    runtime: str,
    name: str,
    module: str,
    own: Mapping[str, Any],
    mode: str,
    expected: Mapping[str, Verdict],
    made: Made,
    broken: Broken,
    tmp_path: Path,
) -> None:
    """A whole connector breaks nothing, one that drops its agent or misnames the prompt just what says so.

    Of one that fails open nothing is remarked, faults or not, but what its host took.
    """
    target = made(name, mode=mode, module=str(FIXTURES / module), runtime=runtime, **own)
    assert broken(target, SCENARIOS if mode == "conforming" else ("compaction",)) == expected
    if mode == "conforming":
        told = remarks(trace.read(path) for path in recordings_in(tmp_path / "traces"))
        # How long the user waits is for the machine to say.
        assert [text for text in told if "made the user wait" not in text] == TAKEN[name, own.get("face")]


@of_the_host
@pytest.mark.parametrize(
    ("name", "module"),
    [("pi", "pi_extension.mjs"), ("oh-my-pi", "pi_extension.mjs"), ("openclaw", "openclaw_plugin.mjs")],
)
@pytest.mark.parametrize(("mode", "verdict"), [("conforming", Verdict.PASS), ("tells-tools", Verdict.WARN)])
def test_what_tools_gave_back_stands_in_the_conversation(
    name: str, module: str, mode: str, verdict: Verdict, runtime: str, made: Made, recorded: Recorded
) -> None:
    """A plugin that tells it as the user's words in its transcript is found out; another one is not blamed."""
    target = made(name, mode=mode, module=str(FIXTURES / module), runtime=runtime)
    (tools,) = recorded(target, ["tools"])
    assert engine.judge(trace.read(tools)).verdicts["SIG-END-013"] is verdict


@pytest.mark.parametrize(("mode", "verdict"), [("conforming", Verdict.PASS), ("asks-late", Verdict.WARN)])
def test_messages_of_a_deleted_session_are_gone(
    mode: str, verdict: Verdict, runtime: str, made: Made, recorded: Recorded
) -> None:
    """OpenCode tells of a deletion afterwards: a plugin that asks for the conversation then ends without it."""
    target = made("opencode", mode=mode, module=str(FIXTURES / "opencode_plugin.mjs"), runtime=runtime)
    (plain,) = recorded(target, ["plain"])
    judged = engine.judge(trace.read(plain))
    assert judged.verdicts["SIG-END-003"] is verdict


def test_handler_that_throws_stops_no_turn(runtime: str, made: Made, tmp_path: Path) -> None:
    """The turn goes on, and the answer tells which handler threw what."""
    target = made("openclaw", mode="throws", module=MODULE, runtime=runtime)
    _, turn = performed(target, tmp_path / "home", [START, PROMPT])
    assert turn["turn"] is True
    (noted,) = [call for call in turn["calls"] if call["event"] == "before_prompt_build"]
    assert "a plugin that throws" in noted["thrown"]


@pytest.mark.parametrize(
    ("mode", "takes_place", "lost"),
    [
        ("throws-at-the-message", False, [True]),
        ("throws-at-the-messages", False, [True]),
        ("throws-at-the-system", False, [None, True]),
        ("numbers-the-system", False, [True]),
        ("throws-at-the-title", True, [None]),
    ],
)
def test_plugin_of_opencode_that_throws_loses_the_turn(
    mode: str, takes_place: bool, lost: list[bool | None], runtime: str, made: Made, tmp_path: Path
) -> None:
    """OpenCode awaits what its plugins do to a turn and catches nothing; the title of a session is no turn."""
    target = made("opencode", mode=mode, module=str(FIXTURES / "opencode_plugin.mjs"), runtime=runtime)
    _, turn = performed(target, tmp_path / "home", [START, PROMPT])
    assert turn["turn"] is takes_place
    assert [call.get("lost") for call in turn["calls"] if "thrown" in call] == lost


@pytest.mark.parametrize(
    ("mode", "events"),
    [
        ("throws-at-the-message", ["session.error"]),
        ("throws-at-the-messages", ["session.status", "session.idle", "session.error"]),
        ("throws-at-the-system", ["session.error", *["session.status", "session.idle"] * 2]),
        ("numbers-the-system", ["session.error", *["session.status", "session.idle"] * 2]),
    ],
)
def test_what_opencode_tells_of_a_lost_turn(
    mode: str, events: Sequence[str], runtime: str, made: Made, tmp_path: Path
) -> None:
    """As observed in OpenCode 1.18.33: idle before the error, after it or never."""
    target = made("opencode", mode=mode, module=str(FIXTURES / "opencode_plugin.mjs"), runtime=runtime)
    _, turn = performed(target, tmp_path / "home", [START, PROMPT])
    told = [call["event"].removeprefix("event ") for call in turn["calls"] if call["event"].startswith("event session")]
    told = [name for name in told if name != "session.updated"]
    assert told[-len(events) :] == events


@pytest.mark.parametrize(
    ("mode", "requirement"),
    [
        ("throws-at-the-message", "SIG-LOAD-001"),
        ("throws-at-the-system", "SIG-LOAD-001"),
        ("throws-at-compacting", None),
    ],
)
def test_plugin_of_opencode_that_loses_turns_is_found_out(
    mode: str, requirement: str | None, made: Made, broken: Broken
) -> None:
    """A handler takes a turn away; what becomes of a compaction nobody knows."""
    target = made("opencode", mode=mode, module=str(FIXTURES / "opencode_plugin.mjs"), runtime="node")
    assert (broken(target, ("compaction",)).get("SIG-LOAD-001") is Verdict.FAIL) is (requirement is not None)


def test_handler_that_throws_is_noted(runtime: str, made: Made, broken: Broken, tmp_path: Path) -> None:
    """The error that keeps a connector from sending anything is what a reader sees, with its place in the code."""
    broken(made("openclaw", mode="throws", module=MODULE, runtime=runtime), ("plain", "daemon-refuses"))
    traces = [trace.read(path) for path in recordings_in(tmp_path / "traces")]
    (note,) = [text for text in remarks(traces) if text.startswith("before_prompt_build")]
    assert note.startswith("before_prompt_build: threw, in 8 steps of 2 scenarios, also without a fault; the first: ")
    assert re.search(r"step \d prompt: Error: a plugin that throws at .*openclaw_plugin\.mjs:\d+", note)


@of_the_host
def test_tool_that_the_connector_lacks_is_skipped(runtime: str, made: Made, tmp_path: Path) -> None:
    """A step without a counterpart is answered with a reason, one with a counterpart with its content."""
    target = made("openclaw", module=MODULE, runtime=runtime)
    tool = {"step": "tool", "session": "s1", "arguments": {"id": "m-1"}}
    steps = [START, {**tool, "tool": "memory_search"}, {**tool, "tool": "memory_get"}]
    _, lacking, known = performed(target, tmp_path / "home", steps)
    assert lacking == {"skipped": "the connector has no tool memory_search"}
    assert known["content"] == {"id": "m-1"}


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
    (folder / "dist").mkdir(parents=True)
    for name in ("openclaw_plugin.mjs", "tiny.mjs"):
        (folder / "dist" / name).write_bytes((FIXTURES / name).read_bytes())
    manifest = {"id": "tiny-memory", "contracts": {"tools": ["memory_get"]}} if named else {"id": "tiny-memory"}
    (folder / "openclaw.plugin.json").write_text(json.dumps(manifest))
    module = str(folder / "dist" / "openclaw_plugin.mjs")
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
    for name in ("openclaw_plugin.mjs", "tiny.mjs"):
        (tmp_path / name).write_bytes((FIXTURES / name).read_bytes())
    (tmp_path / "openclaw.plugin.json").write_text(manifest)
    target = made("openclaw", module=str(tmp_path / "openclaw_plugin.mjs"), runtime=runtime)
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
    for folder in ("dist", "assets"):
        (tmp_path / folder).mkdir()
    for name in ("openclaw_plugin.mjs", "tiny.mjs"):
        (tmp_path / "dist" / name).write_bytes((FIXTURES / name).read_bytes())
    if about is not None:
        (tmp_path / "package.json").write_text(json.dumps({"type": "module", **about}))
    if manifest is not None:
        (tmp_path / manifest).write_text('{"id": "tiny-memory"}')
    target = made("openclaw", module=str(tmp_path / "dist" / "openclaw_plugin.mjs"), runtime=runtime)
    greeting, _ = greeted(target, tmp_path / "home", [])
    refused = {
        "file": "openclaw.plugin.json",
        "accepted": False,
        "words": "plugin manifest not found: openclaw.plugin.json",
    }
    assert greeting.get("installed", []) == ([refused] if is_refused else [])


def test_plugin_that_cannot_be_loaded_is_a_mark(runtime: str, made: Made, recorded: Recorded, tmp_path: Path) -> None:
    """A run of it is no failure of the kit: the recording says that the host could not load it, and in which words."""
    module = tmp_path / "broken.mjs"
    module.write_text("export default { id: 'x', register() { throw new Error('no acme here'); } };")
    target = made("openclaw", module=str(module), runtime=runtime)
    (path,) = recorded(target, ["plain"])
    (loaded,) = marks_of(trace.read(path), LoadedMark)
    assert (loaded.ok, loaded.host) == (False, "openclaw")
    assert "register(api) threw: Error: no acme here" in str(loaded.words)


@pytest.mark.parametrize(
    ("face", "verdict"),
    [
        ("openclaw-2026.3", Verdict.WARN),
        ("openclaw-2026.6.1", Verdict.PASS),
        ("openclaw-2026.9.6", Verdict.PASS),
    ],
)
@of_the_host
def test_what_openclaw_keeps_of_injected_text(
    face: str, verdict: Verdict, runtime: str, made: Made, recorded: Recorded
) -> None:
    """Releases to 2026.3 keep it in the history, which this plugin hands over; later ones keep the bare prompt."""
    (path,) = recorded(made("openclaw", face=face, module=MODULE, runtime=runtime), ["plain"])
    judged = engine.judge(trace.read(path), frozenset({"SIG-PROMPT-007"}))
    assert judged.judgements["SIG-PROMPT-007"].verdict is verdict


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
    module = tmp_path / "refused.mjs"
    module.write_text(f"export default {{ id: 'x', register(api) {{ {body}; api.on('agent_end', () => {{}}); }} }};")
    about, _ = greeted(made("openclaw", module=str(module), runtime=runtime), tmp_path / "home", [])
    (row,) = about["installed"]
    assert (row["accepted"], row["file"].startswith(file)) == (False, True)
    assert row.get("elsewhere") == ("before_compaction" if "event" in row else None)
    (taken,) = about["registered"]
    assert taken["refused"] == 1


EMPTY = ["export default () => ({ name: 'x', tools: {} });", "export default { id: 'x', register() {} };"]


@pytest.mark.parametrize("text", EMPTY, ids=["a factory", "an empty register"])
@of_the_host
def test_plugin_that_registers_nothing_is_found_out(
    text: str, runtime: str, made: Made, broken: Broken, tmp_path: Path
) -> None:
    """It is loaded, and nothing of it is ever called."""
    module = tmp_path / "empty.mjs"
    module.write_text(text)
    assert broken(made("openclaw", module=str(module), runtime=runtime), ("plain",)) == {"SIG-LOAD-001": Verdict.FAIL}


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
    module = tmp_path / "twice.mjs"
    module.write_text(TWICE.replace("REFUSED", refused))
    target = made("openclaw", face="openclaw-2026.3", module=str(module), runtime=runtime)
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
    ("text", "plugins"), LOADED, ids=["a function, once", "an object with server()", "two functions"]
)
def test_plugins_of_a_module_for_opencode(
    text: str, plugins: int, runtime: str, made: Made, recorded: Recorded, tmp_path: Path
) -> None:
    """Each function that it exports is one, or its default export holds one; a hook that is never called is told."""
    module = tmp_path / "plugins.mjs"
    module.write_text(text)
    (plain,) = map(trace.read, recorded(made("opencode", module=str(module), runtime=runtime), ["plain"]))
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


@pytest.mark.parametrize(("text", "words"), NOT_LOADED)
def test_module_that_opencode_does_not_load(
    text: str, words: str, runtime: str, made: Made, recorded: Recorded, tmp_path: Path
) -> None:
    """It says why, and calls nothing of it."""
    module = tmp_path / "plugins.mjs"
    module.write_text(text)
    (plain,) = map(trace.read, recorded(made("opencode", module=str(module), runtime=runtime), ["plain"]))
    (loaded,) = marks_of(plain, LoadedMark)
    assert (loaded.ok, loaded.words) == (False, words)


@of_the_host
def test_what_pi_does_not_take(runtime: str, made: Made, recorded: Recorded, tmp_path: Path) -> None:
    """An event that it never fires, unless another release does; a tool without a field is taken as it is."""
    module = tmp_path / "extension.mjs"
    events = "for (const one of ['session_start', 'session_switch', 'turn_done']) pi.on(one, () => {});"
    tool = "pi.registerTool({ name: 'memory_store', parameters: { type: 'object', properties: {} }, execute() {} });"
    module.write_text(f"export default (pi) => {{ {events} {tool} }};")
    (plain,) = map(trace.read, recorded(made("pi", module=str(module), runtime=runtime, tools={}), ["plain"]))
    assert [(mark.file, mark.formerly, mark.minor) for mark in marks_of(plain, InstalledMark)] == [
        ("the tool memory_store", False, True),
        ("a handler of session_switch", True, False),
        ("a handler of turn_done", False, False),
    ]
    (taken,) = marks_of(plain, RegisteredMark)
    assert (taken.handlers, taken.tools, taken.others, taken.refused) == (1, 1, 0, 2)


THROWS = {
    "pi": "export default (pi) => pi.registerTool({{ name: 'memory_get', parameters: {schema}, execute: {run} }});",
    "openclaw": (
        "export default {{ id: 'acme', register(api) {{ api.on('agent_end', () => {{}}); "
        "api.registerTool({{ name: 'memory_get', parameters: {schema}, execute: {run} }}); }} }};"
    ),
    "opencode": (
        "export const Acme = async () => ({{ tool: {{ memory_get: {{ args: {{ id: {{}} }}, execute: {run} }} }} }});"
    ),
}
GET = {"step": "tool", "session": "s1", "tool": "memory_get", "arguments": {"id": "m1"}}


@of_the_host
@pytest.mark.parametrize("name", THROWS)
@pytest.mark.parametrize(
    ("error", "noted"),
    [
        ("new Error('nothing is stored under m1')", False),
        ("new TypeError('fetch failed', { cause: new Error('refused') })", False),
        ("undefined.id", True),
    ],
)
def test_a_tool_throws_to_tell_of_a_failure(
    name: str, error: str, noted: bool, runtime: str, made: Made, tmp_path: Path
) -> None:
    """It is the only way to these harnesses' own mark of failure; a mistake in the code is noted all the same."""
    module = tmp_path / "plugin.mjs"
    schema = "{ type: 'object', properties: { id: { type: 'string' } } }"
    module.write_text(THROWS[name].format(schema=schema, run=f"async () => {{ throw {error}; }}"))
    target = made(name, module=str(module), runtime=runtime, tools={}, capabilities=["memory-get"])
    *_, got = performed(target, tmp_path / "home", [START, {**PROMPT, "more": True}, GET])
    thrown = [call["event"] for call in got.get("calls", ()) if "thrown" in call]
    assert thrown == (["tool memory_get"] if noted else [])
    if not noted:
        assert not got.get("done")
        assert "nothing is stored" in str(got) or "fetch failed" in str(got)


@of_the_host
def test_a_plugin_that_is_switched_off_is_not_told_of_modes(runtime: str, made: Made, tmp_path: Path) -> None:
    """It registers nothing in any mode, and so nothing is amiss with one of them."""
    module = tmp_path / "plugin.mjs"
    on = "if (process.env.SIGNET_BYPASS !== '1') api.on('agent_end', () => {});"
    module.write_text(f"export default {{ id: 'acme', register(api) {{ {on} }} }};")
    target = made("openclaw", module=str(module), runtime=runtime, face="openclaw-2026.9.6")
    off, _ = greeted(target, tmp_path / "off", [], SIGNET_BYPASS="1")
    assert not off.get("unheard")
    assert [one["handlers"] for one in off["registered"]] == [0, 0]


@of_the_host
@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("memory_modify", {"patches": [{"id": "m1", "pinned": True, "reason": "r"}]}, "pinned"),
        ("memory_forget", {"query": "ledgers", "mode": "execute", "reason": "r"}, "query"),
        ("memory_forget", {"id": "m1", "reason": "r"}, None),
        ("memory_store", {"content": "Ledgers move."}, "content"),
    ],
)
def test_a_tool_is_not_called_for_what_it_cannot_do(
    tool: str, arguments: Mapping[str, Any], words: str | None, runtime: str, made: Made, tmp_path: Path
) -> None:
    """No model calls it with what the schema leaves of the step: an id, and nothing to change."""
    module = tmp_path / "extension.mjs"
    members = "tags: {}" if tool == "memory_store" else "id: {}, content: {}, reason: {}"
    schema = f"{{ type: 'object', properties: {{ {members} }} }}"
    run = "async (_id, given) => ({ content: [{ type: 'text', text: JSON.stringify(given) }] })"
    module.write_text(
        f"export default (pi) => pi.registerTool({{ name: '{tool}', parameters: {schema}, execute: {run} }});"
    )
    target = made("pi", module=str(module), runtime=runtime, tools={})
    step = {"step": "tool", "session": "s1", "tool": tool, "arguments": arguments}
    *_, got = performed(target, tmp_path / "home", [START, {**PROMPT, "more": True}, step])
    expected = words and f"{tool} offers nothing of what the step asks by: {words}"
    assert got.get("skipped") == expected


@of_the_host
def test_a_tool_may_name_what_it_requires_otherwise(runtime: str, made: Made, tmp_path: Path) -> None:
    """A model writes the one text of the step into the one member that the schema requires."""
    module = tmp_path / "extension.mjs"
    schema = "{ type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }"
    run = "async (_id, given) => ({ content: [{ type: 'text', text: JSON.stringify(given) }] })"
    module.write_text(
        f"export default (pi) => pi.registerTool({{ name: 'memory_store', parameters: {schema}, execute: {run} }});"
    )
    target = made("pi", module=str(module), runtime=runtime, tools={})
    step = {"step": "tool", "session": "s1", "tool": "memory_store", "arguments": {"content": "Ledgers move."}}
    *_, got = performed(target, tmp_path / "home", [START, {**PROMPT, "more": True}, step])
    assert "skipped" not in got
    assert got["text"] == '{"text":"Ledgers move."}'
