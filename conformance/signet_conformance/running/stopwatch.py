"""Takes the time of a run: what each of its threads is at, and how long each phase lasts."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from signet_conformance.children.deadline import cpu_taken
from signet_conformance.outcome.time_spent import Part, TimeSpent
from signet_conformance.running.held_requests import under_way
from signet_conformance.trace import Trace

LOADING = "loading"
DRIVING = "driving"
JUDGING = "judging"
REPORTS = "reports"
KIT = "kit"


class Stopwatch:
    """The time of one run. With `detailed`, what happened within steps is told too, for which traces are read."""

    def __init__(self, *, detailed: bool = False) -> None:
        self.detailed = detailed
        self.workers = 0
        self._lock = threading.Lock()
        self._seconds: defaultdict[Part, float] = defaultdict(float)
        self._times: Counter[Part] = Counter()
        self._threads = threading.local()
        self._phases: dict[str, float] = {}
        self._cpu_before = cpu_taken()

    @contextmanager
    def on(self, part: Part) -> Iterator[None]:
        """Within it, this thread is at `part`; what it was at before pauses meanwhile."""
        stack: list[Part] = self._threads.__dict__.setdefault("stack", [])
        self._lap(stack)
        stack.append(part)
        try:
            yield
        finally:
            self._lap(stack)
            stack.pop()
            with self._lock:
                self._times[part] += 1

    def _lap(self, stack: Sequence[Part]) -> None:
        now = time.perf_counter()
        if stack:
            with self._lock:
                self._seconds[stack[-1]] += now - self._threads.since
        self._threads.since = now

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Within it, the run is in this phase."""
        began = time.perf_counter()
        self._phases.setdefault(LOADING, _age_s())
        try:
            yield
        finally:
            self._phases[name] = self._phases.get(name, 0.0) + time.perf_counter() - began

    def worked(self, ended: Sequence[float]) -> None:
        """Take in when each worker had nothing left to do, on the clock `time.perf_counter`; now all have."""
        now = time.perf_counter()
        with self._lock:
            self.workers = max(self.workers, len(ended))
            self._seconds[Part.NO_WORK] += sum(now - each for each in ended)
            self._times[Part.NO_WORK] += len(ended)

    def look_into_steps(self, trace: Trace, took_s: Sequence[float]) -> None:
        """Tell the time of steps apart by the requests under way in them; `took_s` of each step in the trace."""
        told = under_way(trace, took_s)
        with self._lock:
            for part, (seconds, times) in told.items():
                self._seconds[part] += seconds
                self._times[part] += times
                self._seconds[Part.CONNECTOR] -= seconds

    def read(self) -> TimeSpent:
        """Where the time went until now."""
        before = self._cpu_before
        cpu = {name: taken - before.get(name, 0.0) for name, taken in cpu_taken().items()}
        with self._lock:
            parts = {part: (max(0.0, self._seconds[part]), self._times[part]) for part in Part if self._times[part]}
        return TimeSpent(self.workers, dict(self._phases), parts, {KIT: time.process_time(), **_by_kind(cpu)})


def _by_kind(cpu: Mapping[str, float]) -> Mapping[str, float]:
    """CPU time by kind of program: processes are known by their names in messages."""
    kinds: defaultdict[str, float] = defaultdict(float)
    for name, seconds in cpu.items():
        kind = next((kind for kind in ("recorder", "model", "daemon") if kind in name.split()), "connector")
        kinds[kind] += seconds
    return dict(sorted(kinds.items()))


def _age_s() -> float:
    """Seconds since this process was started; 0.0 where the system does not tell."""
    try:
        started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, AttributeError):
        return 0.0
