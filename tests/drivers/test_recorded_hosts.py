"""Host fakes against recordings made inside the real hosts: the same events in the same order, with their members."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.targets.face import FOLDER as FACES
from tests.support.evidence import HOOK_RUNS, HOST_EVENTS, json_lines

from .conftest import FIXTURES, PROMPT, START, Made, performed

OPENCLAW = HOST_EVENTS / "real-openclaw-host-2026.6.1.jsonl"
OPENCODE = HOST_EVENTS / "real-opencode-host-1.18.33.jsonl"
NOISE = {"message.updated", "session.updated", "session.diff", "reference.updated", "integration.updated", "busy"}
"""Events of OpenCode that come as often as its database is written; no connector tells anything by them."""


def test_openclaw_fires_what_the_real_host_fired(runtime: str, made: Made, tmp_path: Path) -> None:
    """The events of a turn come in the order, with the members and the context, that a probe saw in the real host."""
    real = json_lines(OPENCLAW)
    turn = next(
        i
        for i, event in enumerate(real)
        if event["hook"] == "before_model_resolve" and "And what" in event["input"]["prompt"]
    )
    expected = real[turn : turn + 8]
    out = tmp_path / "probe.jsonl"
    events = json.loads((FACES / "openclaw-2026.6.1.json").read_bytes())["events"]
    target = made("openclaw", module=str(FIXTURES / "probe_plugin.mjs"), runtime=runtime)
    probe = {"PROBE_OUT": str(out), "PROBE_EVENTS": json.dumps(list(events))}
    performed(target, tmp_path / "home", [START, PROMPT], **probe)
    apart = ("gateway_start", "session_start", "gateway_stop")
    seen = [event for event in json_lines(out) if event["hook"] not in apart]
    assert [event["hook"] for event in seen] == [event["hook"] for event in expected]
    for ours, theirs in zip(seen, expected, strict=True):
        assert set(ours["input"]) <= set(theirs["input"]), ours["hook"]
        if ours["hook"] not in ("llm_input", "llm_output"):
            assert set(ours["input"]) == set(theirs["input"]), ours["hook"]
        assert set(ours["ctx"]) <= set(theirs["ctx"]), ours["hook"]
        assert {"agentId", "sessionKey", "sessionId", "workspaceDir", "runId"} <= set(ours["ctx"]), ours["hook"]


def test_openclaw_resets_as_the_real_host_did(runtime: str, made: Made, tmp_path: Path) -> None:
    """A reset fires the events of the real host, in its order, with its members."""
    real = json_lines(OPENCLAW)
    reset = next(place for place, event in enumerate(real) if event["hook"] == "before_reset")
    expected = real[reset : reset + 3]
    out = tmp_path / "probe.jsonl"
    target = made("openclaw", module=str(FIXTURES / "probe_plugin.mjs"), runtime=runtime)
    events = json.dumps([event["hook"] for event in expected])
    clear = {"step": "clear", "session": "s1"}
    performed(target, tmp_path / "home", [START, PROMPT, clear], PROBE_OUT=str(out), PROBE_EVENTS=events)
    seen = json_lines(out)[1:4]
    assert [event["hook"] for event in seen] == [event["hook"] for event in expected]
    for ours, theirs in zip(seen, expected, strict=True):
        assert set(ours["input"]) == set(theirs["input"]), ours["hook"]
        assert set(ours["ctx"]) == set(theirs["ctx"]), ours["hook"]


def named(line: Mapping[str, Any]) -> str:
    """The name under which a line of OpenCode's probe is compared: the hook, or the event; a status by its type."""
    if line["hook"] != "event":
        return str(line["hook"])
    event = line["input"]["event"]
    return str(event["properties"]["status"]["type"] if event["type"] == "session.status" else event["type"])


