"""Watches processes of a connector that keep running after its harness has ended."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from msgspec import Struct

from signet_conformance.children.environment import marked_processes
from signet_conformance.drivers.process import redact
from signet_conformance.errors import printable
from signet_conformance.running.recorder import append_marks
from signet_conformance.trace.marks import LeftMark

if TYPE_CHECKING:
    import psutil

PATIENCE_S = 30.0
"""How long a process may go on after its harness."""
_MOST_SCENARIOS = 2
"""Watched are what two scenarios leave: a memory server that never exits would stay once for each session."""
_MOMENT_S = 1.0
_MOST_TIMES = 4
_LOOKS, _LOOK_S = 5, 0.1
_LONGEST_COMMAND = 300
_DAEMON = re.compile(r"(?:signet[-_])?daemon(?:\.\w+)?")
"""The name of the program, or a word of its arguments, by which a Signet daemon is known."""


class _Watched(Struct):
    """What one scenario left, since when, and the scenario's recording."""

    processes: Sequence[psutil.Process]
    since: float
    out: Path


class LeftBehind:
    """What connectors left. It is ended when it has been decided, and what is not watched at once.

    Until `patience_s` have passed, the processes of few scenarios go on while others are performed.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._watched: list[_Watched] = []

    def look(self, mark: str, out: Path) -> LeftMark | None:
        """Look for what carries the mark of a connector whose harness has ended. `out` is its recording.

        Returns the mark for nothing; None where something is there, which `conclude` decides, or which was ended.
        """
        since = time.monotonic()
        left = _living(mark)
        if not left:
            return LeftMark()
        with self._lock:
            if len(self._watched) < _MOST_SCENARIOS:
                self._watched.append(_Watched(left, since, out))
                return None
        _end(left)
        return None

    def left_s(self) -> float:
        """Return the seconds until all that is watched has had its time; 0 if nothing is."""
        now = time.monotonic()
        return max(
            (each.since + self._patience_s - now for each in self._watched if any(map(_lives, each.processes))),
            default=0.0,
        )

    def conclude(self) -> None:
        """Wait until the time of all that is watched is over, or it has ended; say in the recordings what became."""
        for watched in self._watched:
            staying = self._staying(watched)
            marks = [_describe(process, self._patience_s) for process in staying] or [LeftMark()]
            # The recording of a shrunk scenario is gone by now.
            with suppress(OSError):
                append_marks(watched.out, marks)
            _end(staying)
        self._watched = []

    def _staying(self, watched: _Watched) -> Sequence[psutil.Process]:
        staying = _await_end(watched.processes, watched.since + self._patience_s)
        last = watched.since + self._patience_s * _MOST_TIMES
        # One that wants a processor may be about to end: a busy machine decides nothing.
        while staying and any(map(_works, staying)) and time.monotonic() < last:
            staying = _await_end(staying, time.monotonic() + _MOMENT_S)
        return staying

    def close(self) -> None:
        """End what is watched, undecided."""
        watched, self._watched = self._watched, []
        for each in watched:
            _end(each.processes)


def end_left(mark: str) -> None:
    """End at once all that carries the mark of a connector, except daemons."""
    _end(_living(mark))


def _living(mark: str) -> Sequence[psutil.Process]:
    """What carries a mark, is no Signet daemon, and does not end within a moment."""
    found = [process for process in marked_processes(mark) if not _is_daemon(process)]
    return _await_end(found, time.monotonic() + _MOMENT_S)


def _await_end(processes: Sequence[psutil.Process], until: float) -> Sequence[psutil.Process]:
    """Wait for the end of processes that are not ours to reap; return those that are there at an instant."""
    while (left := [process for process in processes if _lives(process)]) and time.monotonic() < until:
        time.sleep(_LOOK_S)
    return left


def _lives(process: psutil.Process) -> bool:
    import psutil

    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _is_daemon(process: psutil.Process) -> bool:
    return any(_DAEMON.fullmatch(PurePath(word).name) for word in _command(process))


def _command(process: psutil.Process) -> Sequence[str]:
    import psutil

    try:
        return [str(word) for word in process.cmdline()]
    except psutil.Error:
        return ()


def _works(process: psutil.Process) -> bool:
    """Whether a process has, or waits for, a processor or a disk; one that sleeps waits for something else."""
    import psutil

    for _ in range(_LOOKS):
        with suppress(psutil.Error):
            if process.status() in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP):
                return True
        time.sleep(_LOOK_S)
    return False


def _describe(process: psutil.Process, after_s: float) -> LeftMark:
    import psutil

    command = printable(redact(" ".join(_command(process))), _LONGEST_COMMAND) or f"process {process.pid}"
    memory_mb: float | None = None
    with suppress(psutil.Error):
        memory_mb = round(process.memory_info().rss / 1e6, 1)
    return LeftMark(command=command, memory_mb=memory_mb, after_s=after_s)


def _end(processes: Sequence[psutil.Process]) -> None:
    import psutil

    for process in processes:
        with suppress(psutil.Error):
            process.kill()
    _await_end(processes, time.monotonic() + _MOMENT_S)
