"""Facts about connectors that fall silent after a fault: decided between the kit's own marks, and only there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge
from tests.support.case_traces import KEYED, build

Item = Mapping[str, Any]


def mark(name: str, **data: Any) -> Item:
    """A mark of the kit."""
    return {"mark": name, "data": data}


def step(kind: str, index: int = 0, session: str = "s1") -> Item:
    """A step that was given to the connector."""
    return mark("step", step=kind, session=session, index=index, text="next")


def hook(operation: str, status: int = 200, body: Any = None, **more: Any) -> Item:
    """A keyed hook with its answer."""
    request = {"method": "POST", "path": f"/api/hooks/{operation}", "body": {**KEYED, "userMessage": "next"}}
    return {"request": request, "response": {"status": status, "body": {} if body is None else body}, **more}


START = [step("start"), hook("session-start")]
ON, OFF = mark("fault", kind="reset", on=True), mark("fault", kind="reset", on=False)
RESET = hook("user-prompt-submit", error={"kind": "fault"}, fault={"kind": "reset"})
LOST = {**RESET, "response": None}
HTML = {
    **hook("user-prompt-submit", fault={"kind": "not_json"}),
    "response": {"status": 200, "raw_body": {"text": "<!doctype html>", "media_type": "text/html"}},
}
FAILED = hook("user-prompt-submit", 500, {"error": "Hook execution failed"})
ODD = hook("user-prompt-submit", 200, {"inject": 42}, fault={"kind": "shape"})
GOES_ON = [step("prompt", 2), step("end", 3)]
FAULTS = {"SIG-FAIL-001": LOST, "SIG-FAIL-003": FAILED, "SIG-FAIL-005": ODD}
BREACH = {"SIG-FAIL-001": "FAIL", "SIG-FAIL-003": "FAIL", "SIG-FAIL-005": "WARN"}


def verdict(folder: Path, requirement: str, items: Iterable[Item]) -> str:
    """The verdict of a requirement over a recording of these items."""
    return judge(build(folder / "trace.jsonl", items)).judgements[requirement].verdict


@pytest.mark.parametrize("requirement", FAULTS)
def test_silence_after_the_fault_was_over_is_a_breach(requirement: str, tmp_path: Path) -> None:
    """The fault was switched off, a prompt and an end were given, and not one hook followed."""
    items = [*START, ON, step("prompt", 1), FAULTS[requirement], OFF, *GOES_ON]
    assert verdict(tmp_path, requirement, items) == BREACH[requirement]


@pytest.mark.parametrize(
    ("closes", "opens"),
    [
        (mark("fault", kind="refuse", id=1, on=True), mark("fault", kind="refuse", id=1, on=False)),
        (mark("outage", on=True), mark("outage", on=False)),
    ],
    ids=["fault", "outage"],
)
@pytest.mark.parametrize("requirement", FAULTS)
def test_silence_under_another_fault_is_no_breach(requirement: str, closes: Item, opens: Item, tmp_path: Path) -> None:
    """Of two faults the last that is switched off counts, whichever was switched on first."""
    items = [*START, ON, step("prompt", 1), FAULTS[requirement], closes, OFF, *GOES_ON]
    assert verdict(tmp_path, requirement, items) == "INCONCLUSIVE"
    assert verdict(tmp_path, requirement, [*items, opens]) == "INCONCLUSIVE"
    assert verdict(tmp_path, requirement, [*items, opens, *GOES_ON]) == BREACH[requirement]


@pytest.mark.parametrize("kind", ["tool", "compact", "resume"])
def test_a_step_of_which_nothing_is_told_is_no_silence(kind: str, tmp_path: Path) -> None:
    """Who told the last turn before the fault had not fallen silent, whatever the user did after it."""
    on, off = mark("fault", kind="refuse", on=True), mark("fault", kind="refuse", on=False)
    items = [*START, step("prompt", 1), hook("user-prompt-submit"), step(kind, 2)]
    items += [on, step("prompt", 3), off, step("prompt", 4), step("end", 5)]
    assert verdict(tmp_path, "SIG-FAIL-001", items) == "FAIL"


def test_silence_that_began_before_the_fault_is_not_its_own(tmp_path: Path) -> None:
    """Nothing was told of the turn before it, and nothing after: the fault changed nothing."""
    on, off = mark("fault", kind="refuse", on=True), mark("fault", kind="refuse", on=False)
    items = [*START, step("prompt", 1), on, step("prompt", 2), off, step("prompt", 3), step("end", 4)]
    assert verdict(tmp_path, "SIG-FAIL-001", items) == "INCONCLUSIVE"


@pytest.mark.parametrize("requirement", FAULTS)
@pytest.mark.parametrize(("outcome", "spared"), [("timed_out", True), ("failed", False)])
def test_who_was_stopped_did_not_fall_silent(requirement: str, outcome: str, spared: bool, tmp_path: Path) -> None:
    """A handler that the host stopped at its timeout may have been about to speak; one that failed was not."""
    handler = mark("handler", index=2, event="UserPromptSubmit", outcome=outcome, lost=False)
    items = [*START, ON, step("prompt", 1), FAULTS[requirement], OFF, step("prompt", 2), handler, step("end", 3)]
    assert verdict(tmp_path, requirement, items) == ("INCONCLUSIVE" if spared else BREACH[requirement])


@pytest.mark.parametrize("requirement", FAULTS)
def test_other_requests_break_no_silence(requirement: str, tmp_path: Path) -> None:
    """A connector that only asks for the daemon's health reports none of the user's turns."""
    probe = {"request": {"method": "GET", "path": "/health"}}
    items = [*START, ON, step("prompt", 1), FAULTS[requirement], OFF, step("prompt", 2), probe, step("end", 3)]
    assert verdict(tmp_path, requirement, items) == BREACH[requirement]


def test_an_unreadable_answer_counts_like_a_failed_one(tmp_path: Path) -> None:
    """HTML instead of JSON is no reason to stop either."""
    assert verdict(tmp_path, "SIG-FAIL-003", [*START, ON, step("prompt", 1), HTML, OFF, *GOES_ON]) == "FAIL"


def test_silence_while_nobody_listened_is_a_breach(tmp_path: Path) -> None:
    """A closed listener leaves no exchange: the step given meanwhile stands for the attempt."""
    on, off = mark("fault", kind="refuse", on=True), mark("fault", kind="refuse", on=False)
    items = [*START, on, step("prompt", 1), off, *GOES_ON]
    judgement = judge(build(tmp_path / "trace.jsonl", items)).judgements["SIG-FAIL-001"]
    assert judgement.verdict == "FAIL"
    assert judgement.findings[0].exchanges == (2,)


@pytest.mark.parametrize(("began", "expected"), [("meanwhile", "INCONCLUSIVE"), ("afterwards", "FAIL")])
def test_silence_of_a_session_that_began_in_the_outage_is_none(began: str, expected: str, tmp_path: Path) -> None:
    """Who never spoke did not fall silent, whoever spoke before; a session that begins afterwards has no excuse."""
    on, off = mark("fault", kind="refuse", on=True), mark("fault", kind="refuse", on=False)
    other = [step("start", 1, "s2"), step("prompt", 2, "s2")]
    items = [*START, on, *other, off] if began == "meanwhile" else [*START, on, step("prompt", 1), off, *other]
    closing = [step("prompt", 3, "s2"), step("end", 4, "s1"), step("end", 5, "s2")]
    assert verdict(tmp_path, "SIG-FAIL-001", [*items, *closing]) == expected


UNDECIDED = {
    "no step mark": [hook("session-start"), ON, LOST, OFF],
    "no mark tells of a fault": [*START, step("prompt", 1), LOST, *GOES_ON],
    "a fault that came later is never switched off": [*START, step("prompt", 1), LOST, ON, *GOES_ON],
    "the fault is never switched off": [*START, ON, step("prompt", 1), LOST, *GOES_ON],
    "no end was given": [*START, ON, step("prompt", 1), LOST, OFF, step("prompt", 2)],
    "no prompt was given": [*START, ON, step("prompt", 1), LOST, OFF, step("end", 2)],
    "the steps came before the fault was over": [*START, ON, step("prompt", 1), LOST, *GOES_ON, OFF],
    "another fault came after": [*START, ON, step("prompt", 1), LOST, OFF, *GOES_ON, ON],
    "the start was refused with 409": [
        step("start"), hook("session-start", 409, {"error": "session claimed by legacy path"}),
        ON, step("prompt", 1), LOST, OFF, *GOES_ON,
    ],
    "a prompt was refused with 409": [
        *START, hook("user-prompt-submit", 409, {"error": "session claimed by legacy path"}),
        ON, step("prompt", 1), LOST, OFF, *GOES_ON,
    ],
    "a hook was set aside": [
        *START, hook("session-end", 200, {"memoriesSaved": 0, "skipped": True}), ON, step("prompt", 1), LOST, OFF,
        *GOES_ON,
    ],
    "a prompt was refused with 403": [
        *START, hook("user-prompt-submit", 403, {"error": "no"}), ON, step("prompt", 1), LOST, OFF, *GOES_ON,
    ],
    "another fault came between the steps": [
        *START, ON, step("prompt", 1), LOST, OFF, step("prompt", 2), ON, OFF, step("end", 3),
    ],
    "the token was refused": [
        step("start"), hook("session-start", 401, {"error": "authentication required"}),
        ON, step("prompt", 1), LOST, OFF, *GOES_ON,
    ],
    "the session is bypassed": [
        step("start"), hook("session-start", 200, {"inject": "", "memories": [], "bypassed": True}),
        ON, step("prompt", 1), LOST, OFF, *GOES_ON,
    ],
    "the bypass is set": [mark("bypass", on=True), *START, ON, step("prompt", 1), LOST, OFF, *GOES_ON],
    "the driver skipped a step": [
        *START, ON, step("prompt", 1), LOST, OFF, *GOES_ON, mark("skipped", index=3, reason="cannot"),
    ],
    "the scenario was cut short": [
        *START, ON, step("prompt", 1), LOST, OFF, *GOES_ON, mark("scenario_end", error="the connector hung"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("why", UNDECIDED)
def test_other_silence_decides_nothing(why: str, tmp_path: Path) -> None:
    """Where something else explains the silence, or nothing shows it, the requirement stays open."""
    judgement = judge(build(tmp_path / "trace.jsonl", UNDECIDED[why])).judgements["SIG-FAIL-001"]
    assert judgement.message == "the daemon was unreachable, and no prompt follows to show the next turn"


def test_a_hook_after_the_fault_is_no_silence(tmp_path: Path) -> None:
    """A single lifecycle hook after it is enough to leave the requirement open, a prompt to pass it."""
    items = [*START, ON, step("prompt", 1), LOST, OFF, step("prompt", 2), step("end", 3)]
    assert verdict(tmp_path, "SIG-FAIL-001", [*items, hook("session-end")]) == "INCONCLUSIVE"
    assert verdict(tmp_path, "SIG-FAIL-001", [*items, hook("user-prompt-submit")]) == "PASS"


def test_an_odd_answer_of_the_daemon_itself_decides_nothing(tmp_path: Path) -> None:
    """A session that the daemon set aside may be left alone: only a wrong shape that a fault made is a breach."""
    skipped = hook("user-prompt-submit", 200, {"skipped": True, "inject": "", "memoryCount": 0})
    items = [*START, ON, step("prompt", 1), skipped, OFF, *GOES_ON]
    assert verdict(tmp_path, "SIG-FAIL-005", items) == "INCONCLUSIVE"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (["end"], "FAIL"),
        (["end", "end"], "FAIL"),
        ([], "FAIL"),
        (["end", "prompt"], "INCONCLUSIVE"),
        (["clear"], "INCONCLUSIVE"),
    ],
)
def test_end_without_a_key_that_nobody_heard_at_first(asked: Sequence[str], expected: str, tmp_path: Path) -> None:
    """Where nothing listened at an end alone, no start was lost: the end that is told later names its session."""
    on, off = (mark("fault", kind="refuse", on=on) for on in (True, False))
    keyless = hook("session-end")
    end = {**keyless, "request": {**keyless["request"], "body": {"harness": "openclaw", "reason": "idle"}}}
    away = [step(kind, place + 2) for place, kind in enumerate(asked)]
    items = [*START, step("prompt", 1), hook("user-prompt-submit"), on, *away, off]
    assert verdict(tmp_path, "SIG-END-002", [*items, step("start", 9, "s2"), end]) == expected
    # What nobody hears later loses no start that came before.
    assert (
        verdict(tmp_path, "SIG-END-002", [*items, step("start", 9, "s2"), end, on, step("start", 10, "s3"), off])
        == expected
    )


@pytest.mark.parametrize(("kind", "expected"), [("refuse", "INCONCLUSIVE"), ("reset", "FAIL")])
def test_end_without_a_key_after_a_start_that_nobody_heard(kind: str, expected: str, tmp_path: Path) -> None:
    """Where nothing listened at the start, one without a key may have been lost: its end without a key is no breach."""
    off = mark("fault", kind=kind, on=False)
    keyless = hook("session-end")
    end = {**keyless, "request": {**keyless["request"], "body": {"harness": "openclaw", "reason": "idle"}}}
    items = [mark("fault", kind=kind, on=True), step("start"), off, step("prompt", 1), hook("user-prompt-submit")]
    assert verdict(tmp_path, "SIG-END-002", [*items, step("end", 2), end]) == expected


REFUSE = mark("fault", kind="refuse", on=True), mark("fault", kind="refuse", on=False)
DELAY = mark("fault", kind="delay", on=True), mark("fault", kind="delay", on=False)
MEMORY = {"method": "PATCH", "path": "/api/memory/m-1", "body": {"pinned": True, "reason": "r"}}


def test_a_memory_refused_with_409_is_no_reason(tmp_path: Path) -> None:
    """A row that somebody else has changed says nothing of the session."""
    conflict = {"request": MEMORY, "response": {"status": 409, "body": {"error": "version conflict"}}}
    assert verdict(tmp_path, "SIG-FAIL-001", [*START, conflict, ON, step("prompt", 1), LOST, OFF, *GOES_ON]) == "FAIL"


def test_who_was_only_heard_in_the_fault_may_fall_silent(tmp_path: Path) -> None:
    """A start that was lost shows that the connector speaks; that nothing followed is its silence."""
    lost = {**hook("session-start", error={"kind": "fault"}, fault={"kind": "reset"}), "response": None}
    assert verdict(tmp_path, "SIG-FAIL-001", [step("start"), ON, lost, OFF, *GOES_ON]) == "FAIL"


def test_who_was_never_heard_did_not_fall_silent(tmp_path: Path) -> None:
    """A connector without hooks gives no sign, fault or not."""
    on, off = REFUSE
    assert verdict(tmp_path, "SIG-FAIL-001", [step("start"), on, step("prompt", 1), off, *GOES_ON]) == "INCONCLUSIVE"


def test_a_failure_after_the_fault_was_over_is_another(tmp_path: Path) -> None:
    """What the daemon itself answered since is not undone by switching the fault off before."""
    items = [*START, ON, step("prompt", 1), OFF, step("prompt", 2), FAILED, *GOES_ON]
    assert verdict(tmp_path, "SIG-FAIL-003", items) == "INCONCLUSIVE"


def test_a_failed_recall_after_the_fault_was_over_is_another(tmp_path: Path) -> None:
    """Also where no hook of the session's own life was sent since."""
    recall = hook("recall", 500, {"error": "no"})
    items = [*START, step("prompt", 1), hook("user-prompt-submit"), ON, OFF, step("tool", 2), recall, *GOES_ON]
    assert verdict(tmp_path, "SIG-FAIL-003", items) == "INCONCLUSIVE"


