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
from signet_conformance.scenarios.scenario import Scenario, scripted
from signet_conformance.trace.recordings import recordings_in

from .conftest import FIXTURES, PROMPT, SCENARIOS, START, Broken, Made, Recorded, of_the_host, performed

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


@of_the_host
@pytest.mark.parametrize(("mode", "verdict"), [("conforming", Verdict.PASS), ("tells-notes", Verdict.WARN)])
def test_what_the_host_told_its_model_after_a_compaction_stands_in_the_conversation(
    mode: str, verdict: Verdict, runtime: str, made: Made, recorded: Recorded
) -> None:
    """A plugin that tells it as the user's words is found out, another one not; the host tells none at the user's."""
    target = made("oh-my-pi", mode=mode, module=str(FIXTURES / "pi_extension.mjs"), runtime=runtime)
    steps = next(each for each in scripted() if each.name == "compaction").to_json()["steps"]
    for step in steps:
        step.pop("by_itself", None)
    asked_for = Scenario.from_json({"name": "asked-for", "steps": steps}, "")
    by_itself, by_the_user = recorded(target, ["compaction"], asked_for)
    assert engine.judge(trace.read(by_the_user)).verdicts["SIG-END-013"] is Verdict.PASS
    assert engine.judge(trace.read(by_itself)).verdicts["SIG-END-013"] is verdict


@of_the_host
@pytest.mark.parametrize(("mode", "verdict"), [("conforming", Verdict.PASS), ("hands-over-late", Verdict.FAIL)])
def test_what_is_handed_over_after_a_clear_has_the_present_key(
    mode: str, verdict: Verdict, runtime: str, made: Made, recorded: Recorded
) -> None:
    """The long conversation begins with a clear: a checkpoint under the key before it is found out."""
    target = made("pi", mode=mode, module=str(FIXTURES / "pi_extension.mjs"), runtime=runtime)
    (long,) = recorded(target, ["long-session"])
    assert engine.judge(trace.read(long)).verdicts["SIG-SESS-004"] is verdict


@of_the_host
@pytest.mark.parametrize(("mode", "verdict"), [("conforming", Verdict.PASS), ("drops-tags", Verdict.WARN)])
def test_prompt_that_begins_with_a_tag_is_submitted(
    mode: str, verdict: Verdict, runtime: str, made: Made, recorded: Recorded
) -> None:
    """A plugin that takes what the user wrote for injected text, and drops it, is found out."""
    target = made("pi", mode=mode, module=str(FIXTURES / "pi_extension.mjs"), runtime=runtime)
    (told,) = recorded(target, ["after-compaction"])
    assert engine.judge(trace.read(told)).verdicts["SIG-PROMPT-011"] is verdict


@pytest.mark.parametrize("name", ["pi", "oh-my-pi"])
def test_memory_that_an_extension_puts_behind_the_user_s_words_reaches_the_model(
    name: str, runtime: str, made: Made, recorded: Recorded
) -> None:
    """The host goes on with the words that a handler of its event input gives back."""
    target = made(name, mode="replaces-words", module=str(FIXTURES / "pi_extension.mjs"), runtime=runtime)
    (plain,) = recorded(target, ["plain"])
    judged = engine.judge(trace.read(plain))
    assert [judged.harness[f"SIG-MODEL-{number}"].verdict for number in ("002", "010")] == [Verdict.PASS] * 2


@pytest.mark.parametrize("name", ["pi", "oh-my-pi"])
def test_extension_that_deals_with_what_the_user_says_takes_the_turn_away(
    name: str, runtime: str, made: Made, recorded: Recorded
) -> None:
    """But for a command, which may be its own."""
    target = made(name, mode="swallows-words", module=str(FIXTURES / "pi_extension.mjs"), runtime=runtime)
    command = {"step": "prompt", "session": "s1", "text": "/status", "reply": "All is well."}
    start, _, end = next(each for each in scripted() if each.name == "plain").to_json()["steps"]
    own = Scenario.from_json({"name": "own-command", "steps": [start, command, end]}, "")
    told = {path.stem: engine.judge(trace.read(path)) for path in recorded(target, ["plain"], own)}
    assert told["plain"].verdicts["SIG-LOAD-001"] is Verdict.FAIL
    assert "the user's turn" in told["plain"].judgements["SIG-LOAD-001"].message
    assert told["own-command"].verdicts["SIG-LOAD-001"] is Verdict.PASS


def test_extension_that_cancels_a_compaction_leaves_the_daemon_waiting(
    runtime: str, made: Made, recorded: Recorded
) -> None:
    """The host then compacts nothing, and fires nothing more."""
    target = made("pi", mode="cancels-compaction", module=str(FIXTURES / "pi_extension.mjs"), runtime=runtime)
    (compaction,) = recorded(target, ["compaction"])
    judged = engine.judge(trace.read(compaction))
    assert judged.verdicts["SIG-CMP-008"] is Verdict.WARN


