"""Looks at processes from outside, by pidfd: a number that was given again is never taken for the same process."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from signet_conformance.children.deadline import Deadline, cpu_with_descendants

PATIENCE_S = 180.0
_LOOK_S = 1.0


class Watched:
    """Processes that are alive now. A context manager: whatever is left of them at its end is killed."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._open: dict[int, int] = {}
        for pid in pids:
            with suppress(ProcessLookupError):
                self._open[pid] = os.pidfd_open(pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        for descriptor in self._open.values():
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            os.close(descriptor)

    def __len__(self) -> int:
        return len(self._open)

    def left(self, patience_s: float = PATIENCE_S) -> list[int]:
        """The ids of those that have not ended within `patience_s`; empty when all have."""
        deadline = time.monotonic() + patience_s
        return [pid for pid, descriptor in self._open.items() if not _has_ended(descriptor, deadline)]


def _has_ended(descriptor: int, deadline: float) -> bool:
    ended = select.poll()
    ended.register(descriptor, select.POLLIN)
    return bool(ended.poll(max(0.0, deadline - time.monotonic()) * 1000))


def ends_in_time(process: subprocess.Popen[Any], seconds: float) -> bool:
    """Wait for the end of a process: up to four times as long where it works on a machine that is busy."""
    deadline = Deadline(seconds, partial(cpu_with_descendants, process.pid))
    while left_s := deadline.left_s():
        with suppress(subprocess.TimeoutExpired):
            process.wait(min(left_s, _LOOK_S))
            return True
    return False


def wait_until(condition: Callable[[], bool], what: str, by: subprocess.Popen[bytes] | None = None) -> None:
    """Look until it is so; fail with `what` at a deadline far beyond what any machine needs.

    It fails as soon as the process that brings it about, `by`, has ended without.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        # Asked first: what it did before its end is seen.
        status = None if by is None else by.poll()
        if condition():
            return
        assert status is None, f"{what}: the program has ended with status {status}"
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def descendants(pid: int) -> set[int]:
    """The processes that this one started, and those that these did, as far as nobody between has ended."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(int(folder.name))
    below, waiting = set[int](), [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        below.update(children)
        waiting += children
    return below


def children_of(pid: int) -> set[int]:
    """The ids of a process's children; a thread that ends meanwhile has none."""
    children: set[int] = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            children |= {int(child) for child in (task / "children").read_text().split()}
    return children
