"""Where a person or a program talks to the harness: turns come in by a channel, and what is said to them goes out.

A channel is all that differs between a chat in a terminal and one over HTTP; `conversing` is the same for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from signet_reference_harness.errors import HarnessError
from signet_reference_harness.session.events import Event, RunFinished
from signet_reference_harness.tools import ToolResult


class ChannelClosedError(HarnessError):
    """Raised by :meth:`Channel.receive` once the channel is closed: nothing more comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file beside a turn. The harness takes none: a turn that has one is refused, and says so."""

    name: str
    media_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserTurn:
    """What the other side of a channel says; `metadata` is its own, and comes back with the answer."""

    content: str
    attachments: tuple[Attachment, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


def refusal_of(turn: UserTurn) -> str:
    """Why the harness cannot take such a turn, on whatever channel; empty for one that it can."""
    if turn.attachments:
        names = ", ".join(each.name or "a file without a name" for each in turn.attachments)
        return f"attachments are not supported, so this was not sent: {names}; put the text into the message"
    return "" if turn.content.strip() else "the message is blank"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOutput:
    """What is said to the other side of a channel.

    While an answer is made, `streaming` is True: `content` is a piece of it and `tool_results` one result. The output
    that ends the answer has `streaming` False, the model's last words and all results of the turn.
    `event` is the event of the run that the output tells, for a channel that shows more than words and results.
    """

    content: str = ""
    tool_results: tuple[ToolResult, ...] = ()
    streaming: bool = False
    error: str = ""
    """Why a turn was not taken, or has no whole answer; empty for one that has."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """That of the turn which is answered."""
    event: Event | None = None

    @property
    def stopped(self) -> bool:
        """Whether the answer that it ends was stopped, by the other side or because the channel closed."""
        return isinstance(self.event, RunFinished) and self.event.summary.status == "cancelled"


class Channel(Protocol):
    """One conversation's connection to whoever takes part in it.

    What comes while an answer is made steers it: it is put after the last result of a tool, or begins the next turn.
    A channel that wants an answer before it hands over the next turn waits in :meth:`receive` for the output whose
    `streaming` is False; each turn that was received brings one, unless it steered the turn before.
    """

    @property
    def kind(self) -> str:
        """What it is, such as `terminal` or `http`."""

    async def receive(self) -> UserTurn:
        """The next turn. Raises ChannelClosedError when no more comes."""

    async def send(self, output: AgentOutput) -> None:
        """Show an output. One that the other side cannot be given any more is dropped, without an error."""

    def on_close(self, handler: Callable[[], None]) -> None:
        """Let `handler` be called, once, when the channel closes; at once when it is closed already."""
