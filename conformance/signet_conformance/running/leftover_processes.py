"""Watches processes of a connector that keep running after its harness has ended."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import PurePath

import psutil

from signet_conformance.children.environment import tagged_processes
from signet_conformance.drivers.process import redact
from signet_conformance.errors import printable
from signet_conformance.facts import FIRST_CALLS, Recording
from signet_conformance.trace import Trace
from signet_conformance.trace.marks import LeftMark

PATIENCE_S = 30.0
"""How long a process may run after its harness has ended."""
MOST_WATCHED = 2
"""How many scenarios wait this long: a memory server that never exits would cost that time in each."""
_MOMENT_S = 1.0
_MOST_TIMES = 4
_TIMES_AS_LATE = 3
"""Processes of later scenarios get this many times the longest delay that was measured."""
_SILENT_S = 2.0
"""Wait this many seconds before the user gets a note."""
_LOOKS, _LOOK_S = 5, 0.1
_LONGEST_COMMAND = 300
_DAEMON = re.compile(r"(?:signet[-_])?daemon(?:\.\w+)?")
"""A program name or argument that identifies a Signet daemon."""


class LeftBehind:
    """Processes of connectors that outlive their harness, and may send requests until the next scenario begins.

    The first scenarios wait until their processes end, for at most `patience_s`, and measure the delay of their
    requests. Processes of later scenarios get three times that delay. `note` is called with the seconds that a long
    wait may take. `is_hurried` returns True once the run has given up.
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
        """Watch the processes of the next `most` scenarios."""
        self._unwatched = most

    def conclude(self, tag: str, latest: Callable[[], float]) -> Sequence[LeftMark]:
        """After a harness has ended, wait for its connector's processes, which have `tag`; end those that stay.

        `latest` returns the time of the connector's last request on the monotonic clock. Return the marks about the
        processes that stayed; none if their time was cut short.
        """
        since = time.monotonic()
        left = _living(tag)
        if not left:
            return [LeftMark()]
        watched = self._begin()
        if watched:
            staying = self._await_watched(left, since)
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
        """Whether this scenario is watched; if not, wait until the watched ones are decided."""
        with self._changed:
            if self._unwatched:
                self._unwatched -= 1
                self._under_way += 1
                return True
            while self._under_way and not self.is_hurried():
                self._changed.wait(_LOOK_S)
            return False

    def _await_watched(self, left: Sequence[psutil.Process], since: float) -> Sequence[psutil.Process]:
        staying = self._await_end(left, min(since + self._patience_s, time.monotonic() + _SILENT_S))
        if staying and (left_s := since + self._patience_s - time.monotonic()) > 0:
            self.note(left_s)
            staying = self._await_end(staying, since + self._patience_s)
        last = since + self._patience_s * _MOST_TIMES
        # On a busy machine, a process that waits for a processor may be about to end.
        while _is_any_working(staying) and time.monotonic() < last and not self.is_hurried():
            staying = self._await_end(staying, time.monotonic() + _MOMENT_S)
        return staying

    def _await_end(self, processes: Sequence[psutil.Process], until: float) -> Sequence[psutil.Process]:
        return _await_end(processes, until, self.is_hurried)


def latest_request(recording: Trace) -> float:
    """When the last hook or memory request was answered, on the monotonic clock; polling requests do not count."""
    ends = (call.t1 for call in Recording(recording).calls if call.operation in FIRST_CALLS)
    return (recording.header.clock_s or 0.0) + max(ends, default=0.0)


def end_left(tag: str) -> None:
    """Kill all processes with the tag of a connector, except daemons."""
    _end(_living(tag))


def _living(tag: str) -> Sequence[psutil.Process]:
    """The processes with a tag that are not Signet daemons and do not end within a second."""
    found = [process for process in tagged_processes(tag) if not _is_daemon(process)]
    return _await_end(found, time.monotonic() + _MOMENT_S)


def _await_end(
    processes: Sequence[psutil.Process], until: float, is_hurried: Callable[[], bool] = lambda: False
) -> Sequence[psutil.Process]:
    """Wait for processes that are not our children; return those that still run at `until`."""
    while left := [process for process in processes if _is_alive(process)]:
        if time.monotonic() >= until or is_hurried():
            break
        time.sleep(_LOOK_S)
    return left


def _is_alive(process: psutil.Process) -> bool:
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


def _is_any_working(processes: Sequence[psutil.Process]) -> bool:
    """Whether one of the processes uses, or waits for, a processor or a disk."""
    for _ in range(_LOOKS if processes else 0):
        if any(map(_is_working, processes)):
            return True
        time.sleep(_LOOK_S)
    return False


def _is_working(process: psutil.Process) -> bool:
    try:
        return process.status() in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)
    except psutil.Error:
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
