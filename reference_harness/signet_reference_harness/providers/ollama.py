"""Ollama's chat API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from signet_reference_harness.messages import Message, valid_text
from signet_reference_harness.providers import CompletionChunk, CompletionOptions
from signet_reference_harness.providers.answer import AnswerInProgress
from signet_reference_harness.providers.http import EventReader, HttpProvider, function_tools, without_empty


class _LineReader(EventReader):
    """Reads one JSON object a line."""

    def feed(self, piece: bytes) -> Iterator[Any]:
        """Yield the values of the lines that `piece` completes, as the base class does for events."""
        for part in piece.splitlines(keepends=True):
            line = self._complete_line(part, (b"\n",))
            if line is not None and line.strip():
                yield json.loads(line)


class OllamaProvider(HttpProvider):
    """Completes through the chat API of Ollama."""

    api = "ollama-chat"
    path = "/api/chat"
    models_path = "/api/tags"
    thinking_member = "thinking"
    reader = _LineReader

    def _body(self, messages: Sequence[Message], options: CompletionOptions) -> dict[str, Any]:
        system = [{"role": "system", "content": valid_text(options.system_prompt)}] if options.system_prompt else []
        bounds = without_empty(num_predict=options.max_tokens, temperature=options.temperature, stop=list(options.stop))
        return without_empty(
            model=options.model or self._settings.model,
            messages=[*system, *_messages(messages)],
            options=bounds,
            tools=function_tools(options.tools) if options.tool_choice != "none" else None,
        )

    def _read_event(self, answer: AnswerInProgress, event: Mapping[str, Any]) -> Iterator[CompletionChunk]:
        message = event.get("message") or {}
        if message.get("thinking"):
            yield answer.add_thought(message["thinking"])
        if message.get("content"):
            yield answer.add_text(message["content"])
        for call in message.get("tool_calls") or ():
            # The API gives calls no ids, and sends each one complete.
            answer.begin_call(object(), None, call["function"]["name"], value=call["function"].get("arguments"))
        if event.get("done"):
            answer.done = True
            answer.note_end(event.get("done_reason"))
            answer.note_tokens(event.get("prompt_eval_count"), event.get("eval_count"))


def _messages(messages: Sequence[Message]) -> Iterator[dict[str, Any]]:
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    for message in messages:
        members: dict[str, Any] = {"role": message.role, "content": valid_text(message.content)}
        if message.role == "tool":
            members["tool_name"] = names.get(message.tool_call_id or "", "")
        if message.tool_calls:
            members["tool_calls"] = [
                {"function": {"name": call.name, "arguments": dict(call.arguments)}} for call in message.tool_calls
            ]
        yield members
