"""Processes that were started with a mark in their environment, found again wherever they went.

A process that leaves its group and its parent, as one that goes into the background does, is known by nothing else.
Only where the system shows environments, which is Linux.
"""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import ExitStack, suppress
from pathlib import Path

MARK = "SIGNET_CONFORMANCE_MARK"
"""The variable that carries a mark: a word that occurs nowhere else."""
_PROCESSES = Path("/proc")
_GRACE_S = 2.0


def marked(mark: str) -> list[int]:
    """The ids of the living processes of this user whose environment carries `mark`."""
    wanted = f"{MARK}={mark}".encode()
    processes = []
    for folder in _PROCESSES.glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                processes.append(int(folder.name))
    return processes


def end_marked(mark: str) -> None:
    """End them: by SIGTERM, and by SIGKILL those that are still there two seconds later."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + _GRACE_S
        told: set[int] = set()
        while (left := marked(mark)) and (remaining_s := deadline - time.monotonic()) > 0:
            _signal([process for process in left if process not in told], number)
            told.update(left)
            _wait_for_an_end(left, remaining_s)


def _wait_for_an_end(processes: list[int], timeout_s: float) -> None:
    """Return as soon as one of the processes has ended; they need not be our children."""
    ends = select.poll()
    with ExitStack() as stack:
        for process in processes:
            try:
                descriptor = os.pidfd_open(process)
            except ProcessLookupError:
                return
            stack.callback(os.close, descriptor)
            ends.register(descriptor, select.POLLIN)
        ends.poll(timeout_s * 1000)


def _signal(processes: list[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)
