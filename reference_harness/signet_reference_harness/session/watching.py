"""A run as a stream of events. It is a task of its own, which is cancelled if its reader leaves."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Final
from uuid import uuid4

from signet_reference_harness.messages import Message, ToolCall, texts_for_person
from signet_reference_harness.providers import CompletionChunk, StopReason
from signet_reference_harness.session import Session, events
from signet_reference_harness.session.memory_effect import MemoryEffect
from signet_reference_harness.session.turn import TurnListener, TurnResult
from signet_reference_harness.tools import ToolResult

CAPACITY: Final = 4_096
"""Events that wait for a reader before droppable events are dropped, or pieces of a text are joined."""
LONGEST_JOINED: Final = 65_536
"""Characters of a piece to which more is joined; joining longer ones would cost more time than it saves."""


class EventQueue:
    """Events from the thread of the run to one reader: a task of the same event loop, or one other thread.

    With `capacity` None no event is dropped: if the reader is slow, pieces of a text are joined. The last event is
    :class:`RunFinished`.
    """

    def __init__(self, capacity: int | None = CAPACITY) -> None:
        self._capacity = capacity
        self._waiting: deque[events.Event] = deque()
        self._arrival = threading.Condition()
        self._reading: asyncio.Future[None] | None = None
        """The future that a reader in the event loop awaits."""
        self.finished = False
        """Whether the last event was published."""

    def publish(self, event: events.Event) -> None:
        """Keep the event for the reader, or count it as dropped. Ignore events after the last one."""
        with self._arrival:
            if self.finished:
                return
            if event.droppable and self._capacity is not None and len(self._waiting) >= self._capacity:
                self._drop()
            elif len(self._waiting) < CAPACITY or not self._join(event):
                self._waiting.append(event)
                self.finished = isinstance(event, events.RunFinished)
            self._arrival.notify()
        if self._reading is not None and not self._reading.done():
            self._reading.set_result(None)

    def _drop(self) -> None:
        last = self._waiting[-1] if self._waiting else None
        if isinstance(last, events.StreamOverflow):
            self._waiting[-1] = events.StreamOverflow(last.dropped + 1)
        else:
            self._waiting.append(events.StreamOverflow(1))

    def _join(self, event: events.Event) -> bool:
        """Join a piece of a text to the one before it, if that is of the same kind; return whether it was joined."""
        last = self._waiting[-1]
        if not isinstance(last, events.TextPiece | events.ThinkingPiece) or len(last.text) > LONGEST_JOINED:
            return False
        if isinstance(event, type(last)):
            self._waiting[-1] = type(last)(last.text + event.text)
        return isinstance(event, type(last))

    def take(self) -> list[events.Event]:
        """Remove and return the waiting events, in order."""
        with self._arrival:
            waiting = list(self._waiting)
            self._waiting.clear()
            return waiting

    def wait_and_take(self) -> list[events.Event]:
        """Like :meth:`take`, but wait until there is an event, or the run is over. For a reader in its own thread."""
        with self._arrival:
            self._arrival.wait_for(lambda: self._waiting or self.finished)
            return self.take()

    async def await_and_take(self) -> list[events.Event]:
        """Like :meth:`wait_and_take`, for a reader in the event loop of the run."""
        while not (waiting := self.take()) and not self.finished:
            self._reading = asyncio.get_running_loop().create_future()
            try:
                await self._reading
            finally:
                self._reading = None
        return waiting


class Publisher(TurnListener):
    """Turns the progress of a turn into events, and passes them to `put`."""

    def __init__(self, put: Callable[[events.Event], None]) -> None:
        self.put = put

    def chunk(self, chunk: CompletionChunk) -> None:
        """Publish a piece of what the model says or thinks."""
        if chunk.text:
            self.put(events.TextPiece(chunk.text) if chunk.kind == "text" else events.ThinkingPiece(chunk.text))

    def message(self, message: Message) -> None:
        """Publish the notices of the message for the person."""
        for text in texts_for_person(replace(message, content="")):
            self.put(events.Notice(text))

    def tool_call(self, call: ToolCall) -> None:
        """Publish the call."""
        self.put(events.ToolCalled(call.id, call.name, call.arguments))

    def tool_result(self, call: ToolCall, result: ToolResult) -> None:
        """Publish the result."""
        if result.ok:
            self.put(events.ToolReturned(call.id, call.name, ok=True, content=result.content))
        else:
            self.put(events.ToolReturned(call.id, call.name, ok=False, error=result.error))

    def compaction(self, summary: str) -> None:
        """Publish the summary."""
        self.put(events.Compacted(summary))

    def memory(self, effect: MemoryEffect) -> None:
        """Publish the effect."""
        self.put(events.MemoryUsed(effect, effect.used))


class WatchedRun:
    """A running turn: iterate over it once to get its events. The last one is :class:`RunFinished`."""

    def __init__(self, queue: EventQueue, task: asyncio.Task[TurnResult]) -> None:
        self._queue = queue
        self._task = task

    async def __aiter__(self) -> AsyncIterator[events.Event]:
        """The events as they come."""
        while waiting := await self._queue.await_and_take():
            for event in waiting:
                yield event

    def cancel(self) -> None:
        """Cancel the turn. Its last event says that it was cancelled."""
        self._task.cancel()


@contextlib.asynccontextmanager
async def watch(session: Session, turn: Callable[[Publisher], Awaitable[TurnResult]]) -> AsyncIterator[WatchedRun]:
    """Begin a turn of the session, and watch it. `turn` performs it with the listener that it gets.

    If the block is left before the turn is over, the turn is cancelled and awaited. An exception of the turn reaches
    the caller after the last event.
    """
    run, queue, began = str(uuid4()), EventQueue(), time.monotonic()
    identity = session.identity

    async def perform() -> TurnResult:
        summary, reply = events.RunSummary(status="failed"), ""
        try:
            result = await turn(Publisher(queue.publish))
            summary, reply = events.summarise(result), result.reply
        except asyncio.CancelledError:
            cut = session.cut_turn or TurnResult(outcome=StopReason.CANCELLED)
            summary = events.summarise(cut).model_copy(update={"status": "cancelled", "error": None})
            reply = cut.reply
            raise
        except Exception as error:
            failure = events.RunFailure(kind=type(error).__name__, message=str(error))
            summary = summary.model_copy(update={"error": failure})
            raise
        finally:
            run_facts = {
                "memory": events.memory_of(session.memory),
                "run": run,
                "session": identity.key,
                "agent": identity.agent,
                "elapsed_ms": round((time.monotonic() - began) * 1000, 3),
            }
            queue.publish(events.RunFinished(reply, summary.model_copy(update=run_facts)))
        return result

    session.cut_turn = None
    queue.publish(events.RunStarted(run, identity.key, identity.agent))
    task = asyncio.create_task(perform())
    try:
        # A task that is cancelled before it has begun would publish no last event.
        await asyncio.sleep(0)
        yield WatchedRun(queue, task)
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()
