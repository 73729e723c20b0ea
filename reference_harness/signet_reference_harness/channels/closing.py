"""The end of a channel, which happens once and is told to whoever asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from signet_reference_harness.channels import ChannelClosedError, UserTurn


class Closing:
    """The turns of a channel that wait to be received, and its end: the part that channels have in common."""

    def __init__(self) -> None:
        self.closed = False
        self._handlers: list[Callable[[], None]] = []
        self._waiting: asyncio.Queue[UserTurn | None] = asyncio.Queue()

    def put(self, turn: UserTurn) -> None:
        """Let `turn` be received after those that wait already."""
        self._waiting.put_nowait(turn)

    @property
    def waiting(self) -> int:
        """How many turns have come and were not received yet."""
        return self._waiting.qsize()

    async def receive(self) -> UserTurn:
        """The next turn. Raises ChannelClosedError once the channel is closed, whatever still waits."""
        turn = None if self.closed else await self._waiting.get()
        if turn is None:
            raise ChannelClosedError("the channel is closed")
        return turn

    def on_close(self, handler: Callable[[], None]) -> None:
        """Call `handler` when the channel closes; at once when it is closed already."""
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
