"""Facts about hooks that nobody heard: what an order rule misses may have met nobody listening."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge
from tests.support.case_traces import KEYED, build

Item = Mapping[str, Any]
ANSWERS: Mapping[str, Mapping[str, Any]] = {
    "session-start": {"inject": "", "memories": []},
    "session-end": {"memoriesSaved": 0, "queued": False},
    "pre-compaction": {"summaryPrompt": "Write it down.", "guidelines": ""},
    "compaction-complete": {"success": True, "memoryId": "m-1"},
    "session-checkpoint-extract": {"queued": False},
}
AWAY, BACK = ({"mark": "fault", "data": {"kind": "refuse", "on": on}} for on in (True, False))


def step(kind: str, index: int, session: str = "s1") -> Item:
    """A step that was given to the connector."""
    return {"mark": "step", "data": {"step": kind, "session": session, "index": index, "text": "next", "reply": "yes"}}


def hook(operation: str, key: str = "k-1", answer: Mapping[str, Any] | None = None, **more: Any) -> Item:
    """A hook of a session, answered as the daemon does."""
    told = answer or ANSWERS.get(operation, {"inject": "", "memoryCount": 0})
    body = {**KEYED, "sessionKey": key, "userMessage": "next", "summary": "It is done.", **more}
    request = {"method": "POST", "path": f"/api/hooks/{operation}", "body": body}
    return {"request": request, "response": {"status": 200, "body": told}}


def recalled(key: str) -> Item:
    """A recall that carries a key."""
    request = {"method": "POST", "path": "/api/memory/recall", "body": {"query": "ledger", "sessionKey": key}}
    return {"request": request, "response": {"status": 200, "body": {"results": []}}}


START, PROMPT, END = hook("session-start"), hook("user-prompt-submit"), hook("session-end", reason="exit")
PRE, COMPLETE = hook("pre-compaction"), hook("compaction-complete")
UNKNOWN = hook("user-prompt-submit", answer={"inject": "", "memoryCount": 0, "sessionKnown": False})
AGAIN = hook("session-end", answer={"memoriesSaved": 0, "queued": False, "skipped": True, "duplicateSessionEnd": True})
CHECKPOINT = hook("session-checkpoint-extract", transcript="User: next")


@pytest.mark.parametrize(
    ("requirement", "before", "lost", "after", "breach"),
    [
        ("SIG-CMP-003", [START, PROMPT], "pre_compaction", [COMPLETE], "WARN"),
        ("SIG-CMP-004", [START, PRE, COMPLETE], "pre_compaction", [COMPLETE], "FAIL"),
        ("SIG-CMP-007", [START, END], "resume", [PRE], "WARN"),
        ("SIG-CMP-008", [START, PRE], "compaction_complete", [PROMPT], "WARN"),
        ("SIG-CKPT-001", [START, END], "resume", [CHECKPOINT], "WARN"),
        ("SIG-END-005", [START, END, START], "end", [], "WARN"),
        ("SIG-END-006", [START, END], "prompt", [AGAIN], "WARN"),
        ("SIG-END-007", [START, END], "resume", [PRE], "WARN"),
        ("SIG-END-009", [START, hook("session-end", reason="clear")], "prompt", [PROMPT], "FAIL"),
        ("SIG-PROMPT-006", [UNKNOWN], "prompt", [PROMPT], "WARN"),
    ],
)
@pytest.mark.parametrize("away", [True, False])
def test_hook_that_met_nobody_is_not_missed(
    tmp_path: Path, requirement: str, before: Sequence[Item], lost: str, after: Sequence[Item], breach: str, away: bool
) -> None:
    """What the kit kept from being sent is not held against the connector; what it did not is."""
    between = [AWAY, step(lost, 1), BACK] if away else [step(lost, 1)]
    later = [step("prompt", 2), *after] if after else []
    items = [step("start", 0), *before, *between, *later]
    verdict = judge(build(tmp_path / "trace.jsonl", items)).judgements[requirement].verdict
    assert (verdict in ("INCONCLUSIVE", "PASS")) if away else (verdict == breach)


@pytest.mark.parametrize(("away", "expected"), [(True, "INCONCLUSIVE"), (False, "WARN")])
def test_recall_of_a_session_whose_start_was_lost(tmp_path: Path, away: bool, expected: str) -> None:
    """Its key is open for the connector, though nobody heard it being started."""
    opened = step("start", 1, "s2")
    begun = [AWAY, opened, BACK] if away else [opened]
    items = [step("start", 0), START, *begun, step("tool", 2, "s2"), recalled("k-2")]
    assert judge(build(tmp_path / "trace.jsonl", items)).judgements["SIG-REC-004"].verdict == expected


FAILING, MEND = ({"mark": "fault", "data": {"kind": "status", "status": 500, "on": on}} for on in (True, False))


@pytest.mark.parametrize(
    ("switched", "key", "expected"),
    [(True, "k-2", "INCONCLUSIVE"), (False, "k-2", "WARN"), (True, "k-0", "WARN")],
)
def test_recall_of_a_session_that_could_not_be_opened(tmp_path: Path, switched: bool, key: str, expected: str) -> None:
    """No key fits it better than its own, which may never have been sent before; that of an ended session does not."""
    ended = [step("start", 0, "s0"), hook("session-start", "k-0"), hook("session-end", "k-0")]
    opened = step("start", 2, "s2")
    begun = [FAILING, opened, MEND] if switched else [opened]
    items = [*ended, step("start", 1), START, *begun, step("tool", 3, "s2"), recalled(key)]
    assert judge(build(tmp_path / "trace.jsonl", items)).judgements["SIG-REC-004"].verdict == expected


SPEAKS = {"declared": {"agents": ["atlas-agent"], "capabilities": ["session-start", "user-prompt-submit"]}}
TURN = {"mark": "step", "data": {"step": "prompt", "session": "s1", "index": 2, "text": "again", "reply": "yes"}}


@pytest.mark.parametrize(("away", "expected"), [(True, "PASS"), (False, "WARN")])
def test_prompt_may_be_submitted_when_the_tools_of_its_turn_are_done(tmp_path: Path, away: bool, expected: str) -> None:
    """A host may tell its plugin of a turn at the turn's end, where nothing listened."""
    first = [step("start", 0), START, step("prompt", 1), PROMPT]
    tool = [AWAY, step("tool", 3), BACK] if away else [step("tool", 3)]
    judged = judge(build(tmp_path / "trace.jsonl", [*first, TURN, *tool, step("end", 4)], SPEAKS))
    assert judged.judgements["SIG-PROMPT-011"].verdict == expected


