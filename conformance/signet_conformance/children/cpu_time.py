"""The CPU time of processes that were started and have ended, summed by their names."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_lock = threading.Lock()
_taken: defaultdict[str, float] = defaultdict(float)


def note_cpu(name: str, seconds: float) -> None:
    """Add what a process took, with those of its children that it has waited for."""
    with _lock:
        _taken[name] += seconds


def cpu_taken() -> Mapping[str, float]:
    """Seconds by name, of this process's whole life."""
    with _lock:
        return dict(_taken)


def cpu_of(pid: int) -> float:
    """What a process took until now, in seconds; it may have ended, if nobody has waited for it yet.

    0.0 where the system does not tell.
    """
    try:
        numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, numbers[11:15])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return 0.0


def cpu_with_descendants(pid: int) -> float:
    """What a process and those below it that are there took until now, with those that they waited for, in seconds.

    Nothing is said of the order in which they are looked at: one that ends meanwhile may count twice, or not at all.
    """
    below: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            below.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(int(stat.parent.name))
    family = [pid]
    for each in family:
        family += below.pop(each, ())
    return sum(map(cpu_of, family))
