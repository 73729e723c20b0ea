"""How the time of a step is told apart by the requests under way in it."""

from __future__ import annotations

from msgspec.structs import replace

from signet_conformance.outcome.time_spent import TimePart
from signet_conformance.running.stopwatch import time_in_flight
from signet_conformance.trace import Mark
from tests.support.trace_parts import exchange, trace


def test_time_counts_once_and_first_for_the_fault_that_holds_an_answer_back() -> None:
    """Of what overlaps, the held request takes all; what lies outside of every step is nobody's."""
    step = Mark(seq=1, t=10.0, name="step", data={"index": 0, "step": "start"})
    held = replace(exchange(2), t0=10.5, t1=12.5, fault={"kind": "delay", "delay_s": 2.0})
    beside = replace(exchange(3), t0=12.0, t1=13.0)
    late = replace(exchange(4), t0=13.5, t1=20.0)
    told = time_in_flight(trace(held, beside, late, marks=(step,)), [4.0])
    assert told == {TimePart.HELD_DELAY: (2.0, 1), TimePart.REQUESTS: (1.0, 2)}
