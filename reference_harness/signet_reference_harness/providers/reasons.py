"""The published table of reasons: which word of which API means which normalised reason.

docs/harness/reasons.md shows the same rows; a test holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from signet_reference_harness.providers.completion import StopReason

Api = Literal["anthropic-messages", "openai-completions", "openai-responses", "ollama-chat"]
APIS: Final[tuple[Api, ...]] = ("anthropic-messages", "openai-completions", "openai-responses", "ollama-chat")
Place = Literal["reason", "error", "message"]
Beside = Literal["", "tool calls", "refusal"]


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """One row: the word `raw` of `api` means `reason`.

    `place` is where the word stands: as the reason of an answer, as the code or type of an error, or within an
    error's message, in lower case. A row with `beside` applies when the answer also holds that, and goes before
    one without. `raw` is None where the provider says that it is done and gives no word.
    """

    api: Api
    raw: str | None
    reason: StopReason
    beside: Beside = ""
    place: Place = "reason"


TABLE: Final[tuple[ReasonRow, ...]] = (
    ReasonRow("anthropic-messages", "end_turn", StopReason.END_TURN),
    ReasonRow("anthropic-messages", "stop_sequence", StopReason.STOP_SEQUENCE),
    ReasonRow("anthropic-messages", "max_tokens", StopReason.LENGTH),
    ReasonRow("anthropic-messages", "tool_use", StopReason.TOOL_USE),
    ReasonRow("anthropic-messages", "pause_turn", StopReason.PAUSE),
    ReasonRow("anthropic-messages", "refusal", StopReason.REFUSAL),
    ReasonRow("anthropic-messages", "model_context_window_exceeded", StopReason.CONTEXT_LIMIT),
    ReasonRow("anthropic-messages", "request_too_large", StopReason.CONTEXT_LIMIT, place="error"),
    ReasonRow("anthropic-messages", "prompt is too long", StopReason.CONTEXT_LIMIT, place="message"),
    ReasonRow("openai-completions", "stop", StopReason.END_TURN),
    ReasonRow("openai-completions", "stop", StopReason.TOOL_USE, beside="tool calls"),
    ReasonRow("openai-completions", "stop", StopReason.REFUSAL, beside="refusal"),
    ReasonRow("openai-completions", "length", StopReason.LENGTH),
    ReasonRow("openai-completions", "tool_calls", StopReason.TOOL_USE),
    ReasonRow("openai-completions", "function_call", StopReason.TOOL_USE),
    ReasonRow("openai-completions", "content_filter", StopReason.CONTENT_FILTER),
    ReasonRow("openai-completions", "context_length_exceeded", StopReason.CONTEXT_LIMIT, place="error"),
    ReasonRow("openai-completions", "exceed_context_size_error", StopReason.CONTEXT_LIMIT, place="error"),
    ReasonRow("openai-completions", "maximum context length", StopReason.CONTEXT_LIMIT, place="message"),
    ReasonRow("openai-completions", "content_filter", StopReason.CONTENT_FILTER, place="error"),
    ReasonRow("openai-responses", "completed", StopReason.END_TURN),
    ReasonRow("openai-responses", "completed", StopReason.TOOL_USE, beside="tool calls"),
    ReasonRow("openai-responses", "completed", StopReason.REFUSAL, beside="refusal"),
    ReasonRow("openai-responses", "failed", StopReason.ERROR),
    ReasonRow("openai-responses", "cancelled", StopReason.CANCELLED),
    ReasonRow("openai-responses", "incomplete: max_output_tokens", StopReason.LENGTH),
    ReasonRow("openai-responses", "incomplete: content_filter", StopReason.CONTENT_FILTER),
    ReasonRow("openai-responses", "context_length_exceeded", StopReason.CONTEXT_LIMIT, place="error"),
    ReasonRow("openai-responses", "content_filter", StopReason.CONTENT_FILTER, place="error"),
    ReasonRow("ollama-chat", "stop", StopReason.END_TURN),
    ReasonRow("ollama-chat", "stop", StopReason.TOOL_USE, beside="tool calls"),
    ReasonRow("ollama-chat", "length", StopReason.LENGTH),
    ReasonRow("ollama-chat", "load", StopReason.ERROR),
    ReasonRow("ollama-chat", "unload", StopReason.ERROR),
    ReasonRow("ollama-chat", None, StopReason.MALFORMED),
    ReasonRow("ollama-chat", "exceeds the context length", StopReason.CONTEXT_LIMIT, place="message"),
)


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
