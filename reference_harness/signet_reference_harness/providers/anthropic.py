"""Anthropic's Messages API, through its own package."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Iterator, Mapping, Sequence
from typing import Any, Final

from signet_reference_harness.messages import Message, Thinking
from signet_reference_harness.providers.answer import Answer
from signet_reference_harness.providers.completion import CompletionChunk, CompletionOptions, Usage
from signet_reference_harness.providers.event_stream import events_of
from signet_reference_harness.providers.failures import answered
from signet_reference_harness.providers.vendor import (
    NO_KEY,
    VendorProvider,
    clean,
    mounts,
    plain,
    plain_events,
    unchecked,
)

DEFAULT_MAX_TOKENS: Final = 8_192
"""The API wants a number; this one every current model allows."""
CACHED: Final = {"type": "ephemeral"}
"""What marks the end of a part that the vendor is to cache: it caches nothing unasked."""
THINKING: Final = frozenset({"thinking", "redacted_thinking"})


class AnthropicProvider(VendorProvider):
    """Completes through the Messages API of Anthropic, or of a server that speaks it."""

    api = "anthropic-messages"
    package = "anthropic"

    @staticmethod
    def import_package() -> Any:
        """Anthropic's own package."""
        import anthropic

        return anthropic

    def _connect(self) -> Any:
        key = self._settings.key
        return self._sdk.AsyncAnthropic(
            api_key=key.reveal() if key else NO_KEY,
            base_url=self._settings.base_url,
            max_retries=0,
            timeout=self._settings.timeout_s,
            http_client=self._sdk.DefaultAsyncHttpxClient(mounts=mounts(self._settings.base_url)),
        )

    def _models(self) -> Awaitable[Any]:
        request: Awaitable[Any] = self._client.models.list(limit=1)
        return request

    def _request(self, messages: Sequence[Message], options: CompletionOptions) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": options.model or self._settings.model,
            "max_tokens": options.max_tokens or DEFAULT_MAX_TOKENS,
            "messages": list(lowered(messages, self.id)),
        }
        if options.system_prompt:
            request["system"] = list(_system(options))
            if options.stable_prompt >= len(options.system_prompt):
                # Nothing before the conversation changes from turn to turn, so that it can be cached as well.
                _mark_last(request["messages"])
        if options.temperature is not None:
            request["temperature"] = options.temperature
        if options.tools:
            request["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": dict(tool.input_schema)}
                for tool in options.tools
            ]
            request["tool_choice"] = {"type": options.tool_choice}
        return request

    async def _whole(self, answer: Answer, request: Mapping[str, Any]) -> AsyncGenerator[CompletionChunk, None]:
        demanded = {"model": request["model"], "max_tokens": request["max_tokens"], "messages": []}
        raw = await self._client.messages.with_raw_response.create(**unchecked(request, **demanded))
        answer.begin(raw.headers, self._timing.now())
        message = await plain(raw)
        for index, block in enumerate(message["content"]):
            if block["type"] == "text":
                yield answer.text(block["text"])
            elif block["type"] == "tool_use":
                answer.call(index, block["id"], block["name"], value=block["input"])
            elif block["type"] in THINKING:
                self._keep_thinking(answer, block)
        answer.usage = _usage(message.get("usage"), answer.usage)
        answer.raw_reason = message.get("stop_reason")

    async def _streamed(self, answer: Answer, request: Mapping[str, Any]) -> AsyncGenerator[CompletionChunk, None]:
        stream = await plain_events(self._sdk, self._client, "/v1/messages", request)
        answer.begin(stream.response.headers, self._timing.now())
        thoughts: dict[int, dict[str, Any]] = {}
        async with events_of(stream) as events:
            async for event in events:
                if event["type"] == "error":
                    told = stream.response
                    raise answered(told.status_code, event, told.headers, "no message", self._timing.now())
                for chunk in self._event(answer, event, thoughts):
                    yield chunk

    def _event(
        self, answer: Answer, event: Mapping[str, Any], thoughts: dict[int, dict[str, Any]]
    ) -> Iterator[CompletionChunk]:
        """An event of the stream; `thoughts` holds the thinking blocks that are not whole yet, by index."""
        kind = event["type"]
        if kind == "content_block_delta":
            index, delta = event["index"], event["delta"]
            if delta["type"] == "text_delta":
                yield answer.text(delta["text"])
            elif delta["type"] == "input_json_delta":
                answer.arguments(index, delta["partial_json"])
            elif delta["type"] == "thinking_delta":
                thoughts[index]["thinking"] += delta["thinking"]
                yield answer.thought(delta["thinking"])
            elif delta["type"] == "signature_delta":
                thoughts[index]["signature"] = thoughts[index].get("signature", "") + delta["signature"]
        elif kind == "content_block_start":
            block = event["content_block"]
            if block["type"] == "tool_use":
                answer.call(event["index"], block["id"], block["name"])
            elif block["type"] in THINKING:
                thoughts[event["index"]] = dict(block)
            elif block["type"] == "text" and block["text"]:
                yield answer.text(block["text"])
        elif kind == "content_block_stop" and event["index"] in thoughts:
            self._keep_thinking(answer, thoughts.pop(event["index"]))
        elif kind == "message_start":
            answer.usage = _usage(event["message"].get("usage"), answer.usage)
        elif kind == "message_delta":
            answer.raw_reason = event["delta"].get("stop_reason") or answer.raw_reason
            answer.usage = _usage(event.get("usage"), answer.usage)

    def _keep_thinking(self, answer: Answer, block: Mapping[str, Any]) -> None:
        kept = {name: value for name, value in block.items() if value is not None}
        answer.thinking.append(Thinking(kept.get("thinking", ""), self.id, kept))