def test_a_slow_daemon_is_not_away(tmp_path: Path) -> None:
    """Only a closed listener leaves no exchange; steps during another fault stand for no attempt."""
    on, off = DELAY
    items = [*START, on, step("prompt", 1), hook("user-prompt-submit"), off, *GOES_ON]
    assert verdict(tmp_path, "SIG-FAIL-001", items) == "NOT-APPLICABLE"


def test_a_fault_before_the_listener_was_closed_changes_nothing(tmp_path: Path) -> None:
    """Each fault is looked at by itself."""
    assert (
        verdict(tmp_path, "SIG-FAIL-001", [*START, *DELAY, REFUSE[0], step("prompt", 1), REFUSE[1], *GOES_ON]) == "FAIL"
    )


@pytest.mark.parametrize(
    ("bounds", "says"),
    [({}, "no bound is declared for prompt"), ({"prompt": 5}, "the delay was shorter than the bound")],
)
def test_why_a_slow_call_decides_nothing(bounds: Mapping[str, float], says: str, tmp_path: Path) -> None:
    """Nobody said how long is too long, or it did not take so long."""
    slow = hook("user-prompt-submit", fault={"kind": "delay"})
    judged = judge(build(tmp_path / "trace.jsonl", [slow], {"declared": {"bounds_s": bounds}}))
    assert says in judged.judgements["SIG-FAIL-002"].message


