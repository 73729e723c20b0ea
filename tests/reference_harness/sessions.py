"""Short ways to sessions and turns, for tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from signet_reference_harness.host import SessionHost
from signet_reference_harness.messages import Message
from signet_reference_harness.providers.completion import CompletionChunk, CompletionOptions, CompletionResult
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.session import Session
from signet_reference_harness.turn import TurnResult

PROJECT = "/workspace/acme"
AGENT = "atlas-agent"
IDENTITY = {"harness": "reference", "sessionKey": "key-s1", "agentId": AGENT, "runtimePath": "plugin"}
"""What every hook of the session that :func:`session_of` makes says of it."""


def session_of(host: SessionHost, name: str = "s1", *, key: str | None = None, agent: str = AGENT) -> Session:
    """A session that has not been started; its key is `key-<name>` unless given."""
    return host.session_for(name, project=PROJECT, agent=agent, key=key or f"key-{name}")


async def say(session: Session, text: str, reply: str = "Fine.") -> TurnResult:
    """One turn with a scripted reply."""
    return await session.turn(text, ScriptedProvider([CompletionResult(content=reply)]))


def turns(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Role and content of each line of an end's transcript."""
    return [(line["role"], line["content"]) for line in map(json.loads, body["transcript"].split("\n"))]


class Stream:
    """A provider that yields `chunks`, then raises `error`, or sets `arrived` and hangs, or does nothing more."""

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
