"""Interruptions of a task: SIGINT, SIGTERM and its time limit, from the reading of its prompt to its last line."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator
from typing import Any, Literal


class Interruption:
    """Handles signals and the time limit in the event loop, according to the phase of the task.

    Until :meth:`settle`, an interruption cancels the task, once. After that the session is being ended, which no signal
    stops; a signal then only cancels the future that :meth:`ends` waits for.
    """

    def __init__(self, limit_ms: int | None) -> None:
        self._limit_ms = limit_ms
        self._cancelled: asyncio.Future[Any] | None = None
        """The task or the call that an interruption cancels."""
        self.signal: int | None = None
        """The first signal that came."""
        self.is_late = False
        """Whether the time limit came first."""
        self.is_hasty = False
        """Whether a signal came while the session was being ended."""

    @property
    def status(self) -> Literal["timeout", "cancelled"] | None:
        """The status that the interruption gives to the task; None without an interruption."""
        if self.is_late:
            return "timeout"
        return None if self.signal is None else "cancelled"

    @property
    def why(self) -> str:
        """The interruption in words."""
        if self.is_late:
            return f"the task took longer than --timeout-ms {self._limit_ms}"
        return f"ended by {signal.Signals(self.signal or signal.SIGINT).name}"

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        """Within this context, signals and the time limit, which starts now, cancel the current task."""
        loop = asyncio.get_running_loop()
        self._cancelled = asyncio.current_task()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._interrupt, number)
        timer = None if self._limit_ms is None else loop.call_later(self._limit_ms / 1000, self._interrupt, None)
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def settle(self) -> None:
        """From now on, nothing interrupts the end of the task."""
        self._cancelled = None

    @contextlib.contextmanager
    def ends(self, waiting: asyncio.Future[Any]) -> Iterator[None]:
        """Within this context, a signal cancels `waiting`."""
        self._cancelled = waiting
        try:
            yield
        finally:
            self._cancelled = None

    def _interrupt(self, number: int | None) -> None:
        if self._cancelled is None:
            self.is_hasty = self.is_hasty or number is not None
            return
        if self.status is None:
            self.is_late, self.signal = number is None, number
        # Only once: a second signal must not interrupt the cleanup that the first one started.
        self._cancelled.cancel()
        self._cancelled = None