def test_a_session_that_began_later_in_the_outage_is_silent_too(tmp_path: Path) -> None:
    """Also where the outage had met another step before."""
    on, off = REFUSE
    items = [*START, on, step("prompt", 1), step("start", 2, "s2"), off, step("prompt", 3, "s2"), step("end", 4, "s2")]
    assert verdict(tmp_path, "SIG-FAIL-001", items) == "INCONCLUSIVE"


def test_silence_names_the_last_hook(tmp_path: Path) -> None:
    """The one after which nothing came."""
    items = [*START, hook("user-prompt-submit"), REFUSE[0], step("prompt", 1), REFUSE[1], *GOES_ON]
    judged = judge(build(tmp_path / "trace.jsonl", items)).judgements["SIG-FAIL-001"]
    assert judged.findings[0].exchanges == (3,)


def test_silence_after_a_bad_answer_names_that_answer(tmp_path: Path) -> None:
    """The answer may belong to a hook outside the session's lifecycle."""
    recall = hook("recall", 500, {"error": "no"})
    items = [*START, ON, step("prompt", 1), hook("user-prompt-submit"), step("tool", 2), recall, OFF, *GOES_ON]
    judged = judge(build(tmp_path / "trace.jsonl", items)).judgements["SIG-FAIL-003"]
    assert [finding.exchanges for finding in judged.findings] == [(7,)]


def test_a_fast_call_hides_no_slow_one(tmp_path: Path) -> None:
    """Each call that a fault slowed down is looked at."""
    slow = {**hook("user-prompt-submit", fault={"kind": "delay"}), "t1": 60}
    assert verdict(tmp_path, "SIG-FAIL-002", [*START, slow]) == "FAIL"


def test_who_said_nothing_in_the_turn_before_had_fallen_silent_already(tmp_path: Path) -> None:
    """What stopped a connector came before the fault: the fault did not."""
    spoken = [step("prompt", 1), hook("user-prompt-submit")]
    on, off = mark("fault", kind="refuse", on=True), mark("fault", kind="refuse", on=False)
    later = [on, step("prompt", 3), off, step("prompt", 4), step("end", 5)]
    assert verdict(tmp_path, "SIG-FAIL-001", [*START, *spoken, step("prompt", 2), *later]) == "INCONCLUSIVE"
    assert verdict(tmp_path, "SIG-FAIL-001", [*START, step("prompt", 2), *spoken, *later]) == "FAIL"
