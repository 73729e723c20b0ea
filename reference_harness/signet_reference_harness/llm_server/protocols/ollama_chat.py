"""Ollama's chat: POST /api/chat, one JSON object a line. It streams unless the request says otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

from signet_reference_harness.llm_server import script
from signet_reference_harness.llm_server.playback import ScriptedRequest
from signet_reference_harness.llm_server.protocols.openai_completions import joined, parse_chat, tool_calls
from signet_reference_harness.llm_server.reply import WORDS, Piece, TurnReply, UnsupportedError, chunks_of

NAME: Final[script.ApiName] = "ollama-chat"
PATH: Final = "/api/chat"
MEDIA_TYPE: Final = "application/x-ndjson"
GARBAGE: Final = '{"model":"scripted","message":{"role":"assis\n'

STOPS: Final = WORDS[NAME]["stops"]
_DURATIONS_NS: Final = {"total_duration": 3_000_000, "load_duration": 1_000_000}
_EVALUATION_NS: Final = 1_000_000


def parse(body: Mapping[str, Any]) -> ScriptedRequest:
    """Read the request."""
    return parse_chat(NAME, body, streams=body.get("stream") is not False)


def answer(reply: TurnReply) -> dict[str, Any]:
    """The whole answer."""
    message: dict[str, Any] = {"role": "assistant", "content": joined(reply, script.TextPart) or ""}
    if thought := joined(reply, script.ThinkingPart):
        message["thinking"] = thought
    if calls := [_call(reply, part, index) for index, part in tool_calls(reply)]:
        message["tool_calls"] = calls
    return _last(reply, message)


def stream(reply: TurnReply) -> Iterator[Piece]:
    """The answer as lines; a tool call comes whole."""
    last = _last(reply, {"role": "assistant", "content": ""})
    for index, part in enumerate(reply.turn.parts):
        if isinstance(part, script.ToolCallPart):
            call = {"tool_calls": [_call(reply, part, index)]}
            yield _line({**_head(reply), "message": {"role": "assistant", "content": "", **call}, "done": False})
            continue
        for chunk in chunks_of(part):
            piece = {"content": "", "thinking": chunk} if isinstance(part, script.ThinkingPart) else {"content": chunk}
            yield _line({**_head(reply), "message": {"role": "assistant", **piece}, "done": False})
    yield _line(last, "end")


def _line(value: Mapping[str, Any], kind: Literal["delta", "end"] = "delta") -> Piece:
    return Piece(write(value), kind)


def write(data: Any, _name: str | None = None) -> bytes:
    """A line of a stream; a text is sent as it is."""
    # Non-ASCII is escaped, as by Ollama: some readers take certain characters for the end of a line.
    return (data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))).encode() + b"\n"


def _head(reply: TurnReply) -> dict[str, Any]:
    created = datetime.fromtimestamp(reply.created, UTC).isoformat().replace("+00:00", "Z")
    return {"model": reply.asked.model, "created_at": created}


def _last(reply: TurnReply, message: dict[str, Any]) -> dict[str, Any]:
    """The object that ends an answer; without a reason to stop its `done` is false."""
    if any(isinstance(part, script.RefusalPart) for part in reply.turn.parts):
        raise UnsupportedError(f"{NAME} has no refusal", remedy="make it a text part")
    reason = reply.stop(STOPS)
    tokens = reply.tokens
    last = {**_head(reply), "message": message, "done": reply.stops}
    if reason is not None:
        last["done_reason"] = reason
    counts = {
        "prompt_eval_count": tokens["input_tokens"],
        "prompt_eval_duration": _EVALUATION_NS,
        "eval_count": tokens["output_tokens"],
        "eval_duration": _EVALUATION_NS,
    }
    return {**last, **_DURATIONS_NS, **counts}


def _call(reply: TurnReply, part: script.ToolCallPart, index: int) -> dict[str, Any]:
    arguments: Any = part.arguments
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            # In a JSON object, invalid JSON can only be a text.
            arguments = part.argument_text
    return {"id": reply.call_id(part, index, "call_"), "function": {"name": part.name, "arguments": arguments}}


def failure(error: script.ErrorAnswer) -> tuple[int, dict[str, Any]]:
    """The status and body of an error answer."""
    status, message = error.status_and_message(WORDS[NAME]["too_long"])
    return status, {"error": message}


def failure_event(error: script.ErrorAnswer) -> bytes:
    """An error in the middle of a stream."""
    return write(failure(error)[1])


def headers(number: int, limits: tuple[script.ScriptedLimit, ...], now: datetime) -> dict[str, str]:
    """No headers: Ollama sends neither the number of a request nor limits."""
    del number, limits, now
    return {}
