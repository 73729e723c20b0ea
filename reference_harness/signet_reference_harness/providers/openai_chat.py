"""OpenAI's chat completions, through its own package; compatible servers speak them too."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any

from signet_reference_harness.messages import Message, Thinking
from signet_reference_harness.providers.answer import Answer
from signet_reference_harness.providers.completion import CompletionChunk, CompletionOptions, Usage
from signet_reference_harness.providers.event_stream import events_of
from signet_reference_harness.providers.openai_client import OpenAIProvider
from signet_reference_harness.providers.vendor import (
    clean,
    function_tools,
    plain,
    plain_events,
    unchecked,
)


class OpenAIChatProvider(OpenAIProvider):
    """Completes through the chat completions of OpenAI, or of a server that speaks them."""

    api = "openai-completions"

    def _request(self, messages: Sequence[Message], options: CompletionOptions) -> dict[str, Any]:
        system = [{"role": "system", "content": clean(options.system_prompt)}] if options.system_prompt else []
        request: dict[str, Any] = {
            "model": options.model or self._settings.model,
            "messages": [*system, *(_message(message) for message in messages)],
        }
        if options.max_tokens is not None:
            # OpenAI's newer models refuse the old name; many compatible servers know no other.
            request["max_completion_tokens" if self._settings.at_vendor else "max_tokens"] = options.max_tokens
        if options.temperature is not None:
            request["temperature"] = options.temperature
        if options.tools:
            request["tools"] = function_tools(options.tools)
            request["tool_choice"] = options.tool_choice
        return request

    async def _whole(self, answer: Answer, request: Mapping[str, Any]) -> AsyncGenerator[CompletionChunk, None]:
        raw = await self._client.chat.completions.with_raw_response.create(
            **unchecked(request, model=request["model"], messages=[])
        )
        answer.begin(raw.headers, self._timing.now())
        completion = await plain(raw)
        choice = completion["choices"][0]
        message = choice["message"]
        for chunk in _pieces(answer, message):
            yield chunk
        for place, call in enumerate(message.get("tool_calls") or ()):
            _tool_call(answer, {**call, "index": place})
        _function_call(answer, message.get("function_call"))
        self._keep_thinking(answer, _reasoning(message) or "")
        answer.usage = _usage(completion.get("usage"), answer.usage)
        answer.raw_reason = choice.get("finish_reason")

    async def _streamed(self, answer: Answer, request: Mapping[str, Any]) -> AsyncGenerator[CompletionChunk, None]:
        stream = await plain_events(
            self._sdk, self._client, "/chat/completions", {**request, "stream_options": {"include_usage": True}}
        )
        answer.begin(stream.response.headers, self._timing.now())
        thoughts: list[str] = []
        async with events_of(stream) as events:
            async for event in events:
                self._refuse(event)
                answer.usage = _usage(event.get("usage"), answer.usage)
                for choice in event["choices"][:1]:
                    answer.raw_reason = choice.get("finish_reason") or answer.raw_reason
                    delta = choice.get("delta") or {}
                    thoughts.append(_reasoning(delta) or "")
                    for chunk in _pieces(answer, delta):
                        yield chunk
                    for call in delta.get("tool_calls") or ():
                        _tool_call(answer, call)
                    _function_call(answer, delta.get("function_call"))
        self._keep_thinking(answer, "".join(thoughts))

    def _keep_thinking(self, answer: Answer, text: str) -> None:
        if text:
            answer.thinking.append(Thinking(text, self.id, {"reasoning_content": text}))


def _message(message: Message) -> dict[str, Any]:
    text = clean(message.content)
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": text}
    if not message.tool_calls:
        return {"role": message.role, "content": text}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
        for call in message.tool_calls
    ]
    return {"role": "assistant", "content": text or None, "tool_calls": calls}


def _pieces(answer: Answer, said: Mapping[str, Any]) -> Iterator[CompletionChunk]:
    """What a message, or a piece of it, shows."""
    thought = _reasoning(said)
    if thought:
        yield answer.thought(thought)
    if said.get("content"):
        yield answer.text(said["content"])
    if said.get("refusal"):
        yield answer.refusal(said["refusal"])


def _reasoning(said: Mapping[str, Any]) -> str | None:
    """What the model thinks, which OpenAI does not tell and compatible servers tell under two names."""
    return said.get("reasoning_content") or said.get("reasoning")


def _tool_call(answer: Answer, piece: Mapping[str, Any]) -> None:
    """A piece of a tool call. Some servers give every call the index 0, and tell them apart by id."""
    key: Any = piece.get("index") or 0
    identity, function = piece.get("id"), piece.get("function") or {}
    if identity and answer.call_id(key) not in {None, identity}:
        key = identity
    if answer.call_id(key) is None:
        answer.call(key, identity, function.get("name"))
    answer.arguments(key, function.get("arguments") or "")


def _function_call(answer: Answer, piece: Mapping[str, Any] | None) -> None:
    """A piece of the one call that the API had before it had tools."""
    if piece is None:
        return
    if answer.call_id("function_call") is None:
        answer.call("function_call", None, piece.get("name"))
    answer.arguments("function_call", piece.get("arguments") or "")


def _usage(told: Mapping[str, Any] | None, before: Usage) -> Usage:
    return before if told is None else Usage(told.get("prompt_tokens") or 0, told.get("completion_tokens") or 0)
