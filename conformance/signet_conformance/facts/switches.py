"""What the kit had switched on, and when: faults, outages, restarts, the bypass."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from math import inf

from signet_conformance.trace.fault_kinds import AWAY, FAULT_KINDS
from signet_conformance.trace.marks import FaultMark, KitMark, OutageMark, Switch

Times = Sequence[tuple[int, float]]
"""Pairs of numbers between which something was on, in order; infinite where it was never switched off."""


class Switches:
    """When something was on, as the marks of a recording tell. A time that is asked for lies between two numbers."""

    def __init__(self, marks: Iterable[KitMark]) -> None:
        self._marks = [mark for mark in marks if isinstance(mark, Switch)]

    def any_at(self, seq: int) -> bool:
        """Whether anything was on at an exchange."""
        place = bisect_left(self._any, seq, key=lambda time: time[0])
        return place > 0 and seq < self._any[place - 1][1]

    def any_between(self, low: float, high: float) -> bool:
        """Whether anything was on for a while."""
        return _overlap(self._any, low, high)

    def slow_between(self, low: float, high: float) -> bool:
        """Whether answers came slowly, or not at all, for a while."""
        return _overlap(self._slow, low, high)

    def closed_between(self, low: float, high: float) -> bool:
        """Whether the daemon's listener was closed for a while: what a connector tried then was never recorded."""
        return _overlap(self._closed, low, high)

    @cached_property
    def outage_lasts(self) -> bool:
        """Whether the daemon was away until the end of the recording."""
        return any(until == inf for _, until in self._times(_takes_daemon_away))

    @cached_property
    def troubles(self) -> Times:
        """When a fault of the recorder or an outage was on."""
        return self._times(lambda mark: isinstance(mark, OutageMark) or _is_fault(mark))

    @cached_property
    def interruptions(self) -> Times:
        """When a fault, an outage or a restart of the daemon was on."""
        return self._times(lambda mark: isinstance(mark, OutageMark | FaultMark))

    @cached_property
    def _any(self) -> Times:
        return self._times(lambda _: True)

    @cached_property
    def _slow(self) -> Times:
        return self._times(_is_slow)

    @cached_property
    def _closed(self) -> Times:
        return self._times(_closes_listener)

    def _times(self, counts: Callable[[Switch], bool]) -> Times:
        times: list[tuple[int, float]] = []
        since = 0
        on: set[str] = set()
        for mark in self._marks:
            identity = mark.identity if isinstance(mark, FaultMark) else mark.NAME
            if mark.is_on and counts(mark):
                since = since if on else mark.seq
                on.add(identity)
            elif not mark.is_on and identity in on:
                on.discard(identity)
                if not on:
                    times.append((since, mark.seq))
        return [*times, (since, inf)] if on else times


def _is_fault(mark: Switch) -> bool:
    return isinstance(mark, FaultMark) and not mark.is_restart


def _takes_daemon_away(mark: Switch) -> bool:
    return isinstance(mark, OutageMark) or (isinstance(mark, FaultMark) and mark.kind in AWAY | {"hang"})


def _is_slow(mark: Switch) -> bool:
    kind = FAULT_KINDS.get(mark.kind or "") if isinstance(mark, FaultMark) else None
    return kind is not None and kind.slow


def _overlap(times: Iterable[tuple[int, float]], low: float, high: float) -> bool:
    return any(since < high and until > low for since, until in times)


def _closes_listener(mark: Switch) -> bool:
    return isinstance(mark, OutageMark) or (isinstance(mark, FaultMark) and mark.kind == "refuse")
