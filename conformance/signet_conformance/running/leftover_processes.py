"""Watches processes of a connector that keep running after its harness has ended."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import PurePath

import psutil

from signet_conformance.children.environment import marked_processes
from signet_conformance.drivers.process import redact
from signet_conformance.errors import printable
from signet_conformance.facts import FIRST_CALLS, Recording
from signet_conformance.trace import Trace
from signet_conformance.trace.marks import LeftMark

PATIENCE_S = 30.0
"""How long a process may go on after its harness."""
MOST_WATCHED = 2
"""Watched is what two scenarios leave: a memory server that never exits would cost the time once for each session."""
_MOMENT_S = 1.0
_MOST_TIMES = 4
_TIMES_AS_LATE = 3
"""So many times the longest delay of a late request is what others have."""
_UNTOLD_S = 2.0
"""A wait of this many seconds needs no note."""
_LOOKS, _LOOK_S = 5, 0.1
_LONGEST_COMMAND = 300
_DAEMON = re.compile(r"(?:signet[-_])?daemon(?:\.\w+)?")
"""The name of the program, or a word of its arguments, by which a Signet daemon is known."""


class LeftBehind:
    """Processes of connectors that outlive their harness, and may send requests until the next scenario begins.

    The first scenarios watch their processes until these end, for at most `patience_s`, and measure the delay of their
    requests. Processes of later scenarios get three times that delay. `note` is called with the seconds that a long
    wait may take. `is_hurried` returns True if nobody waits for the result.
    """

    def __init__(self, patience_s: float = PATIENCE_S, most: int = MOST_WATCHED) -> None:
        self._patience_s = patience_s
        self._unwatched = most
        self._under_way = 0
        self._late_s = 0.0
        self._changed = threading.Condition()
        self.note: Callable[[float], None] = lambda _: None
        self.is_hurried: Callable[[], bool] = lambda: False

    def watch(self, most: int) -> None:
        """Watch what the next `most` scenarios leave."""
        self._unwatched = most

    def conclude(self, mark: str, latest: Callable[[], float]) -> Sequence[LeftMark]:
        """Wait for what carries the mark of a connector whose harness has ended, and end it.

        `latest` gives the time of what the connector told last, on the monotonic clock. Returns the marks that say
        what was left; none if its time was cut short.
        """
        since = time.monotonic()
        left = _living(mark)
        if not left:
            return [LeftMark()]
        watched = self._begin()
        if watched:
            staying = self._staying(left, since)
        else:
            staying = self._await_end(left, since + _TIMES_AS_LATE * self._late_s)
        late_s = latest() - since
        with self._changed:
            self._late_s = max(self._late_s, late_s)
            self._under_way -= watched
            self._changed.notify_all()
        is_decided = not staying or (watched and not self.is_hurried())
        marks = [_describe(process, self._patience_s) for process in staying] or [LeftMark()]
        _end(staying)
        return marks if is_decided else ()

    def _begin(self) -> bool:
        """Whether this scenario is one of the watched; if it is not, wait until those are decided."""
        with self._changed:
            if self._unwatched:
                self._unwatched -= 1
                self._under_way += 1
                return True
            while self._under_way and not self.is_hurried():
                self._changed.wait(_LOOK_S)
            return False

    def _staying(self, left: Sequence[psutil.Process], since: float) -> Sequence[psutil.Process]:
        staying = self._await_end(left, min(since + self._patience_s, time.monotonic() + _UNTOLD_S))
        if staying and (left_s := since + self._patience_s - time.monotonic()) > 0:
            self.note(left_s)
            staying = self._await_end(staying, since + self._patience_s)
        last = since + self._patience_s * _MOST_TIMES
        # One that wants a processor may be about to end: a busy machine decides nothing.
        while staying and any(map(_works, staying)) and time.monotonic() < last and not self.is_hurried():
            staying = self._await_end(staying, time.monotonic() + _MOMENT_S)
        return staying

    def _await_end(self, processes: Sequence[psutil.Process], until: float) -> Sequence[psutil.Process]:
        return _await_end(processes, until, self.is_hurried)


def latest_told(recording: Trace) -> float:
    """When the last hook or memory request was answered, on the monotonic clock: what polls the daemon owes nothing."""
    told = (call.t1 for call in Recording(recording).calls if call.operation in FIRST_CALLS)
    return (recording.header.clock_s or 0.0) + max(told, default=0.0)


def end_left(mark: str) -> None:
    """End at once all that carries the mark of a connector, except daemons."""
    _end(_living(mark))


def _living(mark: str) -> Sequence[psutil.Process]:
    """What carries a mark, is no Signet daemon, and does not end within a moment."""
    found = [process for process in marked_processes(mark) if not _is_daemon(process)]
    return _await_end(found, time.monotonic() + _MOMENT_S)


def _await_end(
    processes: Sequence[psutil.Process], until: float, is_hurried: Callable[[], bool] = lambda: False
) -> Sequence[psutil.Process]:
    """Wait for the end of processes that are not ours to reap; return those that are there at an instant."""
    while left := [process for process in processes if _lives(process)]:
        if time.monotonic() >= until or is_hurried():
            break
        time.sleep(_LOOK_S)
    return left


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _is_daemon(process: psutil.Process) -> bool:
    return any(_DAEMON.fullmatch(PurePath(word).name) for word in _command(process))


def _command(process: psutil.Process) -> Sequence[str]:
    try:
        return [str(word) for word in process.cmdline()]
    except psutil.Error:
        return ()


def _works(process: psutil.Process) -> bool:
    """Whether a process has, or waits for, a processor or a disk; one that sleeps waits for something else."""
    for _ in range(_LOOKS):
        with suppress(psutil.Error):
            if process.status() in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP):
                return True
        time.sleep(_LOOK_S)
    return False


def _describe(process: psutil.Process, after_s: float) -> LeftMark:
    command = printable(redact(" ".join(_command(process))), _LONGEST_COMMAND) or f"process {process.pid}"
    memory_mb: float | None = None
    with suppress(psutil.Error):
        memory_mb = round(process.memory_info().rss / 1e6, 1)
    return LeftMark(command=command, memory_mb=memory_mb, after_s=after_s)


def _end(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
    _await_end(processes, time.monotonic() + _MOMENT_S)
