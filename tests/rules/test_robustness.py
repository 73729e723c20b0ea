"""Facts about what a connector does in trouble: which handlers are slow by themselves, and who has to work again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge
from signet_conformance.finding import Judgement
from tests.support.case_traces import DECLARED, build

from .step_items import CLOSED, LOADED, OPENED, RESET_OFF, RESET_ON, Item, hook, mark, prompt, start, step

FAIL, WARN, NONE = "FAIL", "WARN", "NOT-APPLICABLE"


def judged(folder: Path, requirement: str, items: Sequence[Item], **declared: Any) -> Judgement:
    """A requirement over these items."""
    header = {"declared": {**DECLARED, **declared}}
    return judge(build(folder / "trace.jsonl", items, header, shared=False), frozenset({requirement})).judgements[
        requirement
    ]


def handled(index: int, kind: str = "prompt", outcome: str = "slow", **more: Any) -> list[Item]:
    """A step in which a handler took long, or ended otherwise; `calls` are its requests."""
    calls = more.pop("calls", [])
    data = {"event": "UserPromptSubmit", "ms": 7200, "late_ms": 5.0, **more}
    return [step(kind, index=index), *calls, mark("handler", index=index, outcome=outcome, **data)]


def lasting(t0: float, seconds: float) -> Item:
    """A prompt that was answered after so many seconds."""
    return {**prompt(), "t0": t0, "t1": t0 + seconds}


TWO = [*handled(8), *handled(9)]
SLOW: Mapping[str, tuple[Sequence[Item], str]] = {
    "in four steps": ([*handled(6), *handled(7), *TWO], WARN),
    "in three steps in which others failed": (
        [*handled(1, outcome="failed"), *handled(2, outcome="timed_out"), *handled(7), *TWO],
        WARN,
    ),
    "in two steps, and failed in another": ([*handled(1, outcome="failed"), *TWO], NONE),
    "in two steps, and stopped in another": ([*handled(1, outcome="timed_out"), *TWO], NONE),
    "outside of any step, and in two steps": ([handled(6)[-1], *TWO], NONE),
    "in steps without a bound": ([*handled(1, "compact"), *handled(2, "compact"), *handled(3, "compact")], NONE),
    "beside one that is slow in one step": ([*handled(6, event="SessionStart"), *handled(7), *TWO], WARN),
    "while an answer took a quarter of the bound": ([*handled(1, calls=[lasting(2.0, 1.25)]), *TWO], NONE),
    "while an answer took more than that": ([*handled(1, calls=[lasting(1.0, 1.5)]), *TWO], NONE),
    "while an answer took a little more": ([*handled(1, calls=[lasting(2.0, 1.375)]), *TWO], NONE),
    "while an answer took less": ([*handled(1, calls=[lasting(2.0, 1.0)]), *TWO], WARN),
    "with a timer as late as a tenth of the bound": ([*handled(7, late_ms=500), *TWO], WARN),
    "with a timer later than that": ([*handled(7, late_ms=500.25), *TWO], NONE),
}


@pytest.mark.parametrize("case", SLOW)
def test_which_handlers_are_slow_by_themselves(case: str, tmp_path: Path) -> None:
    """Those over the bound in three steps, with answers at once and no timer late by over a tenth of the bound."""
    items, expected = SLOW[case]
    assert judged(tmp_path, "SIG-FAIL-002", items).verdict == expected


def test_the_shortest_time_of_a_slow_handler_is_told(tmp_path: Path) -> None:
    """In seconds."""
    items = [*handled(7, ms=90000), *handled(8, ms=60000), *handled(9, ms=70000)]
    assert "UserPromptSubmit takes 60.0 s or more in 3 steps" in judged(tmp_path, "SIG-FAIL-002", items).message


@pytest.mark.parametrize(
    "items", [[CLOSED, step("prompt")], [CLOSED, OPENED, step("prompt")]], ids=["for ever", "before the step"]
)
def test_a_listener_closed_outside_of_any_turn_or_for_ever_shows_nothing(items: Sequence[Item], tmp_path: Path) -> None:
    """What is tried while nothing listens is not recorded, and no turn follows."""
    assert judged(tmp_path, "SIG-FAIL-001", items).verdict == NONE


LOST = {**prompt(), "response": None, "fault": {"kind": "reset"}, "error": {"kind": "fault"}}
TROUBLE = [RESET_ON, step("prompt"), LOST, RESET_OFF]
TURN = step("prompt")


def refused(operation: str, status: int) -> Item:
    """A hook that the daemon refused."""
    return {**hook(operation), "response": {"status": status, "body": {"error": "no"}}}


RECOVERIES: Mapping[str, tuple[Sequence[Item], str]] = {
    "heard again in the first of two turns": ([step("start"), start(), *TROUBLE, TURN, prompt(), TURN], "PASS"),
    "silent in three turns": ([step("start"), start(), *TROUBLE, TURN, TURN, TURN], FAIL),
    "silent, and opened anew after another outage": (
        [step("start"), start(), *TROUBLE, TURN, TURN, CLOSED, TURN, OPENED, LOADED], FAIL
    ),
    "silent after a second trouble, and opened anew after the first": (
        [step("start"), start(), *TROUBLE, LOADED, *TROUBLE, TURN, TURN], FAIL
    ),
    "silent after an end that was refused": (
        [step("start"), start(), refused("session-end", 409), *TROUBLE, TURN, TURN], FAIL
    ),
    "silent after a prompt that was refused": (
        [step("start"), start(), refused("user-prompt-submit", 409), *TROUBLE, TURN, TURN], FAIL
    ),
    "silent after a start that failed": (
        [step("start"), {**refused("session-start", 503), "fault": {"kind": "status"}}, start(), *TROUBLE, TURN, TURN],
        FAIL,
    ),
    "silent after a start that was refused": (
        [step("start"), refused("session-start", 409), *TROUBLE, TURN, TURN], NONE
    ),
    "silent after a first start when the trouble was over": (
        [RESET_ON, RESET_OFF, step("start"), start(), TURN, TURN], NONE
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", RECOVERIES)
def test_who_has_to_work_again(case: str, tmp_path: Path) -> None:
    """A session that had hooks before, whose start was not refused, and that was not opened anew in those turns."""
    items, expected = RECOVERIES[case]
    assert judged(tmp_path, "SIG-FAIL-007", items).verdict == expected


@pytest.mark.parametrize(
    ("declared", "verdict", "expected"),
    [
        ({}, FAIL, "hooks for the turns after it"),
        ({"recovers_s": 2.0}, FAIL, "hooks for the turns after it, 2 s later"),
        ({"recovers_s": 2.25}, "INCONCLUSIVE", ""),
    ],
)
def test_a_connector_has_the_time_that_its_target_declares(
    declared: Mapping[str, float], verdict: str, expected: str, tmp_path: Path
) -> None:
    """Counted from the end of the trouble to that of the recording."""
    judgement = judged(tmp_path, "SIG-FAIL-007", [step("start"), start(), *TROUBLE, TURN, TURN], **declared)
    assert (judgement.verdict, judgement.findings[0].expected) == (verdict, expected)


def test_a_wait_of_unknown_length_adds_no_time(tmp_path: Path) -> None:
    """If a wait has no number of seconds, no time is added, and the rule raises no error."""
    items = [step("start"), start(), *TROUBLE, TURN, step("wait", seconds="soon"), TURN]
    judgement = judged(tmp_path, "SIG-FAIL-007", items, recovers_s=3.25)
    assert "the recording ends 3 s after the trouble was over" in judgement.message
