"""Models that answer from a script: in this process, or behind a vendor's interface, where requests can be recorded."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

import httpx

from signet_reference_harness.config import certificates_for
from signet_reference_harness.errors import ProviderError
from signet_reference_harness.messages import Message
from signet_reference_harness.providers import CompletionChunk, CompletionOptions, CompletionResult, Provider

Before = Callable[[], Awaitable[None]]


class ScriptedProvider:
    """Answers with the given completions, one a call, in order; and keeps what it was asked in `seen`.

    `before` is awaited once, when the first completion is asked for. Raises ProviderError when the script
    has run out.
    """

    id = "scripted"

    def __init__(self, script: Sequence[CompletionResult], before: Before | None = None) -> None:
        self._script = list(script)
        self._before = before
        self.seen: list[tuple[tuple[Message, ...], CompletionOptions]] = []

    async def complete(self, messages: Sequence[Message], options: CompletionOptions) -> CompletionResult:
        """The next completion of the script."""
        return await self._next(messages, options)

    async def _next(self, messages: Sequence[Message], options: CompletionOptions) -> CompletionResult:
        self.seen.append((tuple(messages), options))
        if self._before is not None:
            before, self._before = self._before, None
            await before()
        if not self._script:
            raise ProviderError("the script has no completion left", remedy="give one completion for each call")
        return self._script.pop(0)

    async def stream(self, messages: Sequence[Message], options: CompletionOptions) -> AsyncIterator[CompletionChunk]:
        """The next completion of the script, word by word."""
        result = await self.complete(messages, options)
        for word in re.findall(r"\s*\S+\s*|\s+", result.content):
            yield CompletionChunk(word)
        yield CompletionChunk("", result=result)

    async def available(self) -> bool:
        """True while the script has completions left."""
        return bool(self._script)

    async def aclose(self) -> None:
        """Nothing: a script holds no connection."""


class ServedModels:
    """Makes models with a script of their own, all of which ask `provider`; its server is scripted at `control`."""

    def __init__(self, control: str, provider: Provider) -> None:
        self._control = control
        self._provider = provider
        self._http: httpx.AsyncClient | None = None

    def __call__(self, script: Sequence[CompletionResult], before: Before | None = None) -> Provider:
        """A model that gives these answers; `before` is awaited once, when the first is asked for."""
        return _ServedModel(self, script, before)

    async def ask(
        self, messages: Sequence[Message], options: CompletionOptions, answer: CompletionResult
    ) -> AsyncIterator[CompletionChunk]:
        """Ask the model, which gives `answer`. Raises ProviderError when it cannot be asked."""
        await self.script(answer)
        async for chunk in self._provider.stream(messages, options):
            yield chunk

    async def script(self, answer: CompletionResult) -> None:
        """Let the server give `answer` to the next request that waits or comes."""
        if self._http is None:
            verify = certificates_for(self._control)
            self._http = httpx.AsyncClient(base_url=self._control, trust_env=False, verify=verify, timeout=30.0)
        try:
            told = await self._http.post("/turns", content=json.dumps({"turns": [_turn(answer)]}))
            told.raise_for_status()
        except httpx.HTTPError as error:
            raise ProviderError(f"the scripted model cannot be told its answer: {error}") from error

    async def aclose(self) -> None:
        """End the connections."""
        await self._provider.aclose()
        if self._http is not None:
            await self._http.aclose()


class _ServedModel(ScriptedProvider):
    id = "served"

    def __init__(self, models: ServedModels, script: Sequence[CompletionResult], before: Before | None) -> None:
        super().__init__(script, before)
        self._models = models

    async def stream(self, messages: Sequence[Message], options: CompletionOptions) -> AsyncIterator[CompletionChunk]:
        answer = await self._next(messages, options)
        async for chunk in self._models.ask(messages, options, answer):
            yield chunk

    async def complete(self, messages: Sequence[Message], options: CompletionOptions) -> CompletionResult:
        result = CompletionResult(content="")
        async for chunk in self.stream(messages, options):
            result = chunk.result or result
        return result


def _turn(answer: CompletionResult) -> Mapping[str, Any]:
    parts: list[Mapping[str, Any]] = [{"type": "text", "text": answer.content}] if answer.content else []
    parts += [
        {"type": "tool_call", "name": call.name, "arguments": dict(call.arguments), "id": call.id}
        for call in answer.tool_calls
    ]
    return {"content": parts}