@of_the_host
@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ("body.replaceAll('OpenClaw', 'assistant platform')", Verdict.WARN),
        ("JSON.stringify({ ...JSON.parse(body), system: [{ type: 'text', text: 'a note' }] })", Verdict.PASS),
        ("'no JSON'", Verdict.PASS),
    ],
)
def test_plugin_that_changes_what_its_process_sends_to_the_model(
    change: str, verdict: Verdict, runtime: str, made: Made, recorded: Recorded
) -> None:
    """One that replaces words of the user there is found out; one that adds something beside them is not blamed."""
    code = f"""
import plugin from {json.dumps(MODULE)};
const original = globalThis.fetch;
const changed = ({{ body, ...init }}) => ({{ ...init, body: {change} }});
const isModel = (what) => new URL(what).hostname === "api.anthropic.com";
globalThis.fetch = (what, init) => original(what, isModel(what) ? changed(init) : init);
export default plugin;
"""
    (prompts,) = recorded(made("openclaw", code=code, runtime=runtime), ["several-prompts"])
    assert engine.judge(trace.read(prompts)).harness["SIG-MODEL-010"].verdict is verdict


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
    ("mode", "lost", "events"),
    [
        ("throws-at-the-message", [True], ["session.error"]),
        ("throws-at-the-messages", [True], ["session.status", "session.idle", "session.error"]),
        ("throws-at-the-system", [None, True], ["session.error", *["session.status", "session.idle"] * 2]),
        ("numbers-the-system", [True], ["session.error", *["session.status", "session.idle"] * 2]),
        ("throws-at-the-title", [None], None),
    ],
)
def test_plugin_of_opencode_that_throws_loses_the_turn(
    mode: str, lost: list[bool | None], events: Sequence[str] | None, runtime: str, made: Made, tmp_path: Path
) -> None:
    """OpenCode awaits what its plugins do to a turn and catches nothing; the title of a session is no turn.

    As observed in OpenCode 1.18.33, it tells that it is idle before the error, after it or never.
    """
    target = made("opencode", mode=mode, module=str(FIXTURES / "opencode_plugin.mjs"), runtime=runtime)
    _, turn = performed(target, tmp_path / "home", [START, PROMPT])
    assert turn["turn"] is (events is None)
    assert [call.get("lost") for call in turn["calls"] if "thrown" in call] == lost
    told = [call["event"].removeprefix("event ") for call in turn["calls"] if call["event"].startswith("event session")]
    told = [name for name in told if name != "session.updated"]
    assert events is None or told[-len(events) :] == events


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
    schema = "{ type: 'object', properties: { id: { type: 'string' } } }"
    code = THROWS[name].format(schema=schema, run=f"async () => {{ throw {error}; }}")
    target = made(name, code=code, runtime=runtime, tools={}, capabilities=["memory-get"])
    *_, got = performed(target, tmp_path / "home", [START, {**PROMPT, "more": True}, GET])
    thrown = [call["event"] for call in got.get("calls", ()) if "thrown" in call]
    assert thrown == (["tool memory_get"] if noted else [])
    if not noted:
        assert not got.get("done")
        assert "nothing is stored" in str(got) or "fetch failed" in str(got)


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
    members = "tags: {}" if tool == "memory_store" else "id: {}, content: {}, reason: {}"
    schema = f"{{ type: 'object', properties: {{ {members} }} }}"
    run = "async (_id, given) => ({ content: [{ type: 'text', text: JSON.stringify(given) }] })"
    code = f"export default (pi) => pi.registerTool({{ name: '{tool}', parameters: {schema}, execute: {run} }});"
    target = made("pi", code=code, runtime=runtime, tools={})
    step = {"step": "tool", "session": "s1", "tool": tool, "arguments": arguments}
    *_, got = performed(target, tmp_path / "home", [START, {**PROMPT, "more": True}, step])
    expected = words and f"{tool} takes none of the arguments that the step is about: {words}"
    assert got.get("skipped") == expected


@of_the_host
def test_a_tool_may_name_what_it_requires_otherwise(runtime: str, made: Made, tmp_path: Path) -> None:
    """A model writes the one text of the step into the one member that the schema requires."""
    schema = "{ type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }"
    run = "async (_id, given) => ({ content: [{ type: 'text', text: JSON.stringify(given) }] })"
    code = f"export default (pi) => pi.registerTool({{ name: 'memory_store', parameters: {schema}, execute: {run} }});"
    target = made("pi", code=code, runtime=runtime, tools={})
    step = {"step": "tool", "session": "s1", "tool": "memory_store", "arguments": {"content": "Ledgers move."}}
    *_, got = performed(target, tmp_path / "home", [START, {**PROMPT, "more": True}, step])
    assert "skipped" not in got
    assert got["text"] == '{"text":"Ledgers move."}'


ANSWERS = """
const answers = [
  { content: [{ type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" }] }, { content: "Found." },
  { content: null }, { content: [{ type: "text", text: "Found." }, null, 7] }, {}, null, undefined, 7,
];
export default {
  id: "answering",
  kind: "memory",
  register(api) {
    const parameters = { type: "object", properties: { query: { type: "string" } } };
    api.registerTool({ name: "memory_search", parameters, execute: async () => answers.shift() });
  },
};
"""


def test_tool_may_give_back_anything(made: Made, tmp_path: Path) -> None:
    """An image has no text, and what is not of the host's form breaks no scenario off."""
    target = made("openclaw", code=ANSWERS, face="openclaw-2026.3", capabilities=[])
    tool = {"step": "tool", "session": "s1", "tool": "memory_search", "arguments": {"query": "x"}}
    _, *answers = performed(target, tmp_path / "home", [START, *[tool] * 8])
    assert [answer["text"] for answer in answers] == ["", "Found.", "", "Found.", *[""] * 4]
