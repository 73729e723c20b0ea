"""A provider that streams what a test gives it, and then breaks, hangs or ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from signet_reference_harness.messages import Message
from signet_reference_harness.providers.completion import CompletionChunk, CompletionOptions, CompletionResult


class StreamingProvider:
    """Yields `chunks`, then raises `error`, or sets `arrived` and hangs, or does nothing more.

    `closed` tells whether its stream was closed.
    """

    id = "stream"

    def __init__(
        self, *chunks: CompletionChunk, error: BaseException | None = None, arrived: asyncio.Event | None = None
    ) -> None:
        self.chunks, self.error, self.arrived, self.closed = chunks, error, arrived, False

    async def complete(self, _messages: Sequence[Message], _options: CompletionOptions) -> CompletionResult:
        """Never asked for by the loop."""
        raise NotImplementedError

    async def stream(self, _messages: Sequence[Message], _options: CompletionOptions) -> AsyncIterator[CompletionChunk]:
        """The chunks, and then what was ordered."""
        try:
            for chunk in self.chunks:
                yield chunk
            if self.error is not None:
                raise self.error
            if self.arrived is not None:
                self.arrived.set()
                await asyncio.Event().wait()
        finally:
            self.closed = True

    async def available(self) -> bool:
        """Always."""
        return True

    async def aclose(self) -> None:
        """Nothing to close."""
