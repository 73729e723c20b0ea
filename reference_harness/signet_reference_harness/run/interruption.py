"""Interruptions of a task: SIGINT, SIGTERM and its time limit, from the reading of its prompt to its last line."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import time
from collections.abc import Iterator
from math import inf
from typing import Any, Literal

AGAIN_S = 1.0
"""The time after which a signal that may have gone unheard is looked for again, and raised again."""


class Interruption:
    """Heeds signals and the time limit in the main thread, as fits what the task is at.

    From `begin` until its turn is under way an interruption raises KeyboardInterrupt. A turn is cancelled. After that
    the session is being ended, within bounds of its own, and no signal stops that.
    """

    def __init__(self, limit_ms: int | None) -> None:
        self._limit_ms = limit_ms
        self._deadline = inf
        """The end of the time limit, on the monotonic clock."""
        self._looks_again = False
        """Whether the next alarm comes before the time limit."""
        self._task: asyncio.Task[Any] | None = None
        self._raises, self._settles = False, False
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
    def heeded(self) -> Iterator[None]:
        """While this lasts signals and the time limit are heeded, which begins to run."""
        before = {
            number: signal.signal(number, self._interrupt) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
        }
        if self._limit_ms is not None:
            self._deadline = time.monotonic() + self._limit_ms / 1000
        self._set_timer()
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before.items():
                signal.signal(number, handler)

    def begin(self) -> None:
        """From here on an interruption is raised, and so is one that came before."""
        self._raises = True
        if self.status is not None:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """While this lasts nothing is raised; what came meanwhile is raised at its end."""
        self._raises = False
        try:
            yield
        except BaseException:
            self._raises = True
            raise
        self.begin()

    @contextlib.contextmanager
    def cancels(self, task: asyncio.Task[Any] | None) -> Iterator[None]:
        """While this lasts an interruption cancels the task; after it, none does anything."""
        self._task = task
        if self.status is None:
            self._set_timer()
        if task is not None and self.status is not None:
            task.cancel()
        try:
            with _wakes(asyncio.get_running_loop()):
                yield
        finally:
            self.settle()

    def settle(self) -> None:
        """From here on nothing interrupts the end of the task."""
        self._task, self._raises, self._settles = None, False, True
        signal.setitimer(signal.ITIMER_REAL, 0)

    @contextlib.contextmanager
    def ends_waiting(self) -> Iterator[None]:
        """While this lasts a signal ends the block, which does nothing but wait."""
        self._raises = True
        try:
            yield
        except KeyboardInterrupt:
            return
        finally:
            self._raises = False

    def _set_timer(self) -> None:
        """Let SIGALRM come at the time limit; while no loop runs, which signals wake, also every AGAIN_S.

        A signal in the instant before a blocking call is noted, and its handler runs only when that call returns: the
        alarm interrupts the call.
        """
        left_s = max(self._deadline - time.monotonic(), 1e-3)
        wait_s = left_s if self._task is not None else min(left_s, AGAIN_S)
        self._looks_again = wait_s < left_s
        signal.setitimer(signal.ITIMER_REAL, 0 if wait_s == inf else wait_s)

    def _interrupt(self, number: int, _frame: object) -> None:
        if number == signal.SIGALRM and self._looks_again and self.status is None:
            if not self._settles:
                self._set_timer()
            return
        if self._settles and not self._raises:
            self.is_hasty = True
            return
        if self.status is None:
            self.is_late = number == signal.SIGALRM
            self.signal = None if self.is_late else number
        if self._task is None:
            if self._raises:
                if not self._settles:
                    # Raised in a callback of the interpreter's own, such as a weak reference's, it goes no further.
                    signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
                raise KeyboardInterrupt
            return
        self._task.get_loop().call_soon_threadsafe(self._cancel, self._task)

    def _cancel(self, task: asyncio.Task[Any]) -> None:
        # Once: a second signal does not cut short what the first one has set going.
        if task is self._task and not task.cancelling():
            task.cancel()


@contextlib.contextmanager
def _wakes(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """While this lasts a signal wakes the loop, also one that comes in the instant before the loop begins to wait.

    Python notes such a signal and runs its handler only when the loop goes on, which may be when the model answers.
    """
    woken, wakes = socket.socketpair()
    with woken, wakes:
        woken.setblocking(False)
        wakes.setblocking(False)
        loop.add_reader(woken, woken.recv, 4096)
        before = signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(woken)
