"""Facts about hooks that nobody heard: what an order rule misses may have met nobody listening."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge
from tests.support.case_traces import DECLARED, KEYED, build

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


def stopped(index: int) -> Item:
    """The host stopped a handler in a step at its timeout."""
    return {"mark": "handler", "data": {"index": index, "event": "Hook", "outcome": "timed_out", "lost": False}}


def recalled(key: str) -> Item:
    """A recall that carries a key."""
    request = {"method": "POST", "path": "/api/memory/recall", "body": {"query": "ledger", "sessionKey": key}}
    return {"request": request, "response": {"status": 200, "body": {"results": []}}}


START, PROMPT, END = hook("session-start"), hook("user-prompt-submit"), hook("session-end", reason="exit")
PRE, COMPLETE = hook("pre-compaction"), hook("compaction-complete")
UNSTARTED = {"inject": "", "memoryCount": 0, "sessionKnown": False}
UNKNOWN = hook("user-prompt-submit", answer=UNSTARTED)
STUB = {"identity": {"name": "Agent"}, "memories": [], "inject": "[memory active | /remember | /recall]"}
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
@pytest.mark.parametrize("how", ["away", "stopped", "stopped in another session", "heard"])
def test_hook_that_met_nobody_is_not_missed(
    tmp_path: Path, requirement: str, before: Sequence[Item], lost: str, after: Sequence[Item], breach: str, how: str
) -> None:
    """What the kit or the host kept from being sent is not held against the connector; what neither did is."""
    between = {
        "away": [AWAY, step(lost, 1), BACK],
        "stopped": [step(lost, 1), stopped(1)],
        "stopped in another session": [step(lost, 1), step("prompt", 3, "s2"), stopped(3)],
        "heard": [step(lost, 1)],
    }[how]
    later = [step("prompt", 2), *after] if after else []
    items = [step("start", 0), *before, *between, *later]
    verdict = judge(build(tmp_path / "trace.jsonl", items)).judgements[requirement].verdict
    assert (verdict in ("INCONCLUSIVE", "PASS")) if how in ("away", "stopped") else (verdict == breach)


SLOW, QUICK = ({"mark": "fault", "data": {"kind": "delay", "delay_s": 9.0, "on": on}} for on in (True, False))


@pytest.mark.parametrize(
    ("requirement", "after"),
    [
        ("SIG-START-004", [hook("user-prompt-submit", "k-2", UNSTARTED)]),
        ("SIG-PROMPT-005", [hook("user-prompt-submit", "k-2", UNSTARTED)]),
        ("SIG-END-002", [hook("session-end", "k-2")]),
    ],
)
@pytest.mark.parametrize("how", ["away", "stopped", "stopped while it was slow", "stopped later", "heard"])
def test_session_whose_start_was_lost(tmp_path: Path, requirement: str, after: Sequence[Item], how: str) -> None:
    """A session that is not begun for the daemon is one that the connector began: no MUST is breached by going on."""
    opened = step("start", 1, "s2")
    begun = {
        "away": [AWAY, opened, BACK],
        "stopped": [opened, stopped(1)],
        "stopped while it was slow": [SLOW, opened, stopped(1), QUICK],
        "stopped later": [opened],
        "heard": [opened],
    }[how]
    later = [stopped(2)] if how == "stopped later" else []
    items = [step("start", 0), START, *begun, step("prompt", 2, "s2"), *after, *later]
    verdict = judge(build(tmp_path / "trace.jsonl", items)).judgements[requirement].verdict
    assert (verdict == "FAIL") is (how in ("stopped later", "heard"))


@pytest.mark.parametrize(("away", "expected"), [(True, "INCONCLUSIVE"), (False, "FAIL")])
def test_end_at_a_clear_is_of_the_session_before_it(tmp_path: Path, away: bool, expected: str) -> None:
    """What is ended there was opened when nothing listened; that something listens at the clear says nothing of it."""
    opened = [step("start", 1, "s2"), step("prompt", 2, "s2")]
    begun = [AWAY, *opened, BACK] if away else opened
    items = [step("start", 0), START, *begun, step("clear", 3, "s2"), hook("session-end", "k-2")]
    assert judge(build(tmp_path / "trace.jsonl", items)).judgements["SIG-END-002"].verdict == expected


@pytest.mark.parametrize(
    ("requirement", "after"),
    [
        ("SIG-START-005", [step("resume", 2), hook("session-start", answer=STUB)]),
        ("SIG-END-005", [step("start", 2, "s2"), hook("session-start", "k-2"), hook("session-end", "k-2")]),
        ("SIG-END-010", [step("start", 2, "s2"), hook("session-start", "k-2"), hook("session-end", "k-2")]),
    ],
)
@pytest.mark.parametrize("how", ["stopped", "slow", "heard"])
def test_end_that_the_host_stopped(tmp_path: Path, requirement: str, after: Sequence[Item], how: str) -> None:
    """Nobody can tell whether it would have been sent, unless a fault held it up."""
    ended = {
        "stopped": [step("end", 1), stopped(1)],
        "slow": [SLOW, step("end", 1), stopped(1), QUICK],
        "heard": [step("end", 1)],
    }[how]
    items = [step("start", 0), START, PROMPT, *ended, *after]
    verdict = judge(build(tmp_path / "trace.jsonl", items)).judgements[requirement].verdict
    assert (verdict != "WARN") is (how == "stopped")


@pytest.mark.parametrize(
    ("requirement", "bound", "hooks"),
    [
        ("SIG-START-005", "start", [START, step("prompt", 1), hook("session-start", answer=STUB), PROMPT]),
        ("SIG-END-006", "end", [START, step("end", 1), END, step("prompt", 2), AGAIN]),
    ],
)
@pytest.mark.parametrize(("bound_s", "repeated"), [(1.0, False), (2.0, True)])
def test_hook_whose_answer_may_be_read_too_late(
    tmp_path: Path, requirement: str, bound: str, hooks: Sequence[Item], bound_s: float, repeated: bool
) -> None:
    """A second passes in its step after the answer, in which a busy machine may let a connector run into its bound."""
    header = {"declared": {**DECLARED, "bounds_s": {bound: bound_s}}}
    items = [step("start", 0), *hooks]
    verdict = judge(build(tmp_path / "trace.jsonl", items, header)).judgements[requirement].verdict
    assert (verdict == "WARN") is repeated


@pytest.mark.parametrize(("took_s", "repeated"), [(6.0, False), (2.0, True)])
def test_end_that_was_answered_as_the_fault_ended(tmp_path: Path, took_s: float, repeated: bool) -> None:
    """The connector had given it up and its connection was still open, so its repetition is no breach."""
    late = {**END, "t0": 4.0, "t1": 4.0 + took_s}
    items = [step("start", 0), START, step("end", 1), late, step("prompt", 2), {**AGAIN, "t0": 11.0}]
    header = {"declared": {**DECLARED, "bounds_s": {"end": 6.0}}}
    verdict = judge(build(tmp_path / "trace.jsonl", items, header)).judgements["SIG-END-006"].verdict
    assert (verdict == "WARN") is repeated


@pytest.mark.parametrize("requirement", ["SIG-END-005", "SIG-END-010"])
@pytest.mark.parametrize("how", ["untold", "told", "of another"])
def test_end_that_the_host_does_not_tell(tmp_path: Path, requirement: str, how: str) -> None:
    """A host that tells of no end when the user begins anew is why a connector ends nothing there."""
    data = {"session": "s2" if how == "of another" else "s1", "key": "k-2", "end_untold": how != "told"}
    anew = [step("clear", 2), hook("session-start", "k-2"), {"mark": "session_key", "data": data}]
    items = [step("start", 0), START, step("prompt", 1), PROMPT, *anew, step("end", 3), hook("session-end", "k-2")]
    verdict = judge(build(tmp_path / "trace.jsonl", items)).judgements[requirement].verdict
    assert (verdict != "WARN") is (how == "untold")


FAILING, MEND = ({"mark": "fault", "data": {"kind": "status", "status": 500, "on": on}} for on in (True, False))


@pytest.mark.parametrize("key", ["k-2", "k-0"])
@pytest.mark.parametrize("begun", ["unheard", "refused", "not at all"])
def test_recall_of_a_session_that_has_not_begun_on_the_wire(tmp_path: Path, begun: str, key: str) -> None:
    """It can carry no key of an open session: the daemon never heard one of its own."""
    ended = [step("start", 0, "s0"), hook("session-start", "k-0"), hook("session-end", "k-0")]
    opened = step("start", 2, "s2")
    beginning = {"unheard": [AWAY, opened, BACK], "refused": [FAILING, opened, MEND], "not at all": [opened]}[begun]
    items = [*ended, step("start", 1), START, *beginning, step("tool", 3, "s2"), recalled(key)]
    assert judge(build(tmp_path / "trace.jsonl", items)).judgements["SIG-REC-004"].verdict == "NOT-APPLICABLE"


@pytest.mark.parametrize(
    ("begun", "key", "expected"),
    [
        ("unheard", "k-2", "INCONCLUSIVE"),
        ("refused", "k-2", "INCONCLUSIVE"),
        ("not at all", "k-2", "WARN"),
        ("refused", "k-0", "WARN"),
    ],
)
def test_recall_of_a_session_that_is_resumed_under_a_new_key(
    tmp_path: Path, begun: str, key: str, expected: str
) -> None:
    """No key fits better than the new one, which the daemon may not have heard; that of an ended session does not."""
    ended = [step("start", 0, "s0"), hook("session-start", "k-0"), hook("session-end", "k-0")]
    opened = step("resume", 2)
    beginning = {"unheard": [AWAY, opened, BACK], "refused": [FAILING, opened, MEND], "not at all": [opened]}[begun]
    items = [*ended, step("start", 1), START, *beginning, step("tool", 3), recalled(key)]
    assert judge(build(tmp_path / "trace.jsonl", items)).judgements["SIG-REC-004"].verdict == expected


SPEAKS = {"declared": {"agents": ["atlas-agent"], "capabilities": ["session-start", "user-prompt-submit"]}}
TURN = {"mark": "step", "data": {"step": "prompt", "session": "s1", "index": 2, "text": "again", "reply": "yes"}}


@pytest.mark.parametrize(
    ("kind", "away", "expected"),
    [("tool", True, "PASS"), ("tool", False, "WARN"), ("undo", True, "WARN"), ("compact", True, "WARN")],
)
def test_prompt_may_be_submitted_when_the_tools_of_its_turn_are_done(
    tmp_path: Path, kind: str, away: bool, expected: str
) -> None:
    """A host may tell its plugin of a turn at the turn's end, where nothing listened; another step is of no turn.

    What the user does in another session meanwhile ends no turn.
    """
    first = [step("start", 0), START, step("prompt", 1), PROMPT]
    beside = [step("compact", 5, "s0"), step("compact", 6, "s9")]
    after = [*beside, AWAY, step(kind, 3), BACK] if away else [*beside, step(kind, 3)]
    judged = judge(build(tmp_path / "trace.jsonl", [*first, TURN, *after, step("end", 4)], SPEAKS))
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
    mended = [QUICK] if slow else []
    first = [step("start", 0), START, step("prompt", 1), PROMPT, END]
    turn = [*([SLOW] if slow else []), TURN, AGAIN, *([] if handler is None else [handler]), *mended]
    judged = judge(build(tmp_path / "trace.jsonl", [*first, *turn, step("end", 3)], SPEAKS)).judgements
    assert (judged["SIG-END-006"].verdict, judged["SIG-PROMPT-011"].verdict) == (ended_twice, unsubmitted)
