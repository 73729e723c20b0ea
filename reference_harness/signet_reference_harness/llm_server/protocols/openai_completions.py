"""OpenAI's chat completions: POST /v1/chat/completions.

Thinking is sent in `reasoning_content`, a member of compatible servers. The package's docstring
describes what each of its modules defines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from signet_reference_harness.llm_server import script
from signet_reference_harness.llm_server.playback import RequestMessage, ScriptedRequest, names, text_of
from signet_reference_harness.llm_server.reply import WORDS, Piece, TurnReply, chunks_of, server_sent, whole
from signet_reference_harness.messages import objects

NAME: Final[script.ApiName] = "openai-completions"
PATH: Final = "/v1/chat/completions"
MEDIA_TYPE: Final = "text/event-stream; charset=utf-8"
GARBAGE: Final = 'data: {"id":"chatcmpl-scripted","object":"chat.completion.chunk","choi\n\n'

STOPS: Final = WORDS[NAME]["stops"]
write = server_sent


def parse(body: Mapping[str, Any]) -> ScriptedRequest:
    """Read the request."""
    return parse_chat(NAME, body, streams=body.get("stream") is True)


def parse_chat(api: script.ApiName, body: Mapping[str, Any], *, streams: bool) -> ScriptedRequest:
    """Read a request of messages and functions; Ollama's have the same members."""
    tools = [tool.get("function") for tool in objects(body.get("tools"))]
    return ScriptedRequest(
        api,
        str(body.get("model") or ""),
        streams,
        tuple(_message(message) for message in objects(body.get("messages"))),
        names(tool.get("name") for tool in objects(tools)),
    )


def _message(message: Mapping[str, Any]) -> RequestMessage:
    role = str(message.get("role"))
    called = [call.get("function") for call in objects(message.get("tool_calls"))]
    # Ollama sends the name of the tool instead of an id of the call.
    call_id = message.get("tool_call_id") or message.get("tool_name")
    return RequestMessage(
        "system" if role == "developer" else role,
        text_of(message.get("content")),
        names(call.get("name") for call in objects(called)),
        call_id if isinstance(call_id, str) else None,
    )


def answer(reply: TurnReply) -> dict[str, Any]:
    """The whole answer."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": joined(reply, script.TextPart),
        "refusal": joined(reply, script.RefusalPart),
        "annotations": [],
    }
    if thought := joined(reply, script.ThinkingPart):
        message["reasoning_content"] = thought
    if calls := [_call(reply, part, index) for index, part in tool_calls(reply)]:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.stop(STOPS)}
    return {**_head(reply, "chat.completion"), "choices": [choice], "usage": _usage(reply)}


def stream(reply: TurnReply) -> Iterator[Piece]:
    """The answer as events, with usage if the request asks for it."""
    stop = reply.stop(STOPS)
    options = reply.body.get("stream_options")
    includes_usage = isinstance(options, Mapping) and options.get("include_usage") is True
    head = _head(reply, "chat.completion.chunk")
    if includes_usage:
        head["usage"] = None

    def piece(delta: Mapping[str, Any], kind: Any = "around", finish: Any = None) -> Piece:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return Piece(server_sent({**head, "choices": [choice]}), kind)

    yield piece({"role": "assistant", "content": "", "refusal": None})
    places = {index: place for place, (index, _) in enumerate(tool_calls(reply))}
    for index, part in enumerate(reply.turn.parts):
        if isinstance(part, script.ToolCallPart):
            call = _call(reply, part, index)
            call["function"] = {"name": part.name, "arguments": ""}
            yield piece({"tool_calls": [{"index": places[index], **call}]})
        for chunk in chunks_of(part):
            if isinstance(part, script.ToolCallPart):
                more = {"index": places[index], "function": {"arguments": chunk}}
                yield piece({"tool_calls": [more]}, "delta")
            else:
                yield piece({_MEMBERS[part.type]: chunk}, "delta")
    yield piece({}, "end", stop)
    if includes_usage:
        yield Piece(server_sent({**head, "choices": [], "usage": _usage(reply)}))
    yield Piece(server_sent("[DONE]"))


_MEMBERS: Final = {"text": "content", "thinking": "reasoning_content", "refusal": "refusal"}


def _head(reply: TurnReply, kind: str) -> dict[str, Any]:
    return {
        "id": reply.id("chatcmpl-"),
        "object": kind,
        "created": int(reply.created),
        "model": reply.asked.model,
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
    }


def joined(reply: TurnReply, kind: type[script.TextPart | script.ThinkingPart | script.RefusalPart]) -> str | None:
    """The texts of all parts of a kind; None when the message has no such part."""
    texts = [whole(part.text) for part in reply.turn.parts if isinstance(part, kind)]
    return "".join(texts) if texts else None


def tool_calls(reply: TurnReply) -> list[tuple[int, script.ToolCallPart]]:
    """The tool calls of a turn, each with its place among the parts."""
    return [(index, part) for index, part in enumerate(reply.turn.parts) if isinstance(part, script.ToolCallPart)]


def _call(reply: TurnReply, part: script.ToolCallPart, index: int) -> dict[str, Any]:
    function = {"name": part.name, "arguments": part.argument_text}
    return {"id": reply.call_id(part, index, "call_"), "type": "function", "function": function}


def _usage(reply: TurnReply) -> dict[str, Any]:
    tokens = reply.tokens
    return {
        "prompt_tokens": tokens["input_tokens"],
        "completion_tokens": tokens["output_tokens"],
        "total_tokens": tokens["input_tokens"] + tokens["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": tokens["cache_read_tokens"], "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": tokens["reasoning_tokens"], "audio_tokens": 0},
    }


def failure_event(error: script.ErrorAnswer) -> bytes:
    """An error in the middle of a stream."""
    return server_sent(failure(error)[1])


def failure(error: script.ErrorAnswer) -> tuple[int, dict[str, Any]]:
    """The status and body of an error answer."""
    status, message = error.status_and_message(WORDS[NAME]["too_long"])
    too_long = error.kind == "context_limit"
    kind, code = WORDS[NAME]["errors"].get(
        str(status), ("invalid_request_error" if status < 500 else "server_error", None)
    )
    members = {
        "message": message,
        "type": error.type or kind,
        "param": "messages" if too_long else None,
        "code": error.code or ("context_length_exceeded" if too_long else code),
    }
    return status, {"error": members}


def headers(number: int, limits: tuple[script.ScriptedLimit, ...], now: datetime) -> dict[str, str]:
    """The headers of every answer."""
    del now
    fields = {"x-request-id": f"req_{number:06d}", "openai-processing-ms": "1"}
    for limit in limits:
        fields[f"x-ratelimit-limit-{limit.scope}"] = str(limit.limit)
        fields[f"x-ratelimit-remaining-{limit.scope}"] = str(limit.remaining)
        fields[f"x-ratelimit-reset-{limit.scope}"] = _duration(limit.reset_s)
    return fields


def _duration(seconds: float) -> str:
    """A length of time as OpenAI writes it: 6m0s, 1.5s, 20ms."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:g}ms"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{rest:g}s"
