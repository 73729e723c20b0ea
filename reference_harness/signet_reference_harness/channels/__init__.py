"""Channels between the harness and the person or program that talks to it: turns come in, outputs go out.

A chat in a terminal and one over HTTP differ in their channel only; `conversing` serves both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from signet_reference_harness.errors import HarnessError
from signet_reference_harness.session.events import Event, RunFinished
from signet_reference_harness.tools import ToolResult


class ChannelClosedError(HarnessError):
    """Raised by :meth:`Channel.receive` once the channel is closed."""


class Attachment(Struct, frozen=True, kw_only=True):
    """A file that comes with a turn. The harness accepts no files: a turn with one is refused."""

    name: str = ""
    media_type: str = msgspec.field(default="", name="mediaType")


class UserTurn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message from the other side of a channel; its `metadata` comes back with the answer."""

    content: str
    attachments: tuple[Attachment, ...] = ()
    metadata: Mapping[str, Any] = msgspec.field(default_factory=dict)


def refusal_of(turn: UserTurn) -> str:
    """Why the harness refuses a turn, on any channel; empty if it accepts it."""
    if turn.attachments:
        names = ", ".join(each.name or "a file without a name" for each in turn.attachments)
        return f"attachments are not supported, so this was not sent: {names}; put the text into the message"
    return "" if turn.content.strip() else "the message is blank"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOutput:
    """A message to the other side of a channel.

    While an answer is made, `streaming` is True: `content` is a piece of it and `tool_results` one result. The output
    that ends the answer has `streaming` False, the model's last words and all results of the turn.
    `event` is the event of the run behind the output, for a channel that shows more than words and results.
    """

    content: str = ""
    tool_results: tuple[ToolResult, ...] = ()
    streaming: bool = False
    error: str = ""
    """Why a turn was refused, or its answer is incomplete; empty otherwise."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The metadata of the turn that is answered."""
    event: Event | None = None

    @property
    def stopped(self) -> bool:
        """Whether the answer that it ends was stopped, by the other side or because the channel closed."""
        return isinstance(self.event, RunFinished) and self.event.summary.status == "cancelled"


class Channel(Protocol):
    """The connection of one conversation to its other side.

    A turn that comes during an answer steers it: the model gets it after the next tool result, or as the next turn. A
    channel that waits for each answer before the next turn waits in :meth:`receive` for the output whose `streaming` is
    False. Each turn has one such output, unless it steered the turn before.
    """

    @property
    def kind(self) -> str:
        """The kind of channel, such as `terminal` or `http`."""

    async def receive(self) -> UserTurn:
        """The next turn. Raises ChannelClosedError when no more comes."""

    async def send(self, output: AgentOutput) -> None:
        """Show an output. If the other side cannot receive it any more, it is dropped without an error."""

    def on_close(self, handler: Callable[[], None]) -> None:
        """Call `handler` once, when the channel closes, or immediately if it is closed already."""


class Closing:
    """The common part of all channels: the queue of turns that wait to be received, and the closing."""

    def __init__(self) -> None:
        self.closed = False
        self._handlers: list[Callable[[], None]] = []
        self._waiting: asyncio.Queue[UserTurn | None] = asyncio.Queue()

    def enqueue(self, turn: UserTurn) -> None:
        """Add `turn` to the end of the queue."""
        self._waiting.put_nowait(turn)

    @property
    def waiting(self) -> int:
        """How many turns wait to be received."""
        return self._waiting.qsize()

    async def receive(self) -> UserTurn:
        """The next turn. Raises ChannelClosedError once the channel is closed, whatever still waits."""
        turn = None if self.closed else await self._waiting.get()
        if turn is None:
            raise ChannelClosedError("the channel is closed")
        return turn

    def on_close(self, handler: Callable[[], None]) -> None:
        """Call `handler` when the channel closes, or immediately if it is closed already."""
        if self.closed:
            handler()
        else:
            self._handlers.append(handler)

    def close(self) -> None:
        """Close the channel; the second time does nothing."""
        if self.closed:
            return
        self.closed = True
        self._waiting.put_nowait(None)
        handlers, self._handlers = self._handlers, []
        for handler in handlers:
            handler()


class ChatFace(Channel, Protocol):
    """A channel to a person, which shows notes of the harness too, and may show what its `conversation` does."""

    conversation: Any

    async def run(self) -> None:
        """Show and read until the channel is closed."""

    def close(self) -> None:
        """Close the channel."""

    def show_user(self, turn: UserTurn) -> None:
        """Show a message of the person as it joins the conversation, or is carried out."""

    def show_reply(self, reply: str) -> None:
        """Show an answer of a conversation that is continued."""

    def note(self, text: str) -> None:
        """Show a note of the harness."""

    def error(self, text: str) -> None:
        """Show an error."""

    async def ask(self, question: str, about: str) -> str | None:
        """Show `about`, ask the question, and return the typed line; None if no person can be asked."""

    def rows(self, title: str, rows: Sequence[tuple[str, str]]) -> None:
        """Show a heading, and a row of name and text for each entry."""
