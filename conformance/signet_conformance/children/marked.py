"""Processes that were started with a mark in their environment, found again wherever they went.

A process that leaves its group and its parent, as one that goes into the background does, is known by nothing else.
Only where the system shows environments, which is Linux.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

MARK = "SIGNET_CONFORMANCE_MARK"
"""The variable that carries a mark: a word that occurs nowhere else."""
_PROCESSES = Path("/proc")
_GRACE_S = 2.0
_LOOK_S = 0.05


def marked(mark: str) -> list[int]:
    """The ids of the living processes of this user whose environment carries `mark`."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in _PROCESSES.glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def end_marked(mark: str) -> None:
    """End them: by SIGTERM, and by SIGKILL those that are still there two seconds later."""
    _signal(marked(mark), signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_S
    while (left := marked(mark)) and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
    while left:
        _signal(left, signal.SIGKILL)
        time.sleep(_LOOK_S)
        left = marked(mark) if time.monotonic() < deadline + _GRACE_S else []


def _signal(processes: list[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)
