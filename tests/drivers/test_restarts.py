"""Hosts that are killed between two turns and started again: nothing is told, and the session goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from signet_conformance import engine, trace
from signet_conformance.facts import END, Recording
from signet_conformance.finding import Verdict
from signet_conformance.trace.marks import LoadedMark, StepMark, StepName

from .conftest import FIXTURES, PROMPT, START, Made, Recorded, performed
from .test_command_hooks import settings

RESTART = {"step": "restart_host", "session": "s1"}
NOTE = """
import { appendFileSync } from "node:fs";
const note = (count) => appendFileSync(process.env.SEEN, JSON.stringify([process.pid, count]) + "\\n");
"""
PROBES = {
    "openclaw": """
export default { id: "memory", kind: "memory", register: (api) => {
  api.on("before_prompt_build", ({ messages }) => note(messages.length));
} };
""",
    "opencode": """
export const Probe = async ({ client }) => ({
  "chat.message": async ({ sessionID: id }) => note((await client.session.messages({ path: { id } })).data.length),
});
""",
    "pi": """
export default (pi) => pi.on("input", (_event, ctx) => note(ctx.sessionManager.getEntries().length));
""",
}
PLUGINS = [
    ("openclaw", "openclaw_plugin.mjs", {}),
    ("opencode", "opencode_plugin.mjs", {}),
    ("pi", "pi_extension.mjs", {"harness": "pi"}),
    ("hermes-agent", "hermes_conforming/__init__.py", {}),
]


def restarts_in(recording: Recording) -> list[StepMark]:
    """The steps in which the host was restarted; none of them was skipped."""
    steps = [step for step in recording.timeline.steps if step.step == StepName.RESTART_HOST]
    assert not any(map(recording.timeline.was_skipped, steps))
    return steps


@pytest.mark.parametrize("name", PROBES)
def test_another_process_goes_on_with_what_was_said(name: str, runtime: str, made: Made, tmp_path: Path) -> None:
    """A plugin is loaded by a new process, which has the session under its id, with its history."""
    module, seen = tmp_path / f"{name}.mjs", tmp_path / "seen.jsonl"
    module.write_text(NOTE + PROBES[name])
    target = made(name, module=str(module), runtime=runtime)
    results = performed(target, tmp_path / "home", [START, PROMPT, RESTART, PROMPT], SEEN=str(seen))
    assert len({result["key"] for result in results if "key" in result}) == 1
    (first, nothing), (second, turn) = (json.loads(line) for line in seen.read_text().splitlines())
    assert first != second
    assert (nothing, turn) == (0, 2)


@pytest.mark.parametrize(("name", "module"), [("openclaw", "openclaw_plugin.mjs"), ("opencode", "opencode_plugin.mjs")])
def test_another_process_compacts_what_was_said_before(
    name: str, module: str, runtime: str, made: Made, tmp_path: Path
) -> None:
    """A host that is started again knows from its files that there is something to compact."""
    target = made(name, module=str(FIXTURES / module), runtime=runtime)
    compact = {"step": "compact", "session": "s1", "summary": "They said hello."}
    *_, compacted, again = performed(target, tmp_path / "home", [START, PROMPT, RESTART, compact, compact])
    assert "skipped" not in compacted
    assert "nothing was said since" in again["skipped"]


@pytest.mark.parametrize(("name", "module", "own"), PLUGINS)
def test_a_conforming_plugin_is_blamed_for_no_restart(
    name: str, module: str, own: Mapping[str, Any], made: Made, recorded: Recorded
) -> None:
    """Its host tells of no end; what the new process sends for the session that goes on is no breach."""
    (path,) = recorded(made(name, module=str(FIXTURES / module), **own), ["host-restarts"])
    judged = engine.judge(trace.read(path))
    recording = judged.recording
    steps = restarts_in(recording)
    assert len(steps) == 2
    for step in steps:
        until = recording.timeline.next_step(step)
        assert any(step.seq < mark.seq < until for mark in recording.marks(LoadedMark))
        assert END not in {call.operation for call in recording.timeline.calls_in(step)}
        assert len(recording.timeline.host_ids.of(step.session)) == 1
    assert Verdict.FAIL not in judged.verdicts.values()
    assert judged.verdicts["SIG-START-005"] is not Verdict.WARN
    assert judged.verdicts["SIG-SESS-005"] is Verdict.PASS


@pytest.mark.parametrize(("face", "ids", "verdict"), [("claude-code-2.1", 1, None), ("claude-code-2.1.9", 2, "PASS")])
def test_a_session_of_claude_code_keeps_its_id_where_its_release_does(
    face: str, ids: int, verdict: str | None, made: Made, recorded: Recorded, tmp_path: Path
) -> None:
    """An older release goes on under another id, of which only a start tells; hooks that go by it are not blamed."""
    target = made("claude-code", face=face, config=settings(tmp_path), capabilities=["session-start"])
    (path,) = recorded(target, ["host-restarts"])
    judged = engine.judge(trace.read(path))
    assert len(restarts_in(judged.recording)) == 2
    assert len(judged.recording.timeline.host_ids.of("s1")) == ids
    assert Verdict.FAIL not in judged.verdicts.values()
    assert judged.verdicts["SIG-SESS-004"] == (verdict or Verdict.NOT_APPLICABLE)
    assert judged.verdicts["SIG-END-005"] is not Verdict.WARN


def test_a_session_in_which_nothing_was_said_is_lost_with_its_program(made: Made, tmp_path: Path) -> None:
    """Claude Code keeps nothing of it on its disk; one with a turn goes on."""
    target = made("claude-code", config=settings(tmp_path))
    *_, restarted, turn = performed(target, tmp_path / "unused", [START, RESTART, PROMPT])
    assert ["cannot be resumed" in each["skipped"] for each in (restarted, turn)] == [True, True]
    *_, restarted, _ = performed(target, tmp_path / "used", [START, PROMPT, RESTART, PROMPT])
    assert [run["event"] for run in restarted["hooks"]] == ["SessionStart"]
