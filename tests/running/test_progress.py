"""Facts about the progress of a run in a log."""

from __future__ import annotations

import io
from itertools import count

from signet_conformance.running.progress import DrivingStarted, ScenarioPerformed, show_progress


def test_scenarios_that_break_off_alike_are_told_once() -> None:
    """Each reason has a line with the first scenario; how many broke off is counted beside those performed."""
    out, times = io.StringIO(), count()
    with show_progress(out, clock=lambda: float(next(times))) as tell:
        tell(DrivingStarted(4, 0))
        tell(ScenarioPerformed("a", "acme ended\ntry: again"))
        tell(ScenarioPerformed("b", "acme ended\ntry: something else"))
        tell(ScenarioPerformed("c", "acme is lost"))
        tell(ScenarioPerformed("d"))
    assert out.getvalue().splitlines() == [
        "a broke off: acme ended",
        "c broke off: acme is lost",
        "4/4 scenarios, 3 broke off, 5 s",
    ]