@pytest.mark.parametrize(("away", "expected"), [(True, "PASS"), (False, "WARN")])
def test_plugin_that_was_not_there_at_the_start_stays_away(tmp_path: Path, away: bool, expected: str) -> None:
    """A host asks once whether a plugin can be used; where nothing listened then, a clear does not bring it back."""
    spoken = [step("start", 0, "s0"), START, step("prompt", 1, "s0"), PROMPT]
    begun = [AWAY, step("start", 2), BACK] if away else [step("start", 2)]
    judged = judge(build(tmp_path / "trace.jsonl", [*spoken, *begun, step("clear", 3), TURN], SPEAKS))
    assert judged.judgements["SIG-PROMPT-011"].verdict == expected


@pytest.mark.parametrize(("one_turn", "expected"), [(True, "INCONCLUSIVE"), (False, "WARN")])
def test_second_submission_of_a_turn_is_not_the_next_prompt(tmp_path: Path, one_turn: bool, expected: str) -> None:
    """Where two handlers submit one prompt, the next turn shows whether an unknown session is started."""
    between = [] if one_turn else [step("prompt", 2)]
    items = [step("start", 0), step("prompt", 1), UNKNOWN, *between, PROMPT]
    assert judge(build(tmp_path / "trace.jsonl", items)).judgements["SIG-PROMPT-006"].verdict == expected


STOPPED = {"mark": "handler", "data": {"index": 2, "event": "UserPromptSubmit", "outcome": "timed_out", "lost": False}}
FAILED = {"mark": "handler", "data": {**STOPPED["data"], "outcome": "failed"}}
OF_ANOTHER = {"mark": "handler", "data": {**STOPPED["data"], "index": 1}}


@pytest.mark.parametrize(
    ("handler", "slow", "ended_twice", "unsubmitted"),
    [
        (STOPPED, False, "PASS", "PASS"),
        (FAILED, False, "WARN", "WARN"),
        (OF_ANOTHER, False, "WARN", "WARN"),
        (None, False, "WARN", "WARN"),
        (STOPPED, True, "WARN", "PASS"),
    ],
)
def test_hook_that_the_host_stopped_is_not_missed(
    tmp_path: Path, handler: Item | None, slow: bool, ended_twice: str, unsubmitted: str
) -> None:
    """On a busy machine its time may be over before it has sent anything; where a fault held it up, it had."""
    on, off = ({"mark": "fault", "data": {"kind": "delay", "delay_s": 9.0, "on": on}} for on in (True, False))
    mended = [off] if slow else []
    first = [step("start", 0), START, step("prompt", 1), PROMPT, END]
    turn = [*([on] if slow else []), TURN, AGAIN, *([] if handler is None else [handler]), *mended]
    judged = judge(build(tmp_path / "trace.jsonl", [*first, *turn, step("end", 3)], SPEAKS)).judgements
    assert (judged["SIG-END-006"].verdict, judged["SIG-PROMPT-011"].verdict) == (ended_twice, unsubmitted)
