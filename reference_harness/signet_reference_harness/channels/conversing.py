"""A conversation over a channel: one turn after the other, and a queue for messages that arrive meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from signet_reference_harness.channels import AgentOutput, Channel, ChannelClosedError, UserTurn, refusal_of
from signet_reference_harness.errors import HarnessError
from signet_reference_harness.messages import Message
from signet_reference_harness.session import Session
from signet_reference_harness.session.events import Event, RunFinished, TextPiece, ToolCalled, ToolReturned
from signet_reference_harness.session.turn import TurnResult
from signet_reference_harness.session.watching import Publisher, watch
from signet_reference_harness.tools import ToolResult

MOST_WAITING: Final = 64
"""Turns that may wait while one is answered; the next is refused."""

Perform = Callable[[UserTurn, Publisher], Awaitable[TurnResult]]
"""Performs a turn with the model, and reports its events to the publisher."""
Command = Callable[[UserTurn, bool], Awaitable[UserTurn | None]]
"""Gets each turn that is a command, and whether an answer is being made. Returns the turn for the model, or None when
the command is done."""


def is_command(turn: UserTurn) -> bool:
    """Whether the turn is for the harness, not for the model: it begins with a slash and a letter."""
    return turn.content[:1] == "/" and turn.content[1:2].isalpha()


@dataclass(slots=True, eq=False)
class ChannelConversation:
    """The turns of `channel` with the session that `session()` names, which may change between two of them."""

    channel: Channel
    session: Callable[[], Session]
    perform: Perform
    command: Command | None = None
    """If None, a turn that looks like a command is sent to the model as it is."""
    at_once: Callable[[UserTurn], bool] = lambda _turn: False
    """Whether a command does not wait for the answer that is being made."""
    on_joined: Callable[[UserTurn], None] = lambda _turn: None
    """Gets each turn when it joins the conversation, at its beginning or after a tool's result."""
    _waiting: deque[UserTurn] = field(default_factory=deque)
    _steering: list[UserTurn] = field(default_factory=list)
    """Turns that joined during an answer; `on_joined` gets them after the tool results that they follow."""
    _arrival: asyncio.Event = field(default_factory=asyncio.Event)
    _closed: bool = False
    _cancel: Callable[[], object] | None = None
    """Cancels the work in progress; None without such work."""

    @property
    def waiting(self) -> Sequence[UserTurn]:
        """Turns that have not joined the conversation yet."""
        return tuple(self._waiting)

    @property
    def is_busy(self) -> bool:
        """Whether an answer is being made, or a command carried out."""
        return self._cancel is not None

    def interrupt(self) -> bool:
        """Stop the work in progress, and return False if there is no such work. The next waiting turn follows."""
        if self._cancel is None:
            return False
        self._cancel()
        return True

    async def run(self) -> None:
        """Answer until the channel closes. An answer that is being made then is cancelled."""
        self.channel.on_close(self._close)
        receiving = asyncio.create_task(self._receive())
        try:
            while (turn := await self._next()) is not None:
                await self._process(turn)
        finally:
            receiving.cancel()
            await asyncio.wait([receiving])
        if not receiving.cancelled():
            receiving.result()

    def _close(self) -> None:
        self._closed = True
        self._arrival.set()
        self.interrupt()

    async def _next(self) -> UserTurn | None:
        while not self._closed:
            if self._waiting:
                return self._waiting.popleft()
            self._arrival.clear()
            await self._arrival.wait()
        return None

    async def _receive(self) -> None:
        try:
            while True:
                turn = await self.channel.receive()
                refusal = self._refusal(turn)
                if refusal:
                    await self.channel.send(AgentOutput(error=refusal, metadata=turn.metadata))
                elif self.command is not None and is_command(turn) and self.is_busy and self.at_once(turn):
                    await self.command(turn, True)
                else:
                    self._waiting.append(turn)
                    self._arrival.set()
        except ChannelClosedError:
            pass
        finally:
            self._close()

    def _refusal(self, turn: UserTurn) -> str:
        """Why a turn is refused; empty if it is accepted."""
        if len(self._waiting) >= MOST_WAITING:
            return f"{MOST_WAITING} messages wait already; send this again when they are answered"
        return refusal_of(turn)

    async def _process(self, turn: UserTurn) -> None:
        model_turn: UserTurn | None = turn
        if self.command is not None and is_command(turn):
            model_turn = await self._cancellable(self.command(turn, False))
        if model_turn is None:
            await self.channel.send(AgentOutput(metadata=turn.metadata))
        else:
            await self._answer(model_turn)

    async def _cancellable(self, work: Awaitable[UserTurn | None]) -> UserTurn | None:
        task = asyncio.ensure_future(work)
        self._cancel = task.cancel
        try:
            await asyncio.wait([task])
        finally:
            self._cancel = None
            task.cancel()
        return None if task.cancelled() else task.result()

    async def _answer(self, turn: UserTurn) -> None:
        session = self.session()
        session.steered = self._steer
        results: list[ToolResult] = []
        self.on_joined(turn)
        with contextlib.suppress(HarnessError):  # the last event reports the error
            async with watch(session, lambda publisher: self.perform(turn, publisher)) as stream:
                self._cancel = stream.cancel
                try:
                    if self._closed:
                        stream.cancel()
                    async for event in stream:
                        if not isinstance(event, ToolCalled | ToolReturned):
                            self._report_steering()
                        await self.channel.send(_output_of(event, results, turn))
                finally:
                    self._cancel = None
                    session.steered = tuple

    def _report_steering(self) -> None:
        steering, self._steering = self._steering, []
        for turn in steering:
            self.on_joined(turn)

    def _steer(self) -> Sequence[Message]:
        """Take the turns that came while the model worked, up to the next command, into the conversation."""
        messages: list[Message] = []
        while self._waiting and (self.command is None or not is_command(self._waiting[0])):
            turn = self._waiting.popleft()
            self._steering.append(turn)
            messages.append(Message("user", turn.content))
        return messages


def _output_of(event: Event, results: list[ToolResult], turn: UserTurn) -> AgentOutput:
    """The output for an event; `results` collects the tool results of the turn."""
    if isinstance(event, TextPiece):
        return AgentOutput(content=event.text, streaming=True, metadata=turn.metadata, event=event)
    if isinstance(event, ToolReturned):
        content, error = (event.content, "") if event.ok else ({}, str(event.error))
        result = ToolResult(event.name, event.ok, content, error)
        results.append(result)
        return AgentOutput(tool_results=(result,), streaming=True, metadata=turn.metadata, event=event)
    if isinstance(event, RunFinished):
        failure = event.summary.error
        cancelled = event.summary.status == "cancelled"
        error = "the answer was stopped" if cancelled else "" if failure is None else failure.message
        return AgentOutput(
            content=event.reply, tool_results=tuple(results), error=error, metadata=turn.metadata, event=event
        )
    return AgentOutput(streaming=True, metadata=turn.metadata, event=event)
