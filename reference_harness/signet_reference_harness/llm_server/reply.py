"""A turn as the answer to one request, with everything that an interface needs to write it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from signet_reference_harness.errors import HarnessError
from signet_reference_harness.llm_server import script
from signet_reference_harness.llm_server.playback import ScriptedRequest

_WORD = re.compile(r"\s*\S+\s*")
ARGUMENT_CHUNK = 16
"""Characters of a tool call's arguments in one chunk."""
_CHARACTERS_A_TOKEN = 4
WORDS: Mapping[str, Mapping[str, Any]] = json.loads(Path(__file__).with_name("words.json").read_bytes())
"""By interface: its words for reasons to stop, its types of errors by status, and its refusal of what is too long."""


class UnsupportedError(HarnessError):
    """Raised for a turn that the requested interface cannot express."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a stream: a `delta` of content, the `end` with its reason, or what is sent `around` them."""

    data: bytes
    kind: Literal["delta", "end", "around"] = "around"


@dataclass(frozen=True, slots=True)
class TurnReply:
    """A turn as the answer to the request `asked`, with the body, its size in bytes, and the number of that request.

    `created` is in seconds since 1970. `stops` is False for an answer without a reason to stop.
    """

    turn: script.ScriptedTurn
    asked: ScriptedRequest
    body: Mapping[str, Any]
    size: int
    number: int
    created: float
    stops: bool = True

    def id(self, prefix: str, index: int | None = None) -> str:
        """An id that is unique among this server's answers."""
        return f"{prefix}{self.number:06d}" + ("" if index is None else f"{index:02d}")

    def call_id(self, part: script.ToolCallPart, index: int, prefix: str) -> str:
        """The id of the tool call at `index` among the parts."""
        return part.id or self.id(prefix, index)

    def stop(self, words: Mapping[script.StopReason, Any]) -> Any:
        """The reason to stop in the interface's own word. Raises UnsupportedError if it has no such word."""
        if not self.stops:
            return None
        api = self.asked.api
        member = api.replace("-", "_")
        if member in self.turn.raw_stop.model_fields_set:
            return getattr(self.turn.raw_stop, member)
        reason = self.turn.stop or self._usual_stop()
        if reason not in words:
            raise UnsupportedError(f"{api} has no word for the stop reason {reason!r}", remedy=f"give raw_stop.{api}")
        return words[reason]

    def _usual_stop(self) -> script.StopReason:
        if any(isinstance(part, script.ToolCallPart) for part in self.turn.parts):
            return "tool_use"
        return "refusal" if any(isinstance(part, script.RefusalPart) for part in self.turn.parts) else "end_turn"

    @property
    def tokens(self) -> Mapping[str, int]:
        """The numbers of tokens by the names of ScriptedUsage: those of the script, else estimates."""
        characters = sum(len(chunk) for part in self.turn.parts for chunk in chunks_of(part))
        estimates = {"input_tokens": estimate(self.size), "output_tokens": estimate(characters)}
        return {**estimates, **self.turn.usage.model_dump(exclude_none=True)}


def chunks_of(part: script.AnyPart) -> Iterator[str]:
    """The texts of a part's deltas, at least one."""
    if not isinstance(part, script.ToolCallPart):
        return iter(chunks(part.text))
    text = part.argument_text
    return iter([text[at : at + ARGUMENT_CHUNK] for at in range(0, len(text), ARGUMENT_CHUNK)] or [""])


def chunks(text: script.Chunks) -> tuple[str, ...]:
    """A text as the chunks in which it is streamed: those of the script, or word by word."""
    return (tuple(_WORD.findall(text)) or (text,)) if isinstance(text, str) else text


def whole(text: script.Chunks) -> str:
    """A text as one string."""
    return text if isinstance(text, str) else "".join(text)


def opening(block: Mapping[str, Any], **empty: Any) -> dict[str, Any]:
    """A block or item at its start, without the content that deltas bring."""
    return {name: empty.get(name, value) for name, value in block.items()}


def estimate(size: int) -> int:
    """A rough number of tokens for `size` bytes."""
    return max(1, size // _CHARACTERS_A_TOKEN)


def to_json(value: Any) -> bytes:
    """A value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def server_sent(data: Any, event: str | None = None) -> bytes:
    """A server-sent event; a text is sent as it is."""
    head = f"event: {event}\n".encode() if event else b""
    body = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else to_json(data)
    return head + b"data: " + body + b"\n\n"
