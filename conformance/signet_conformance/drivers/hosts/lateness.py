"""By how much the machine kept a connector, or this program beside it, waiting (SIG-FAIL-002)."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

_TICK_S = 0.05


class Lateness:
    """A timer beside a hook, a request or a call of the connector: on a busy machine all programs are slow.

    It has a thread of its own, so that a call of the connector in this program does not hold it up. A busy machine
    wakes what sleeps soon enough and starves what works: so the connector's own processes are looked at too, where
    `pid` is the first of them and the system says for how long each has wanted the processor and not got it.
    """

    def __init__(self, pid: int | None = None) -> None:
        self._pid = pid
        self._over = threading.Event()
        self._most_s = 0.0
        self._before = self._queued_s()
        self._queued = self._before
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._thread.start()

    def _tick(self) -> None:
        while not self._over.is_set():
            began = time.perf_counter()
            self._over.wait(_TICK_S)
            self._most_s = max(self._most_s, time.perf_counter() - began - _TICK_S)
            self._queued = {**self._queued, **self._queued_s()}

    def _queued_s(self) -> Mapping[int, float]:
        return {} if self._pid is None else dict(_queued_s(self._pid))

    def end(self) -> float:
        """Stop the timer; return the most milliseconds that it was late, or that a process of the connector queued."""
        self._over.set()
        self._thread.join()
        queued_s = (seconds - self._before.get(pid, 0.0) for pid, seconds in self._queued.items())
        return round(max(self._most_s, *queued_s, 0.0) * 1000, 1)


def _queued_s(pid: int) -> Iterator[tuple[int, float]]:
    """The seconds for which the main threads of a process and its descendants have queued for the processor."""
    with contextlib.suppress(OSError, ValueError):
        ran, queued, *_ = Path(f"/proc/{pid}/schedstat").read_text().split()
        if ran != "0":
            yield pid, int(queued) / 1e9
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from _queued_s(int(child))
