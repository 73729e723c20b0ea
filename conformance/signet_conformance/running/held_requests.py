"""How long requests were under way while the steps of a recording were performed, and which fault held them back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from signet_conformance.outcome.time_spent import Part
from signet_conformance.trace import Trace
from signet_conformance.trace.fault_kinds import SLOW
from signet_conformance.trace.marks import StepMark

_HELD = {"delay": Part.HELD_DELAY, "slow_body": Part.HELD_SLOW_BODY, "hang": Part.HELD_HANG}
assert set(_HELD) == SLOW  # noqa: S101 - a slow kind without a part would be told as the daemon's own time


def under_way(trace: Trace, took_s: Sequence[float]) -> Mapping[Part, tuple[float, int]]:
    """Seconds and number of the requests under way within steps: those that a fault held back apart from the others.

    `took_s` holds the seconds that each step took, in the order of their marks. Where several requests are under way
    at once, time counts once, for one that is held back before any other.
    """
    marks = (mark for mark in trace.marks if mark.name == StepMark.NAME)
    steps = [(mark.t, mark.t + took) for mark, took in zip(marks, took_s, strict=False)]
    seconds: dict[Part, float] = {}
    times: Counter[Part] = Counter()
    spans: dict[Part, list[tuple[float, float]]] = {}
    for exchange in trace.exchanges:
        kind = (exchange.fault or {}).get("kind")
        part = _HELD.get(kind, Part.REQUESTS) if isinstance(kind, str) else Part.REQUESTS
        spans.setdefault(part, []).extend(
            (max(begin, exchange.t0), min(end, exchange.t1))
            for begin, end in steps
            if begin < exchange.t1 and exchange.t0 < end
        )
        times[part] += 1
    covered: list[tuple[float, float]] = []
    for part in (*_HELD.values(), Part.REQUESTS):
        before = _length(covered)
        covered += spans.get(part, [])
        seconds[part] = _length(covered) - before
    return {part: (seconds[part], count) for part, count in times.items()}


def _length(spans: Sequence[tuple[float, float]]) -> float:
    """The length of the union of some spans."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total
