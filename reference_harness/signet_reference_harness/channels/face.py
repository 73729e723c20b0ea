"""What a chat shows beside the answers, whatever kind of terminal there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from signet_reference_harness.channels import Channel, UserTurn


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What the status line says; `context` is tokens in the model's context, the others those of the session."""

    agent: str
    session: str
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    context: int = 0


class Face(Channel, Protocol):
    """A channel to a person, which shows words of the harness too."""

    async def run(self) -> None:
        """Show and read until the channel is closed."""

    def close(self) -> None:
        """Close the channel."""

    def said(self, turn: UserTurn) -> None:
        """What the person said joins the conversation, or is carried out."""

    def said_before(self, reply: str) -> None:
        """An answer of a conversation that is gone on with."""

    def note(self, text: str) -> None:
        """A word of the harness."""

    def error(self, text: str) -> None:
        """What went wrong."""

    def rows(self, title: str, rows: Sequence[tuple[str, str]]) -> None:
        """A heading, and names with what there is to say of each."""