def _system(options: CompletionOptions) -> Iterator[dict[str, Any]]:
    """The system prompt: what stays the same, which with the tools before it is to be cached, and what does not."""
    stable, rest = options.system_prompt[: options.stable_prompt], options.system_prompt[options.stable_prompt :]
    if stable:
        yield {"type": "text", "text": clean(stable), "cache_control": CACHED}
    if rest.strip():
        yield {"type": "text", "text": clean(rest.lstrip("\n"))}


def _mark_last(messages: Sequence[dict[str, Any]]) -> None:
    """Have the conversation so far cached; a thinking block cannot be marked."""
    if messages and messages[-1]["content"] and messages[-1]["content"][-1]["type"] not in THINKING:
        messages[-1]["content"][-1]["cache_control"] = CACHED


def lowered(messages: Sequence[Message], provider: str) -> Iterator[dict[str, Any]]:
    """The messages as the API wants them: roles in turn, so that neighbours of one role become one message."""
    role, blocks = "", list[dict[str, Any]]()
    for message in messages:
        own = "assistant" if message.role == "assistant" else "user"
        if own != role:
            if blocks:
                yield {"role": role, "content": blocks}
            role, blocks = own, []
        blocks += _blocks(message, provider)
    if blocks:
        yield {"role": role, "content": blocks}


def _blocks(message: Message, provider: str) -> Iterator[dict[str, Any]]:
    text = clean(message.content)
    if message.role == "tool":
        yield {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": text}
        return
    # What the model signed goes back as it came, and first; another provider's is of no use here.
    yield from (dict(thinking.raw) for thinking in message.thinking if thinking.provider == provider)
    if text.strip():
        yield {"type": "text", "text": text}
    for call in message.tool_calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}


def _usage(told: Mapping[str, Any] | None, before: Usage) -> Usage:
    """Tokens so far: input counts what was read from the cache or written to it, too. Later events tell only some."""
    if told is None:
        return before
    kinds = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    read = sum(told.get(kind) or 0 for kind in kinds)
    return Usage(read or before.input_tokens, told.get("output_tokens") or before.output_tokens)
