"""When a fault, an outage, a restart or the bypass was on, as the kit's own marks tell."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from math import inf

from signet_conformance.facts import Call, Recording
from signet_conformance.trace.fault_kinds import FAULT_KINDS
from signet_conformance.trace.marks import FaultMark, Switch


def is_disturbed(recording: Recording, call: Call) -> bool:
    """Whether a fault met the call, it ended with an error, or marks say that something was switched on meanwhile."""
    if call.fault is not None or call.error is not None:
        return True
    times = _disturbed_times(recording)
    place = bisect_left(times, call.seq, key=lambda time: time[0])
    return place > 0 and call.seq < times[place - 1][1]


def disturbed_between(recording: Recording, low: float, high: float) -> bool:
    """Whether marks say that a fault, an outage, a restart or the bypass was on somewhere between two numbers."""
    return any(since < high and until > low for since, until in _disturbed_times(recording))


def held_up_between(recording: Recording, low: float, high: float) -> bool:
    """Whether marks say that answers came slowly, or not at all, somewhere between two numbers."""
    times: list[tuple[int, float]] | None = recording.memo.get(held_up_between)
    if times is None:
        times = recording.memo[held_up_between] = list(switched_on(recording, _is_slow))
    return any(since < high and until > low for since, until in times)


def _is_slow(mark: Switch) -> bool:
    kind = FAULT_KINDS.get(mark.kind or "") if isinstance(mark, FaultMark) else None
    return kind is not None and kind.slow


def _disturbed_times(recording: Recording) -> list[tuple[int, float]]:
    """The numbers between which a fault, an outage, a restart or the bypass was on, in order."""
    times: list[tuple[int, float]] | None = recording.memo.get(_disturbed_times)
    if times is None:
        times = recording.memo[_disturbed_times] = list(switched_on(recording, lambda _: True))
    return times


def switched_on(recording: Recording, counts: Callable[[Switch], bool]) -> Iterator[tuple[int, float]]:
    """The numbers between which something was on that counts, in order."""
    since = 0
    on: set[str] = set()
    for mark in recording.kit_marks:
        if not isinstance(mark, Switch):
            continue
        identity = mark.identity if isinstance(mark, FaultMark) else mark.NAME
        if mark.is_on and counts(mark):
            since = since if on else mark.seq
            on.add(identity)
        elif not mark.is_on and identity in on:
            on.discard(identity)
            if not on:
                yield since, mark.seq
    if on:
        yield since, inf
