"""Language models: the interface `Provider`, with requests and answers in one form for all vendors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import msgspec

from signet_reference_harness.messages import Message, Thinking, ToolCall, ToolDefinition


class StopReason(StrEnum):
    """Why a completion, or the turn, ended."""

    END_TURN = "end_turn"
    STOP_SEQUENCE = "stop_sequence"
    TOOL_USE = "tool_use"
    LENGTH = "length"
    CONTEXT_LIMIT = "context_limit"
    CONTENT_FILTER = "content_filter"
    REFUSAL = "refusal"
    PAUSE = "pause"
    MALFORMED = "malformed"
    """The answer broke off, or cannot be read; the part that arrived is kept."""
    CANCELLED = "cancelled"
    ROUND_LIMIT = "round_limit"
    """The model still wanted tools when the largest number of rounds was reached."""
    ERROR = "error"
    """The provider failed, or gave a reason that the published table does not contain."""


LONGEST_ANSWER: Final = 16 * 1024 * 1024
"""Bytes of the words, the thinking and the tools' arguments in one answer, unless the settings give another number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionOptions:
    """Options of a completion; None leaves a choice to the provider. `system_prompt` holds all assembled context.

    `tool_choice` "none" forbids tool calls: `tools` then still holds those that earlier messages called, as some
    vendors demand; a provider whose vendor has no such choice leaves the tools out. The first `stable_prompt`
    characters of the system prompt are the same in each turn of the session, as are the tools except those that
    come and go. A vendor may cache them.
    An answer of more than `longest_answer` bytes is cut there and ends as malformed.
    `metadata` names the parts of the assembled context, in their order; it is for logs, no provider sends it.
    """

    model: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    """Texts at which the model stops."""
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: Literal["auto", "none"] = "auto"
    system_prompt: str = ""
    stable_prompt: int = 0
    longest_answer: int = LONGEST_ANSWER
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a completion took."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionResult:
    """The model's message and its tool calls.

    `raw_reason` is the provider's own word for its end, or None; `detail` explains a
    `stop_reason` that is a failure.
    """

    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    stop_reason: StopReason = StopReason.END_TURN
    usage: Usage = field(default_factory=Usage)
    raw_reason: str | None = None
    detail: str = ""
    thinking: tuple[Thinking, ...] = ()


@dataclass(frozen=True, slots=True)
class CompletionChunk:
    """A piece of a streamed completion: `text` of that `kind`. The last one carries the whole `result`."""

    text: str
    kind: Literal["text", "thinking"] = "text"
    result: CompletionResult | None = None


Api = Literal["anthropic-messages", "openai-completions", "openai-responses", "ollama-chat"]
APIS: Final[tuple[Api, ...]] = ("anthropic-messages", "openai-completions", "openai-responses", "ollama-chat")
Place = Literal["reason", "error", "message"]
Beside = Literal["", "tool calls", "refusal"]


class ReasonRow(msgspec.Struct, frozen=True):
    """One row: the word `raw` of `api` means `reason`.

    `place` says where the word occurs: as the reason of an answer, as the code or type of an error, or within an
    error's message, in lower case. A row with `beside` applies if the answer also contains that, and precedes a row
    without. `raw` is None if the provider says that it is done and gives no reason.
    """

    api: Api
    raw: str | None
    reason: StopReason
    beside: Beside = ""
    place: Place = "reason"


_REASONS = Path(__file__).with_name("reasons.json").read_bytes()
TABLE: Final = msgspec.json.decode(_REASONS, type=tuple[ReasonRow, ...])
"""The words of all vendors. A word in no row is an error."""


def reason_of(api: Api, raw: str | None, *, tool_calls: bool = False, refusal: bool = False) -> StopReason | None:
    """The meaning of the word `raw` at the end of an answer of `api`; None for a word that the table lacks."""
    beside: tuple[Beside, ...] = (*(("refusal",) if refusal else ()), *(("tool calls",) if tool_calls else ()), "")
    rows = {row.beside: row.reason for row in TABLE if (row.api, row.place, row.raw) == (api, "reason", raw)}
    return next((rows[which] for which in beside if which in rows), None)


def reason_of_error(api: Api, words: tuple[str, ...], message: str) -> StopReason | None:
    """The meaning of an error with code and type `words`; None for an error without a meaning of its own."""
    lower = message.lower()
    for row in TABLE:
        if row.api != api or row.raw is None or row.place == "reason":
            continue
        if row.raw in words if row.place == "error" else row.raw in lower:
            return row.reason
    return None


class Provider(Protocol):
    """A language model.

    `complete` and `stream` raise ProviderError, and only that, when it cannot answer. A stream that has yielded a
    chunk no longer raises: it ends with a result that says how it broke and holds what had arrived. The messages hold
    no reminders: the loop has converted them to text. A user's message may follow the results of tools; where the
    vendor allows it, the provider sends both as one message.
    """

    @property
    def id(self) -> str:
        """The provider's name, such as `ollama`."""

    async def complete(self, messages: Sequence[Message], options: CompletionOptions) -> CompletionResult:
        """The model's next message."""

    def stream(self, messages: Sequence[Message], options: CompletionOptions) -> AsyncIterator[CompletionChunk]:
        """The model's next message, piece by piece."""

    async def available(self) -> bool:
        """Whether the model can be asked at all."""

    async def aclose(self) -> None:
        """Close the provider's connections; it is not used after that."""
