"""Requests to a provider and its answers, in one form for all vendors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from signet_reference_harness.messages import Thinking, ToolCall, ToolDefinition


class StopReason(StrEnum):
    """The reason for which a completion, and at last a turn, ended."""

    END_TURN = "end_turn"
    STOP_SEQUENCE = "stop_sequence"
    TOOL_USE = "tool_use"
    LENGTH = "length"
    CONTEXT_LIMIT = "context_limit"
    CONTENT_FILTER = "content_filter"
    REFUSAL = "refusal"
    PAUSE = "pause"
    MALFORMED = "malformed"
    """The answer broke off, or cannot be read; what arrived of it is kept."""
    CANCELLED = "cancelled"
    ROUND_LIMIT = "round_limit"
    """The model still wanted tools when the largest number of rounds was reached."""
    ERROR = "error"
    """The provider failed, or gave a reason that the published table does not hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionOptions:
    """Options of a completion; None leaves a choice to the provider. `system_prompt` holds all assembled context.

    `tool_choice` "none" forbids tool calls: `tools` then still holds those that earlier messages called, as some
    vendors demand; a provider whose vendor has no such choice leaves the tools out. The first `stable_prompt`
    characters of the system prompt are the same in each turn of the session, as are the tools except those that
    come and go. A vendor may cache them.
    `metadata` names the parts of the assembled context, in their order; it is for logs, no provider sends it.
    """

    model: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: Literal["auto", "none"] = "auto"
    system_prompt: str = ""
    stable_prompt: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a completion took."""

    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """One of the provider's limits. `scope` is its own word, such as `requests` or `tokens`."""

    scope: str
    limit: int | None = None
    remaining: int | None = None
    reset_s: float | None = None
    """Seconds from the answer until the limit is full again."""


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
    rate_limits: tuple[RateLimit, ...] = ()
    thinking: tuple[Thinking, ...] = ()


@dataclass(frozen=True, slots=True)
class CompletionChunk:
    """A piece of a streamed completion: `text` of that `kind`. The last one carries the whole `result`."""

    text: str
    kind: Literal["text", "thinking"] = "text"
    result: CompletionResult | None = None
