"""Anthropic's Messages: POST /v1/messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from signet_reference_harness.llm_server import script
from signet_reference_harness.llm_server.playback import RequestMessage, ScriptedRequest, names, text_of
from signet_reference_harness.llm_server.reply import WORDS, Piece, TurnReply, chunks_of, opening, server_sent, whole
from signet_reference_harness.messages import objects

NAME: Final[script.ApiName] = "anthropic-messages"
PATH: Final = "/v1/messages"
COUNT_PATH: Final = "/v1/messages/count_tokens"
MEDIA_TYPE: Final = "text/event-stream; charset=utf-8"
GARBAGE: Final = 'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"del\n\n'

STOPS: Final = WORDS[NAME]["stops"]
write = server_sent


def parse(body: Mapping[str, Any]) -> ScriptedRequest:
    """Read the request."""
    messages = [RequestMessage("system", text) for text in _systems(body.get("system"))]
    for message in objects(body.get("messages")):
        messages += _messages(str(message.get("role")), message.get("content"))
    tools = names(tool.get("name") for tool in objects(body.get("tools")))
    return ScriptedRequest(NAME, str(body.get("model") or ""), body.get("stream") is True, tuple(messages), tools)


def _systems(system: Any) -> list[str]:
    return [system] if isinstance(system, str) else [text_of([block]) for block in objects(system)]


def _messages(role: str, content: Any) -> Iterator[RequestMessage]:
    for block in objects(content):
        if block.get("type") == "tool_result":
            yield RequestMessage("tool", text_of(block.get("content")), (), str(block.get("tool_use_id")))
    text = text_of(content)
    calls = names(block.get("name") for block in objects(content) if block.get("type") == "tool_use")
    if text or calls:
        yield RequestMessage(role, text, calls)


def answer(reply: TurnReply) -> dict[str, Any]:
    """The whole answer."""
    blocks = [_block(reply, part, index) for index, part in enumerate(reply.turn.parts)]
    return {
        **_head(reply),
        "content": blocks,
        "stop_reason": reply.stop(STOPS),
        "stop_sequence": reply.turn.stop_sequence,
        "usage": _usage(reply),
    }


def stream(reply: TurnReply) -> Iterator[Piece]:
    """The answer as events."""
    stop = reply.stop(STOPS)
    usage = _usage(reply)
    opened: dict[str, Any] = {
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1},
    }
    yield _piece({"type": "message_start", "message": {**_head(reply), **opened}})
    yield _piece({"type": "ping"})
    for index, part in enumerate(reply.turn.parts):
        block = opening(_block(reply, part, index), text="", thinking="", signature="", input={})
        yield _piece({"type": "content_block_start", "index": index, "content_block": block})
        for chunk in chunks_of(part):
            yield _piece({"type": "content_block_delta", "index": index, "delta": _delta(part, chunk)}, "delta")
        if isinstance(part, script.ThinkingPart):
            signed = {"type": "signature_delta", "signature": part.signature}
            yield _piece({"type": "content_block_delta", "index": index, "delta": signed})
        yield _piece({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": stop, "stop_sequence": reply.turn.stop_sequence}
    yield _piece({"type": "message_delta", "delta": delta, "usage": usage}, "end")
    yield _piece({"type": "message_stop"})


def _piece(data: Mapping[str, Any], kind: Any = "around") -> Piece:
    return Piece(server_sent(data, data["type"]), kind)


def _head(reply: TurnReply) -> dict[str, Any]:
    return {"id": reply.id("msg_"), "type": "message", "role": "assistant", "model": reply.asked.model}


def _block(reply: TurnReply, part: script.AnyPart, index: int) -> dict[str, Any]:
    if isinstance(part, script.ThinkingPart):
        return {"type": "thinking", "thinking": whole(part.text), "signature": part.signature}
    if isinstance(part, script.ToolCallPart):
        # Text that is not JSON has a place in a stream only.
        given: Any = part.arguments if isinstance(part.arguments, dict) else part.argument_text
        return {"type": "tool_use", "id": reply.call_id(part, index, "toolu_"), "name": part.name, "input": given}
    return {"type": "text", "text": whole(part.text)}


def _delta(part: script.AnyPart, chunk: str) -> dict[str, Any]:
    if isinstance(part, script.ThinkingPart):
        return {"type": "thinking_delta", "thinking": chunk}
    if isinstance(part, script.ToolCallPart):
        return {"type": "input_json_delta", "partial_json": chunk}
    return {"type": "text_delta", "text": chunk}


def _usage(reply: TurnReply) -> dict[str, Any]:
    tokens = reply.tokens
    return {
        "input_tokens": tokens["input_tokens"],
        "cache_creation_input_tokens": tokens["cache_write_tokens"],
        "cache_read_input_tokens": tokens["cache_read_tokens"],
        "output_tokens": tokens["output_tokens"],
    }


def failure(error: script.ErrorAnswer) -> tuple[int, dict[str, Any]]:
    """The status and body of an error answer."""
    status, message = error.status_and_message(WORDS[NAME]["too_long"])
    members = {"type": error.type or WORDS[NAME]["errors"].get(str(status), "api_error"), "message": message}
    return status, {"type": "error", "error": members, "request_id": "req_scripted"}


def failure_event(error: script.ErrorAnswer) -> bytes:
    """An error in the middle of a stream."""
    return server_sent(failure(error)[1], "error")


def headers(number: int, limits: tuple[script.ScriptedLimit, ...], now: datetime) -> dict[str, str]:
    """The headers of every answer."""
    fields = {"request-id": f"req_{number:06d}"}
    for limit in limits:
        name = f"anthropic-ratelimit-{limit.scope}"
        reset = (now + timedelta(seconds=limit.reset_s)).astimezone(UTC)
        fields[f"{name}-limit"] = str(limit.limit)
        fields[f"{name}-remaining"] = str(limit.remaining)
        fields[f"{name}-reset"] = reset.isoformat().replace("+00:00", "Z")
    return fields
