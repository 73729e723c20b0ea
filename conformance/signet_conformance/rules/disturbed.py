"""When a fault, an outage, a restart or the bypass was on, as the kit's own marks tell."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from math import inf

from signet_conformance.facts import Call, Recording
from signet_conformance.trace.fault_kinds import FAULT_KINDS
from signet_conformance.trace.marks import FaultMark, Switch


def is_disturbed(recording: Recording, call: Call) -> bool:
    """Whether a fault met the call, it ended with an error, or marks say that something was switched on meanwhile."""
    if call.fault is not None or call.error is not None:
        return True
    times = switched_on(recording, _any)
    place = bisect_left(times, call.seq, key=lambda time: time[0])
    return place > 0 and call.seq < times[place - 1][1]


def disturbed_between(recording: Recording, low: float, high: float) -> bool:
    """Whether marks say that a fault, an outage, a restart or the bypass was on somewhere between two numbers."""
    return was_on_between(recording, _any, low, high)


def held_up_between(recording: Recording, low: float, high: float) -> bool:
    """Whether marks say that answers came slowly, or not at all, somewhere between two numbers."""
    return was_on_between(recording, _is_slow, low, high)


def _any(_mark: Switch) -> bool:
    return True


def _is_slow(mark: Switch) -> bool:
    kind = FAULT_KINDS.get(mark.kind or "") if isinstance(mark, FaultMark) else None
    return kind is not None and kind.slow


def was_on_between(recording: Recording, counts: Callable[[Switch], bool], low: float, high: float) -> bool:
    """Whether something that counts was on somewhere between two numbers; `counts` is a function of a module."""
    return any(since < high and until > low for since, until in switched_on(recording, counts))


def switched_on(recording: Recording, counts: Callable[[Switch], bool]) -> Sequence[tuple[int, float]]:
    """The numbers between which something was on that counts, in order; `counts` is a function of a module."""
    times: Sequence[tuple[int, float]] | None = recording.memo.get((switched_on, counts))
    if times is None:
        times = recording.memo[switched_on, counts] = list(_times(recording, counts))
    return times


def _times(recording: Recording, counts: Callable[[Switch], bool]) -> Iterator[tuple[int, float]]:
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
