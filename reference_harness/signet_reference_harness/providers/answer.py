"""An answer of any vendor as it arrives, and its result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from typing import Any
from uuid import uuid4

from signet_reference_harness.messages import Thinking, ToolCall
from signet_reference_harness.providers import Api, CompletionChunk, CompletionResult, StopReason, Usage, reason_of
from signet_reference_harness.providers.failures import answer_too_long


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    arguments: StringIO = field(default_factory=StringIO)
    """Their JSON text."""
    value: object = None
    """Arguments that arrived as a value, not as JSON text."""


@dataclass(slots=True, kw_only=True)
class AnswerInProgress:
    """The arrived parts of one answer of `api`. A provider fills it; text and thinking are shown as they come.

    Its methods raise CallFailure once the answer has more than `longest` bytes.
    """

    api: Api
    longest: int
    raw_reason: str | None = None
    begun: bool = False
    """Whether the provider has begun to answer; a failure before that is not in the answer."""
    done: bool = False
    """Whether the provider has said that the answer is complete, with or without a reason."""
    detail: str = ""
    usage: Usage = field(default_factory=Usage)
    refused: bool = False
    thinking: list[Thinking] = field(default_factory=list)
    unfinished: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Blocks that a provider has begun to read, by their place in the answer."""
    _thoughts: StringIO = field(default_factory=StringIO)
    _text: StringIO = field(default_factory=StringIO)
    _calls: dict[object, _Call] = field(default_factory=dict)
    _size: int = 0

    def add_text(self, piece: str) -> CompletionChunk:
        """Add a piece of text; return the chunk that shows it."""
        self._count_bytes(piece)
        self._text.write(piece)
        return CompletionChunk(piece)

    def add_refusal(self, piece: str) -> CompletionChunk:
        """Add a piece of the model's refusal; return the chunk that shows it."""
        self.refused = True
        return self.add_text(piece)

    def add_thought(self, piece: str) -> CompletionChunk:
        """Add a piece of thinking; return the chunk that shows it. The provider stores the whole in `thinking`."""
        self._count_bytes(piece)
        self._thoughts.write(piece)
        return CompletionChunk(piece, kind="thinking")

    @property
    def thoughts(self) -> str:
        """The text of all pieces of thinking."""
        return self._thoughts.getvalue()

    def begin_call(self, key: object, identity: str | None, name: str | None, *, value: object = None) -> None:
        """Begin a tool call, known by `key` while it arrives; without an `identity` it gets a new id."""
        call = _Call(identity or f"call_{uuid4().hex}", name or "", value=value)
        self._count_bytes(call.id + call.name + ("" if value is None else repr(value)))
        self._calls[key] = call

    def add_arguments(self, key: object, piece: str) -> None:
        """Add a piece of the JSON arguments of the call `key`. Raises KeyError for a call that did not begin."""
        self._count_bytes(piece)
        self._calls[key].arguments.write(piece)

    def _count_bytes(self, piece: str) -> None:
        self._size += len(piece.encode(errors="surrogatepass"))
        if self._size > self.longest:
            raise answer_too_long(self.longest)

    def call_id(self, key: object) -> str | None:
        """The id of the call `key`; None when no such call has begun."""
        return self._calls[key].id if key in self._calls else None

    def note_tokens(self, read: object, written: object) -> None:
        """Note the provider's token counts; ignore a count that is not a whole number."""
        self.usage = Usage(
            whole_number(read) or self.usage.input_tokens, whole_number(written) or self.usage.output_tokens
        )

    def note_end(self, reason: object) -> None:
        """Note the provider's reason for the end, if it gives one. Raises TypeError if it is not a string."""
        if reason and not isinstance(reason, str):
            raise TypeError(f"the reason {reason!r} is not a text")
        self.raw_reason = str(reason) if reason else self.raw_reason

    def result(self) -> CompletionResult:
        """The result of the answer, once no more of it arrives."""
        calls = tuple(_tool_call(call) for call in self._calls.values())
        if self.raw_reason is None and not self.done:
            return self.broken(StopReason.MALFORMED, "the answer ended without a reason")
        reason = reason_of(self.api, self.raw_reason, tool_calls=bool(self._calls), refusal=self.refused)
        detail = self.detail
        if reason is None:
            reason, detail = StopReason.ERROR, f"the reason {self.raw_reason!r} is not in the table of {self.api}"
        elif reason is StopReason.TOOL_USE and not all(call.name for call in calls):
            reason, detail, calls = StopReason.MALFORMED, "a tool call names no tool", ()
        elif reason is StopReason.TOOL_USE and not calls:
            reason, detail = StopReason.MALFORMED, f"the reason is {self.raw_reason!r}, but no tool is called"
        elif reason is StopReason.MALFORMED:
            detail = detail or "the provider says that it is done, and gives no reason"
        elif reason is StopReason.ERROR:
            detail = detail or f"the provider ended with {self.raw_reason!r}"
        return self._completion(reason, detail, calls)

    def broken(self, reason: StopReason, detail: str, raw_reason: str | None = None) -> CompletionResult:
        """The result of an answer that broke off: what arrived, and why nothing followed."""
        self.raw_reason = raw_reason or self.raw_reason
        return self._completion(reason, detail, ())

    def _completion(self, reason: StopReason, detail: str, calls: tuple[ToolCall, ...]) -> CompletionResult:
        return CompletionResult(
            content=self._text.getvalue(),
            tool_calls=calls,
            stop_reason=reason,
            usage=self.usage,
            raw_reason=self.raw_reason,
            detail=detail,
            thinking=tuple(self.thinking),
        )


def whole_number(value: object) -> int:
    """Return a provider's count, or 0 for an invalid one: only the displayed sum depends on it."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _tool_call(call: _Call) -> ToolCall:
    """The call; with a fault if its arguments are not a JSON object."""
    arguments = call.value if call.value is not None else _parse_arguments(call.arguments.getvalue())
    if isinstance(arguments, Mapping):
        return ToolCall(call.id, call.name, arguments)
    return ToolCall(call.id, call.name, {}, f"the arguments are not a JSON object: {_shorten(call)}")


def _parse_arguments(text: str) -> Any:
    if not text.strip():
        return {}  # a tool without parameters: some models send nothing at all
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _shorten(call: _Call) -> str:
    text = call.arguments.getvalue() or repr(call.value)
    return text if len(text) <= 200 else f"{text[:200]}..."
