"""What the session loop asks of a language model, and a provider that answers from a script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from signet_reference_harness.errors import ProviderError

Role = Literal["user", "assistant", "tool"]
StopReason = Literal["end_turn", "tool_use", "max_tokens", "stop_sequence"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model asks for; `id` ties the result to the call."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the model's context. A `tool` message answers the call named by `tool_call_id`."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as the model sees it; `input_schema` is a JSON Schema."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionOptions:
    """How to complete; None leaves a choice to the provider. `system_prompt` holds all injected context."""

    model: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    tools: tuple[ToolDefinition, ...] = ()
    system_prompt: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a completion took."""

    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionResult:
    """What the model said and which tools it wants."""

    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    stop_reason: StopReason = "end_turn"
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class CompletionChunk:
    """A piece of a streamed completion; the last one carries the whole `result`."""

    text: str
    result: CompletionResult | None = None


class Provider(Protocol):
    """A language model. All three methods raise ProviderError, and only that, when it cannot answer."""

    @property
    def id(self) -> str:
        """The provider's name, such as `ollama`."""

    async def complete(self, messages: Sequence[Message], options: CompletionOptions) -> CompletionResult:
        """The model's next message."""

    def stream(self, messages: Sequence[Message], options: CompletionOptions) -> AsyncIterator[CompletionChunk]:
        """The model's next message, piece by piece."""

    async def available(self) -> bool:
        """Whether the model can be asked at all."""


class ScriptedProvider:
    """Answers with the given completions, one a call, in order; and keeps what it was asked in `seen`.

    `before` is awaited once, when the first completion is asked for. Raises ProviderError when the script
    has run out.
    """

    id = "scripted"

    def __init__(self, script: Sequence[CompletionResult], before: Callable[[], Awaitable[None]] | None = None) -> None:
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
        for word in result.content.split(" "):
            yield CompletionChunk(f"{word} ")
        yield CompletionChunk("", result)

    async def available(self) -> bool:
        """True while the script has completions left."""
        return bool(self._script)
