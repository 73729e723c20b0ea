"""OpenAI's responses: POST /v1/responses. Thinking is sent as a summary of reasoning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from signet_reference_harness.llm_server import script
from signet_reference_harness.llm_server.playback import RequestMessage, ScriptedRequest, names, text_of
from signet_reference_harness.llm_server.protocols import openai_completions
from signet_reference_harness.llm_server.reply import WORDS, Piece, TurnReply, chunks_of, opening, server_sent, whole
from signet_reference_harness.messages import objects

NAME: Final[script.ApiName] = "openai-responses"
PATH: Final = "/v1/responses"
MEDIA_TYPE: Final = "text/event-stream; charset=utf-8"
GARBAGE: Final = 'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","del\n\n'

STOPS: Final[Mapping[script.StopReason, script.ResponsesStop]] = {
    reason: script.ResponsesStop(**stop) for reason, stop in WORDS[NAME]["stops"].items()
}
_WITHIN = "__"
"""Separates the name of a namespace from that of a tool in it."""
_ECHOED: Final[Mapping[str, Any]] = WORDS[NAME]["echoed"]
"""Members of the request that a response repeats, with their values when the request lacks them."""
write = server_sent
headers = openai_completions.headers
failure = openai_completions.failure


def parse(body: Mapping[str, Any]) -> ScriptedRequest:
    """Read the request."""
    instructions = body.get("instructions")
    messages = [RequestMessage("system", instructions)] if isinstance(instructions, str) and instructions else []
    items = body.get("input")
    messages += [RequestMessage("user", items)] if isinstance(items, str) else map(_message, objects(items))
    tools = names(name for tool in objects(body.get("tools")) for name in _names_of(tool))
    return ScriptedRequest(NAME, str(body.get("model") or ""), body.get("stream") is True, tuple(messages), tools)


def _names_of(tool: Mapping[str, Any]) -> Iterator[Any]:
    """The name of a tool, or the names of a namespace's tools, each with the namespace's name before it."""
    if tool.get("type") != "namespace":
        yield tool.get("name")
        return
    yield from (f"{tool.get('name')}{_WITHIN}{inner.get('name')}" for inner in objects(tool.get("tools")))


def _tool_members(reply: TurnReply, name: str) -> dict[str, str]:
    """The members of a call that name its tool. The name of a tool in a namespace is split in two."""
    for tool in objects(reply.body.get("tools")):
        prefix = f"{tool.get('name')}{_WITHIN}"
        if tool.get("type") == "namespace" and name.startswith(prefix):
            return {"namespace": str(tool.get("name")), "name": name.removeprefix(prefix)}
    return {"name": name}


def _message(item: Mapping[str, Any]) -> RequestMessage:
    kind = str(item.get("type") or "message")
    if kind.endswith("_call_output"):
        return RequestMessage("tool", text_of(item.get("output")), (), str(item.get("call_id")))
    if kind.endswith("_call"):
        return RequestMessage("assistant", "", names([item.get("name")]))
    if kind == "reasoning":
        return RequestMessage("assistant", text_of(item.get("summary")))
    role = str(item.get("role"))
    return RequestMessage("system" if role == "developer" else role, text_of(item.get("content")))


def answer(reply: TurnReply) -> dict[str, Any]:
    """The whole answer."""
    stop = reply.stop(STOPS)
    return _response(reply, stop, [_item(reply, part, index) for index, part in enumerate(reply.turn.parts)])


def stream(reply: TurnReply) -> Iterator[Piece]:
    """The answer as events, numbered."""
    stop = reply.stop(STOPS)
    for number, (event, kind) in enumerate(_events(reply, stop)):
        yield Piece(server_sent({**event, "sequence_number": number}, event["type"]), kind)


def _events(reply: TurnReply, stop: script.ResponsesStop | None) -> Iterator[tuple[dict[str, Any], Any]]:
    response = {**_response(reply, None, []), "usage": None}
    yield {"type": "response.created", "response": response}, "around"
    yield {"type": "response.in_progress", "response": response}, "around"
    items = []
    for index, part in enumerate(reply.turn.parts):
        item = _item(reply, part, index)
        items.append(item)
        bare = opening(item, status="in_progress", content=[], summary=[], arguments="")
        yield {"type": "response.output_item.added", "output_index": index, "item": bare}, "around"
        place = {"item_id": item["id"], "output_index": index}
        yield from _inner(part, place, item)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}, "around"
    status = "in_progress" if stop is None else stop.status
    yield {"type": f"response.{status}", "response": _response(reply, stop, items)}, "end"


def _inner(part: script.AnyPart, place: dict[str, Any], item: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    """The events of one item between its start and its end."""
    if isinstance(part, script.ToolCallPart):
        name = "response.function_call_arguments"
        for chunk in chunks_of(part):
            yield {"type": f"{name}.delta", **place, "delta": chunk}, "delta"
        done = {"name": item["name"], "arguments": item["arguments"]}
        yield {"type": f"{name}.done", **place, **done}, "around"
        return
    if isinstance(part, script.ThinkingPart):
        name, added, member = "response.reasoning_summary_text", "reasoning_summary_part", "text"
        place = {**place, "summary_index": 0}
        (content,) = item["summary"]
        extra: dict[str, Any] = {}
    else:
        is_refusal = isinstance(part, script.RefusalPart)
        name, member = ("response.refusal", "refusal") if is_refusal else ("response.output_text", "text")
        added, place = "content_part", {**place, "content_index": 0}
        (content,) = item["content"]
        extra = {} if is_refusal else {"logprobs": []}
    yield {"type": f"response.{added}.added", **place, "part": {**content, member: ""}}, "around"
    for chunk in chunks_of(part):
        yield {"type": f"{name}.delta", **place, "delta": chunk, **extra}, "delta"
    yield {"type": f"{name}.done", **place, member: content[member], **extra}, "around"
    yield {"type": f"response.{added}.done", **place, "part": content}, "around"


def _response(reply: TurnReply, stop: script.ResponsesStop | None, output: list[dict[str, Any]]) -> dict[str, Any]:
    failed = stop is not None and (stop.status == "failed" or stop.code is not None)
    return {
        "id": reply.id("resp_"),
        "object": "response",
        "created_at": int(reply.created),
        "status": "in_progress" if stop is None else stop.status,
        "background": False,
        "error": {"code": stop.code or "server_error", "message": stop.message} if stop and failed else None,
        "incomplete_details": {"reason": stop.reason} if stop and stop.reason else None,
        "model": reply.asked.model,
        "output": output,
        "usage": _usage(reply),
        "user": None,
        **{name: reply.body.get(name, usual) for name, usual in _ECHOED.items()},
    }


def _item(reply: TurnReply, part: script.AnyPart, index: int) -> dict[str, Any]:
    if isinstance(part, script.ToolCallPart):
        return {
            "id": reply.id("fc_", index),
            "type": "function_call",
            "status": "completed",
            "call_id": reply.call_id(part, index, "call_"),
            **_tool_members(reply, part.name),
            "arguments": part.argument_text,
        }
    if isinstance(part, script.ThinkingPart):
        summary = {"type": "summary_text", "text": whole(part.text)}
        return {"id": reply.id("rs_", index), "type": "reasoning", "summary": [summary], "encrypted_content": None}
    content: dict[str, Any] = {"type": "output_text", "text": whole(part.text), "annotations": [], "logprobs": []}
    if isinstance(part, script.RefusalPart):
        content = {"type": "refusal", "refusal": whole(part.text)}
    message = {"id": reply.id("msg_", index), "type": "message", "status": "completed", "role": "assistant"}
    return {**message, "content": [content]}


def _usage(reply: TurnReply) -> dict[str, Any]:
    tokens = reply.tokens
    return {
        "input_tokens": tokens["input_tokens"],
        "input_tokens_details": {
            "cached_tokens": tokens["cache_read_tokens"],
            "cache_write_tokens": tokens["cache_write_tokens"],
        },
        "output_tokens": tokens["output_tokens"],
        "output_tokens_details": {"reasoning_tokens": tokens["reasoning_tokens"]},
        "total_tokens": tokens["input_tokens"] + tokens["output_tokens"],
    }


def failure_event(error: script.ErrorAnswer) -> bytes:
    """An error in the middle of a stream."""
    sent = failure(error)[1]["error"]
    event = {"type": "error", "code": sent["code"] or sent["type"], "message": sent["message"], "param": sent["param"]}
    return server_sent({**event, "sequence_number": 0}, "error")
