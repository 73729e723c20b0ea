"""Deadlines for a child, extended while it works on a busy machine; CPU time of processes."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

PRESSURE = Path("/proc/pressure/cpu")
"""The file in which Linux counts the microseconds in which some program waited for a processor."""
MOST_TIMES = 4
"""An extended deadline is at most this many times the original one."""
IDLE_S = 5.0
"""A child that used no CPU for this many seconds gets no extra time: it hangs."""
_LOOK_S = 1.0


class Deadline:
    """The end of `timeout_s` seconds on `clock`, or later.

    On a machine with more work than processors every program is slow. So the time in which some program waited for a
    processor is added, as long as `worked`, the CPU seconds of the child, grows. A system that does not count that time
    adds nothing.
    """

    def __init__(
        self, timeout_s: float, worked: Callable[[], float], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._timeout_s = timeout_s
        self._worked = worked
        self._clock = clock
        self._begun = clock()
        self._waited_s = _waited_at(int(time.monotonic()))
        self._work = -1.0
        self._last_work = self._last_look = self._begun

    def left_s(self) -> float:
        """Return the seconds that are left; 0 when it is over."""
        now = self._clock()
        left_s = self._begun + self._timeout_s - now
        return max(0.0, left_s if left_s > 0 else left_s + self._more_s(now))

    def words(self) -> str:
        """Describe how long the wait was, as in `no answer within 30 s`."""
        beyond_s = self._clock() - self._begun - self._timeout_s
        given = f", nor in {beyond_s:.0f} s more, which it got because the machine is busy" if beyond_s >= 1 else ""
        return f"within {self._timeout_s:g} s{given}"

    def _more_s(self, now: float) -> float:
        waited_s = waited_for_a_processor()
        if self._waited_s is None or waited_s is None:
            return 0.0
        if self._work < 0 or now - self._last_look >= _LOOK_S:
            work, self._last_look = self._worked(), now
            if work > self._work:
                self._work, self._last_work = work, now
        if now - self._last_work > IDLE_S:
            return 0.0
        return min(waited_s - self._waited_s, (MOST_TIMES - 1) * self._timeout_s)


def waited_for_a_processor() -> float | None:
    """Return the seconds since boot in which some program waited for a processor; None if they are not counted."""
    try:
        some = PRESSURE.read_bytes().splitlines()[0]
        return int(some.rpartition(b"total=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return None


@lru_cache(maxsize=1)
def _waited_at(_second: int) -> float | None:
    """The waiting time at this second, cached: reading it for each answer of a child would take long."""
    return waited_for_a_processor()


_lock = threading.Lock()
_taken: defaultdict[str, float] = defaultdict(float)


def note_cpu(name: str, seconds: float) -> None:
    """Add the CPU seconds of a process, with those of the children that it has waited for."""
    with _lock:
        _taken[name] += seconds


def cpu_taken() -> Mapping[str, float]:
    """CPU seconds by name, since this process began."""
    with _lock:
        return dict(_taken)


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process and of the children that it has waited for; 0.0 where nothing tells.

    The process may have ended, as long as nothing has waited for it.
    """
    import psutil

    try:
        return float(sum(psutil.Process(pid).cpu_times()[:4]))
    except psutil.Error:
        return 0.0


def cpu_with_descendants(pid: int) -> float:
    """Return the CPU seconds of a process and its living descendants; one that ends meanwhile may count twice."""
    import psutil

    try:
        below = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        below = []
    return sum(map(cpu_of, (pid, *(process.pid for process in below))))
