"""A listener that keeps what it is told of a turn."""

from __future__ import annotations

from signet_reference_harness.messages import Message
from signet_reference_harness.session.events import Event
from signet_reference_harness.session.watching import Publisher


class EventRecorder(Publisher):
    """To be given as the `listener` of a turn: `events` as a stream would tell them, `messages` as they joined."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.messages: list[Message] = []
        super().__init__(self.events.append)

    def message(self, message: Message) -> None:
        """Keep it."""
        self.messages.append(message)
