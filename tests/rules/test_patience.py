"""Facts about slow answers: how long a connector and its host had to wait, and when a busy machine explains it.

A prompt has five seconds by its connector's declaration, and a start fifteen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge
from signet_conformance.finding import Judgement
from tests.support.case_traces import build

from .step_items import Item, hook, mark, step

LEFT, LOST = ({"response": None, "error": {"kind": kind}} for kind in ("client_closed", "upstream_reset"))
PASS, WARN, OPEN, NONE = "PASS", "WARN", "INCONCLUSIVE", "NOT-APPLICABLE"


def slow(kind: str, asked_s: float, lasted_s: float, delay_s: float, **more: Any) -> list[Item]:
    """A step of the user, and its hook: sent so long after the step began, and over after so long."""
    operation = {"start": "session-start", "prompt": "user-prompt-submit"}[kind]
    times: Item = {"t0": 1 + asked_s, "t1": 1 + asked_s + lasted_s}
    return [step(kind, index=0), hook(operation, fault={"kind": "delay", "delay_s": delay_s}, **times, **more)]


def stopped(kind: str, ms: float | None, event: str | None = None) -> Item:
    """A handler that its host stopped after so many milliseconds."""
    event = event or {"start": "SessionStart", "prompt": "UserPromptSubmit"}[kind]
    return mark("handler", index=0, event=event, outcome="timed_out", **({} if ms is None else {"ms": ms}))


def judged(folder: Path, items: Sequence[Item]) -> Judgement:
    """SIG-FAIL-006 over these items."""
    trace = build(folder / "trace.jsonl", items, shared=False)
    return judge(trace, frozenset({"SIG-FAIL-006"})).judgements["SIG-FAIL-006"]


AWAITED: Mapping[str, tuple[float, float, Mapping[str, Any], str]] = {
    # when the prompt was sent, how long it took, how it ended
    "sent after a quarter of the time": (1.25, 2.5, {}, PASS),
    "sent nearly after a quarter of the time": (1.2, 2.5, {}, PASS),
    "left as long before the answer as clocks may differ": (0.0, 2.25, LEFT, OPEN),
    "answered as long too early as clocks may differ": (0.0, 2.25, {}, PASS),
    "answered too early": (0.0, 2.0, {}, OPEN),
    "answered before four fifths of the time": (0.0, 3.9, {}, PASS),
    "answered after four fifths of the time": (0.0, 4.0, {}, PASS),
    "answered later than that": (0.0, 4.1, {}, OPEN),
}


@pytest.mark.parametrize("case", AWAITED)
def test_an_answer_that_comes_after_half_of_the_time(case: str, tmp_path: Path) -> None:
    """It is used if the machine left the connector the time for it."""
    asked_s, lasted_s, end, expected = AWAITED[case]
    assert judged(tmp_path, slow("prompt", asked_s, lasted_s, 2.5, **end)).verdict == expected


@pytest.mark.parametrize(
    ("asked_s", "ms", "expected"),
    [
        (1.0, 5500, WARN),
        (1.0, 5499, OPEN),
        (1.125, 5825, OPEN),
        (0.25, 3750, OPEN),
        (0.25, 4150, WARN),
    ],
    ids=["twice as long as it took to ask", "less", "less, of a slower one", "less than a quarter", "over a quarter"],
)
def test_a_hook_had_time_left_when_its_answer_came(asked_s: float, ms: float, expected: str, tmp_path: Path) -> None:
    """It is its own fault to be stopped if it had twice the time left that it took to ask, and a quarter of all."""
    items = [*slow("prompt", asked_s, 2.5, 2.5), stopped("prompt", ms)]
    assert judged(tmp_path, items).verdict == expected


def test_the_first_hook_that_was_stopped_is_told(tmp_path: Path) -> None:
    """Another one of the same event may be stopped later."""
    items = [*slow("prompt", 0.0, 2.5, 2.5), stopped("prompt", 6000), stopped("prompt", 9000, "PromptAgain")]
    assert "was lost: the host stopped UserPromptSubmit after 6.0 s" in judged(tmp_path, items).message


STOPPED: Mapping[str, tuple[float, float, Mapping[str, Any], Sequence[float], str]] = {
    # when the start was sent, how long it took, how it ended, after how many milliseconds its handlers were stopped
    "shortly before the declared time": (0.5, 14.0, LEFT, [14490], WARN),
    "as long before the declared time as clocks may differ": (0.5, 14.0, LEFT, [14500], NONE),
    "within a second": (0.0, 0.8, LEFT, [900], WARN),
    "a second after the connector left": (0.5, 8.5, LEFT, [10000], NONE),
    "after a quarter of its time it asked": (2.5, 7.5, LEFT, [10000], WARN),
    "after its answer had been lost": (0.5, 9.5, LOST, [10000], NONE),
    "after its answer had come": (0.5, 9.5, {}, [10000], NONE),
    "at its own time, and another one before": (0.5, 9.5, LEFT, [15000, 10000], WARN),
    "after it asked late, and another one that had not": (3.0, 10.0, LEFT, [11900, 12100], WARN),
}


@pytest.mark.parametrize("case", STOPPED)
def test_a_hook_that_its_host_stopped_before_its_own_time(case: str, tmp_path: Path) -> None:
    """The settings gave it less time than its connector declares, if it waited until then."""
    asked_s, lasted_s, end, times, expected = STOPPED[case]
    items = [*slow("start", asked_s, lasted_s, 17.0, **end), *(stopped("start", ms) for ms in times)]
    assert judged(tmp_path, items).verdict == expected
