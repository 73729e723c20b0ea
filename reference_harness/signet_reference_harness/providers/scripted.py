"""A model that answers from a script, in this process."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from signet_reference_harness.errors import ProviderError
from signet_reference_harness.messages import Message
from signet_reference_harness.providers import CompletionChunk, CompletionOptions, CompletionResult

Before = Callable[[], Awaitable[None]]


class ScriptedProvider:
    """Answers with the given completions, one per call, in order; `seen` collects the requests.

    `before` is awaited once, before the first completion. Raises ProviderError when the script
    has run out.
    """

    id = "scripted"

    def __init__(self, script: Sequence[CompletionResult], before: Before | None = None) -> None:
        self._script = list(script)
        self._before = before
        self.seen: list[tuple[tuple[Message, ...], CompletionOptions]] = []

    async def complete(self, messages: Sequence[Message], options: CompletionOptions) -> CompletionResult:
        """The next completion of the script."""
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
        """Do nothing: a script has no connection."""
