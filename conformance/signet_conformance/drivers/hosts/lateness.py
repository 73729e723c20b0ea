"""By how much the machine kept this program waiting while the connector worked (SIG-FAIL-002)."""

from __future__ import annotations

import threading
import time

_TICK_S = 0.05


class Lateness:
    """A timer beside a hook, a request or a call of the connector: on a busy machine all programs are slow.

    It has a thread of its own, so that a call of the connector in this program does not hold it up.
    """

    def __init__(self) -> None:
        self._over = threading.Event()
        self._most_s = 0.0
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._thread.start()

    def _tick(self) -> None:
        while not self._over.is_set():
            began = time.perf_counter()
            self._over.wait(_TICK_S)
            self._most_s = max(self._most_s, time.perf_counter() - began - _TICK_S)

    def end(self) -> float:
        """Stop the timer; return the most milliseconds that it was late."""
        self._over.set()
        self._thread.join()
        return round(self._most_s * 1000, 1)
