"""OpenAI's responses API, through its own package. Nothing is stored at the server: each request holds everything."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any, Final

from signet_reference_harness.messages import Message, Thinking
from signet_reference_harness.providers.answer import Answer
from signet_reference_harness.providers.completion import CompletionChunk, CompletionOptions, Usage
from signet_reference_harness.providers.event_stream import events_of
from signet_reference_harness.providers.failures import failure_of_words
from signet_reference_harness.providers.openai_client import OpenAIProvider
from signet_reference_harness.providers.vendor import clean, plain, plain_events, unchecked

IGNORED: Final = frozenset({b"response.created", b"response.in_progress"})
"""Events that hold the whole request once more, and nothing that is read here."""
UNENDED: Final = frozenset({None, "queued", "in_progress"})
THOUGHTS: Final = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})


class OpenAIResponsesProvider(OpenAIProvider):
    """Completes through the responses API of OpenAI, or of a server that speaks it."""

    api = "openai-responses"

    def _request(self, messages: Sequence[Message], options: CompletionOptions) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": options.model or self._settings.model,
            "input": [item for message in messages for item in _items(message, self.id)],
            "store": False,
        }
        if options.system_prompt:
            request["instructions"] = clean(options.system_prompt)
        if options.max_tokens is not None:
            request["max_output_tokens"] = options.max_tokens
        if options.temperature is not None:
            request["temperature"] = options.temperature
        if options.tools:
            request["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.input_schema),
                    "strict": False,
                }
                for tool in options.tools
            ]
            request["tool_choice"] = options.tool_choice
        return request

    async def _whole(self, answer: Answer, request: Mapping[str, Any]) -> AsyncGenerator[CompletionChunk, None]:
        raw = await self._client.responses.with_raw_response.create(**unchecked(request))
        answer.begin(raw.headers, self._timing.now())
        response = await plain(raw)
        for place, item in enumerate(response["output"]):
            if item["type"] == "message":
                for part in item["content"]:
                    yield answer.refusal(part["refusal"]) if part["type"] == "refusal" else answer.text(part["text"])
            self._keep(answer, place, item)
        _end(answer, response)

    async def _streamed(self, answer: Answer, request: Mapping[str, Any]) -> AsyncGenerator[CompletionChunk, None]:
        stream = await plain_events(self._sdk, self._client, "/responses", request)
        answer.begin(stream.response.headers, self._timing.now())
        async with events_of(stream, IGNORED) as events:
            async for event in events:
                self._refuse(event)
                kind = event["type"]
                if kind == "response.output_text.delta":
                    yield answer.text(event["delta"])
                elif kind == "response.refusal.delta":
                    yield answer.refusal(event["delta"])
                elif kind in THOUGHTS:
                    yield answer.thought(event["delta"])
                elif kind == "response.output_item.done":
                    self._keep(answer, event["output_index"], event["item"])
                elif kind == "error":
                    raise failure_of_words(event.get("code"), None, event.get("message"))
                elif "response" in event:
                    _end(answer, event["response"])

    def _keep(self, answer: Answer, place: int, item: Mapping[str, Any]) -> None:
        """A call or a thought that has arrived whole."""
        if item["type"] == "function_call":
            answer.call(place, item.get("call_id"), item.get("name"))
            answer.arguments(place, item.get("arguments") or "")
        elif item["type"] == "reasoning":
            thought = "".join(part["text"] for part in item.get("summary") or ())
            kept = {name: value for name, value in item.items() if value is not None}
            answer.thinking.append(Thinking(thought, self.id, kept))


def _items(message: Message, provider: str) -> Iterator[dict[str, Any]]:
    text = clean(message.content)
    if message.role == "tool":
        yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": text}
        return
    for thinking in message.thinking:
        # The server kept nothing, so it reads back only what it encrypted.
        if thinking.provider == provider and thinking.raw.get("encrypted_content"):
            yield dict(thinking.raw)
    if text or not message.tool_calls:
        yield {"role": message.role, "content": text}
    for call in message.tool_calls:
        yield {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": json.dumps(call.arguments),
        }


def _end(answer: Answer, response: Mapping[str, Any]) -> None:
    """What the response came to. Raises Failure where it says that it failed, so that it may be tried again."""
    status = response.get("status")
    if status in UNENDED:
        return
    usage = response.get("usage") or {}
    answer.usage = Usage(usage.get("input_tokens") or 0, usage.get("output_tokens") or 0)
    answer.raw_reason = status
    error = response.get("error")
    if status == "incomplete":
        why = (response.get("incomplete_details") or {}).get("reason")
        answer.raw_reason = f"incomplete: {why}" if why else "incomplete"
    elif status == "failed" and error is not None:
        raise failure_of_words(error.get("code"), None, error.get("message"))
