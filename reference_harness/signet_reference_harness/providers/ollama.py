"""Ollama's chat API, through its own package."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Iterator, Mapping, Sequence
from typing import Any

from signet_reference_harness.messages import Message, Thinking
from signet_reference_harness.providers.answer import Answer
from signet_reference_harness.providers.completion import CompletionChunk, CompletionOptions, Usage
from signet_reference_harness.providers.failures import answered
from signet_reference_harness.providers.vendor import VendorProvider, clean, function_tools, mounts


class OllamaProvider(VendorProvider):
    """Completes through the chat API of Ollama."""

    api = "ollama-chat"
    package = "ollama"

    @staticmethod
    def import_package() -> Any:
        """Ollama's own package."""
        import ollama

        return ollama

    def _connect(self) -> Any:
        key = self._settings.key
        return self._sdk.AsyncClient(
            host=self._settings.base_url,
            headers={"authorization": f"Bearer {key.reveal()}"} if key else {},
            timeout=self._settings.timeout_s,
            mounts=mounts(self._settings.base_url),
            event_hooks={"response": [self._refuse]},
        )

    async def _refuse(self, response: Any) -> None:
        """Raises for an error answer while its headers are at hand: the package's own exception has none."""
        if response.status_code < 400:
            return
        text = (await response.aread()).decode("utf-8", "replace")
        try:
            body = json.loads(text)
        except ValueError:
            body = None
        raise answered(response.status_code, body, response.headers, text, self._timing.now())

    def _models(self) -> Awaitable[Any]:
        request: Awaitable[Any] = self._client.list()
        return request

    def _request(self, messages: Sequence[Message], options: CompletionOptions) -> dict[str, Any]:
        system = [{"role": "system", "content": clean(options.system_prompt)}] if options.system_prompt else []
        wishes = {"num_predict": options.max_tokens, "temperature": options.temperature}
        request: dict[str, Any] = {
            "model": options.model or self._settings.model,
            "messages": [*system, *_lowered(messages)],
            "options": {name: value for name, value in wishes.items() if value is not None},
        }
        if options.tools and options.tool_choice != "none":
            request["tools"] = function_tools(options.tools)
        return request

    async def _whole(self, answer: Answer, request: Mapping[str, Any]) -> AsyncGenerator[CompletionChunk, None]:
        answer.begin({}, 0.0)  # its answers have no headers of interest
        part = await self._client.chat(**request)
        thoughts: list[str] = []
        for chunk in _part(answer, part, thoughts):
            yield chunk
        self._keep_thinking(answer, thoughts)

    async def _streamed(self, answer: Answer, request: Mapping[str, Any]) -> AsyncGenerator[CompletionChunk, None]:
        answer.begin({}, 0.0)
        thoughts: list[str] = []
        async for part in await self._client.chat(**request, stream=True):
            for chunk in _part(answer, part, thoughts):
                yield chunk
        self._keep_thinking(answer, thoughts)

    def _keep_thinking(self, answer: Answer, thoughts: list[str]) -> None:
        if thoughts:
            text = "".join(thoughts)
            answer.thinking.append(Thinking(text, self.id, {"thinking": text}))


def _part(answer: Answer, part: Any, thoughts: list[str]) -> Iterator[CompletionChunk]:
    """A line of a stream, or a whole answer."""
    said = part.message
    thought = getattr(said, "thinking", None)
    if thought:
        thoughts.append(thought)
        yield answer.thought(thought)
    if said.content:
        yield answer.text(said.content)
    for call in said.tool_calls or ():
        # The API numbers no calls, and sends each whole.
        answer.call(object(), None, call.function.name, value=dict(call.function.arguments))
    if part.done:
        answer.done = True
        answer.raw_reason = part.done_reason or None
        answer.usage = Usage(part.prompt_eval_count or 0, part.eval_count or 0)


def _lowered(messages: Sequence[Message]) -> Iterator[dict[str, Any]]:
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    for message in messages:
        lowered: dict[str, Any] = {"role": message.role, "content": clean(message.content)}
        if message.role == "tool":
            lowered["tool_name"] = names.get(message.tool_call_id or "", "")
        if message.tool_calls:
            lowered["tool_calls"] = [
                {"function": {"name": call.name, "arguments": dict(call.arguments)}} for call in message.tool_calls
            ]
        yield lowered
