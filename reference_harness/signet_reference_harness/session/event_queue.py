"""The events that a reader has not taken yet.

Putting one never waits, however slow the reader is. Once so many are held as the queue's capacity says, droppable ones
are counted and not held, and a :class:`StreamOverflow` in their place says how many there were. All others are held
whatever the reader does: there are two for each tool call, and what they hold stands in the conversation anyway.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Final

from signet_reference_harness.session.events import Event, RunFinished, StreamOverflow

CAPACITY: Final = 4_096
"""Events that are held for a reader before droppable ones are dropped."""


class EventQueue:
    """Is filled by the thread of the run, and read by a task of the same event loop, or by one other thread.

    `capacity` None drops nothing. The last event is the :class:`RunFinished`.
    """

    def __init__(self, capacity: int | None = CAPACITY) -> None:
        self._capacity = capacity
        self._held: deque[Event] = deque()
        self._arrival = threading.Condition()
        self._reading: asyncio.Future[None] | None = None
        """What a reader in the event loop waits for."""
        self.finished = False
        """Whether the last event was put."""

    def put(self, event: Event) -> None:
        """Hold the event for the reader, or count it as dropped. After the last event nothing is held any more."""
        with self._arrival:
            if self.finished:
                return
            if event.droppable and self._capacity is not None and len(self._held) >= self._capacity:
                self._drop()
            else:
                self._held.append(event)
                self.finished = isinstance(event, RunFinished)
            self._arrival.notify()
        if self._reading is not None and not self._reading.done():
            self._reading.set_result(None)

    def _drop(self) -> None:
        last = self._held[-1] if self._held else None
        if isinstance(last, StreamOverflow):
            self._held[-1] = StreamOverflow(last.dropped + 1)
        else:
            self._held.append(StreamOverflow(1))

    def take(self) -> list[Event]:
        """All that is held, in order; they are the reader's now."""
        with self._arrival:
            taken = list(self._held)
            self._held.clear()
            return taken

    def wait_and_take(self) -> list[Event]:
        """As :meth:`take`, in a thread of the reader's own: waits until there is something, or the run is over."""
        with self._arrival:
            self._arrival.wait_for(lambda: self._held or self.finished)
            return self.take()

    async def arrived_and_taken(self) -> list[Event]:
        """As :meth:`take`, in the event loop of the run: waits until there is something, or the run is over."""
        while not (taken := self.take()) and not self.finished:
            self._reading = asyncio.get_running_loop().create_future()
            try:
                await self._reading
            finally:
                self._reading = None
        return taken