def told(lines: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The lines that say something."""
    return [line for line in lines if named(line) not in NOISE]


def member_names(line: Mapping[str, Any]) -> set[str]:
    """The members of a line's input and output, and of the event within."""
    given = line.get("input", {})
    event = given.get("event", {})
    below = {f"event.{name}" for name in event} | {f"properties.{name}" for name in event.get("properties", {})}
    return {*given, *below, *(f"output.{name}" for name in line.get("output") or {})}


TOOL = {"step": "tool", "session": "s1", "tool": "memory_search", "arguments": {"query": "pgbouncer"}}
COMPACT = {"step": "compact", "session": "s1", "summary": "Asked for the database."}


def test_opencode_fires_what_the_real_host_fired(runtime: str, made: Made, tmp_path: Path) -> None:
    """A start, a turn with a tool, a compaction, a plain turn and an end are what a probe saw in the real host."""
    real = told(json_lines(OPENCODE))
    out = tmp_path / "probe.jsonl"
    target = made("opencode", runtime=runtime, module=str(FIXTURES / "probe_opencode.mjs"))
    steps = [START, PROMPT, {**PROMPT, "more": True}, TOOL, COMPACT, PROMPT, {"step": "end", "session": "s1"}]
    performed(target, tmp_path / "home", steps, PROBE_OUT=str(out))
    ours = told(json_lines(out))
    # The recorded session had a title from the start; ours asks for one first, so its first turn is left out.
    turns = [place for place, event in enumerate(ours) if named(event) == "chat.message"]
    theirs = [place for place, event in enumerate(real) if named(event) == "chat.message"]
    compaction = next(place for place, event in enumerate(real) if named(event) == "experimental.session.compacting")
    after = next(place for place in theirs if place > compaction)
    expected = [*real[theirs[1] : theirs[2]], *real[compaction:after]]
    assert [named(event) for event in ours[: turns[0]]] == [named(event) for event in real[: theirs[0]]]
    assert [named(event) for event in ours[turns[1] : turns[2]]] == [named(event) for event in expected]
    plain = real[theirs[0] : theirs[1]]
    assert [named(event) for event in ours[turns[2] : -1]] == [named(event) for event in plain]
    assert named(ours[-1]) == named(real[-1]) == "session.deleted"
    assert set(ours[0]["keys"]) == set(real[0]["keys"])
    compared = [*zip(ours[1:2], real[1:2], strict=True), *zip(ours[turns[1] : turns[2]], expected, strict=True)]
    for mine, other in (*compared, (ours[-1], real[-1])):
        assert member_names(mine) == member_names(other), named(mine)
    created, real_created = (event["input"]["event"]["properties"]["info"] for event in (ours[1], real[1]))
    assert set(created) <= {*real_created, "parentID"}


def dumped(out: Path) -> str:
    """The command of a hook that writes down what it is given."""
    return f"{shlex.join([sys.executable, '-c', 'import sys; print(sys.stdin.read())'])} >> {shlex.quote(str(out))}"


def steps_of(name: str) -> Sequence[Mapping[str, Any]]:
    """The steps that the recorded session consisted of."""
    resume, end = {"step": "resume", "session": "s1"}, {"step": "end", "session": "s1"}
    if name == "codex":
        return [START, PROMPT, PROMPT, PROMPT, resume, PROMPT]
    return [START, PROMPT, PROMPT, PROMPT, COMPACT, PROMPT, end]


@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_hooks_are_given_what_the_real_harness_gave(name: str, made: Made, tmp_path: Path) -> None:
    """The hooks of a session run in the order of the real harness, with the members, source and reason that it gave."""
    real = [event["stdin"] for event in json_lines(HOOK_RUNS / f"{name}-as-installed.jsonl")]
    out = tmp_path / "stdin.jsonl"
    hook = {"type": "command", "command": dumped(out), "timeout": 30}
    hooks = {name: [{"hooks": [hook]}] for name in {event["hook_event_name"] for event in real}}
    (tmp_path / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    performed(made(name, config="hooks.json"), tmp_path / "home", list(steps_of(name)))
    ours = json_lines(out)
    assert [sorted(event) for event in ours] == [sorted(event) for event in real]
    for member in ("hook_event_name", "source", "trigger", "reason"):
        assert [event.get(member) for event in ours] == [event.get(member) for event in real]
    assert [event["session_id"] == ours[0]["session_id"] for event in ours] == [
        event["session_id"] == real[0]["session_id"] for event in real
    ]
    assert all(Path(event["transcript_path"]).name.endswith(f"{event['session_id']}.jsonl") for event in (*ours, *real))
