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
class Row:
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


TABLE: Final[tuple[Row, ...]] = (
    Row("anthropic-messages", "end_turn", StopReason.END_TURN),
    Row("anthropic-messages", "stop_sequence", StopReason.STOP_SEQUENCE),
    Row("anthropic-messages", "max_tokens", StopReason.LENGTH),
    Row("anthropic-messages", "tool_use", StopReason.TOOL_USE),
    Row("anthropic-messages", "pause_turn", StopReason.PAUSE),
    Row("anthropic-messages", "refusal", StopReason.REFUSAL),
    Row("anthropic-messages", "model_context_window_exceeded", StopReason.CONTEXT_LIMIT),
    Row("anthropic-messages", "request_too_large", StopReason.CONTEXT_LIMIT, place="error"),
    Row("anthropic-messages", "prompt is too long", StopReason.CONTEXT_LIMIT, place="message"),
    Row("openai-completions", "stop", StopReason.END_TURN),
    Row("openai-completions", "stop", StopReason.TOOL_USE, beside="tool calls"),
    Row("openai-completions", "stop", StopReason.REFUSAL, beside="refusal"),
    Row("openai-completions", "length", StopReason.LENGTH),
    Row("openai-completions", "tool_calls", StopReason.TOOL_USE),
    Row("openai-completions", "function_call", StopReason.TOOL_USE),
    Row("openai-completions", "content_filter", StopReason.CONTENT_FILTER),
    Row("openai-completions", "context_length_exceeded", StopReason.CONTEXT_LIMIT, place="error"),
    Row("openai-completions", "exceed_context_size_error", StopReason.CONTEXT_LIMIT, place="error"),
    Row("openai-completions", "maximum context length", StopReason.CONTEXT_LIMIT, place="message"),
    Row("openai-completions", "content_filter", StopReason.CONTENT_FILTER, place="error"),
    Row("openai-responses", "completed", StopReason.END_TURN),
    Row("openai-responses", "completed", StopReason.TOOL_USE, beside="tool calls"),
    Row("openai-responses", "completed", StopReason.REFUSAL, beside="refusal"),
    Row("openai-responses", "failed", StopReason.ERROR),
    Row("openai-responses", "cancelled", StopReason.CANCELLED),
    Row("openai-responses", "incomplete: max_output_tokens", StopReason.LENGTH),
    Row("openai-responses", "incomplete: content_filter", StopReason.CONTENT_FILTER),
    Row("openai-responses", "context_length_exceeded", StopReason.CONTEXT_LIMIT, place="error"),
    Row("openai-responses", "content_filter", StopReason.CONTENT_FILTER, place="error"),
    Row("ollama-chat", "stop", StopReason.END_TURN),
    Row("ollama-chat", "stop", StopReason.TOOL_USE, beside="tool calls"),
    Row("ollama-chat", "length", StopReason.LENGTH),
    Row("ollama-chat", "load", StopReason.ERROR),
    Row("ollama-chat", "unload", StopReason.ERROR),
    Row("ollama-chat", None, StopReason.MALFORMED),
    Row("ollama-chat", "exceeds the context length", StopReason.CONTEXT_LIMIT, place="message"),
)


def reason_of(api: Api, raw: str | None, *, tool_calls: bool = False, refusal: bool = False) -> StopReason | None:
    """What the word `raw` means at the end of an answer of `api`; None when the table does not hold it."""
    beside: tuple[Beside, ...] = (*(("refusal",) if refusal else ()), *(("tool calls",) if tool_calls else ()), "")
    rows = {row.beside: row.reason for row in TABLE if (row.api, row.place, row.raw) == (api, "reason", raw)}
    return next((rows[which] for which in beside if which in rows), None)


def reason_of_error(api: Api, words: tuple[str, ...], message: str) -> StopReason | None:
    """What an error means whose code and type are `words`; None when it is an error like any other."""
    lower = message.lower()
    for row in TABLE:
        if row.api != api or row.raw is None or row.place == "reason":
            continue
        if row.raw in words if row.place == "error" else row.raw in lower:
            return row.reason
    return None
