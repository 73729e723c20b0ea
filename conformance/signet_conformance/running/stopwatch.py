"""The time of a run: how long its threads spend on each part, and how long each phase lasts."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from signet_conformance.children.deadline import cpu_taken
from signet_conformance.outcome.time_spent import TimePart, TimeSpent
from signet_conformance.trace import Trace
from signet_conformance.trace.fault_kinds import SLOW
from signet_conformance.trace.marks import StepMark

LOADING = "loading"
DRIVING = "driving"
JUDGING = "judging"
REPORTS = "reports"
KIT = "kit"
_HELD = {"delay": TimePart.HELD_DELAY, "slow_body": TimePart.HELD_SLOW_BODY, "hang": TimePart.HELD_HANG}
assert set(_HELD) == SLOW  # noqa: S101 - otherwise the delay of a new slow kind would count as the daemon's own time


class Stopwatch:
    """The time of one run. With `detailed` the time within steps is split too, which reads traces."""

    def __init__(self, *, detailed: bool = False) -> None:
        self.detailed = detailed
        self.workers = 0
        self._lock = threading.Lock()
        self._seconds: defaultdict[TimePart, float] = defaultdict(float)
        self._times: Counter[TimePart] = Counter()
        self._threads = threading.local()
        self._phases: dict[str, float] = {}
        self._cpu_before = cpu_taken()

    @contextmanager
    def on(self, part: TimePart) -> Iterator[None]:
        """Count this thread's time in the block for `part`; that of the enclosing block pauses."""
        stack: list[TimePart] = self._threads.__dict__.setdefault("stack", [])
        self._lap(stack)
        stack.append(part)
        try:
            yield
        finally:
            self._lap(stack)
            stack.pop()
            with self._lock:
                self._times[part] += 1

    def _lap(self, stack: Sequence[TimePart]) -> None:
        now = time.perf_counter()
        if stack:
            with self._lock:
                self._seconds[stack[-1]] += now - self._threads.since
        self._threads.since = now

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time in the block for a phase of the run."""
        began = time.perf_counter()
        self._phases.setdefault(LOADING, _age_s())
        try:
            yield
        finally:
            self._phases[name] = self._phases.get(name, 0.0) + time.perf_counter() - began

    def note_idle(self, ended: Sequence[float]) -> None:
        """Count each worker's time since it `ended`, an instant of `time.perf_counter`. All have ended by now."""
        now = time.perf_counter()
        with self._lock:
            self.workers = max(self.workers, len(ended))
            self._seconds[TimePart.NO_WORK] += sum(now - each for each in ended)
            self._times[TimePart.NO_WORK] += len(ended)

    def look_into_steps(self, trace: Trace, took_s: Sequence[float]) -> None:
        """Split the time of steps by the requests in flight; `took_s` are the seconds of each step in the trace."""
        parts = time_in_flight(trace, took_s)
        with self._lock:
            for part, (seconds, times) in parts.items():
                self._seconds[part] += seconds
                self._times[part] += times
                self._seconds[TimePart.CONNECTOR] -= seconds

    def time_spent(self) -> TimeSpent:
        """Return the time of each part and phase until now."""
        before = self._cpu_before
        cpu = {name: taken - before.get(name, 0.0) for name, taken in cpu_taken().items()}
        with self._lock:
            parts = {part: (max(0.0, self._seconds[part]), self._times[part]) for part in TimePart if self._times[part]}
        return TimeSpent(self.workers, dict(self._phases), parts, {KIT: time.process_time(), **_by_kind(cpu)})


def _by_kind(cpu: Mapping[str, float]) -> Mapping[str, float]:
    # The names are those that messages give to processes.
    kinds: defaultdict[str, float] = defaultdict(float)
    for name, seconds in cpu.items():
        kind = next((kind for kind in ("recorder", "model", "daemon") if kind in name.split()), "connector")
        kinds[kind] += seconds
    return dict(sorted(kinds.items()))


def _age_s() -> float:
    """Return the seconds since this process started; 0.0 where the system does not say."""
    try:
        started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, AttributeError):
        return 0.0


def time_in_flight(trace: Trace, took_s: Sequence[float]) -> Mapping[TimePart, tuple[float, int]]:
    """Return how long requests were in flight within steps, and the number of all requests, by fault.

    `took_s` are the seconds of each step in the order of the marks. Time with several requests counts once, first for
    one that a fault holds back.
    """
    marks = (mark for mark in trace.marks if mark.name == StepMark.NAME)
    steps = [(mark.t, mark.t + took) for mark, took in zip(marks, took_s, strict=False)]
    seconds: dict[TimePart, float] = {}
    times: Counter[TimePart] = Counter()
    spans: dict[TimePart, list[tuple[float, float]]] = {}
    for exchange in trace.exchanges:
        kind = (exchange.fault or {}).get("kind")
        part = _HELD.get(kind, TimePart.REQUESTS) if isinstance(kind, str) else TimePart.REQUESTS
        spans.setdefault(part, []).extend(
            (max(begin, exchange.t0), min(end, exchange.t1))
            for begin, end in steps
            if begin < exchange.t1 and exchange.t0 < end
        )
        times[part] += 1
    covered: list[tuple[float, float]] = []
    for part in (*_HELD.values(), TimePart.REQUESTS):
        before = _length(covered)
        covered += spans.get(part, [])
        seconds[part] = _length(covered) - before
    return {part: (seconds[part], count) for part, count in times.items()}


def _length(spans: Sequence[tuple[float, float]]) -> float:
    """The length of the union."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total
