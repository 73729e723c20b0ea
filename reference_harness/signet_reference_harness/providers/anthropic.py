"""Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from signet_reference_harness.messages import Message, Thinking, valid_text
from signet_reference_harness.providers import CompletionChunk, CompletionOptions
from signet_reference_harness.providers.answer import AnswerInProgress, whole_number
from signet_reference_harness.providers.http import HttpProvider, without_empty

VERSION: Final = "2023-06-01"
DEFAULT_MAX_TOKENS: Final = 8_192
"""The API requires a number; every current model allows this one."""
CACHED: Final = {"type": "ephemeral"}
"""Marks the end of a part to be cached; the vendor caches only marked parts."""
THINKING: Final = frozenset({"thinking", "redacted_thinking"})


class AnthropicProvider(HttpProvider):
    """Completes through the Messages API of Anthropic, or of a server that speaks it."""

    api = "anthropic-messages"
    path = "/v1/messages"
    models_path = "/v1/models?limit=1"

    def _headers(self) -> Mapping[str, str]:
        key = self._settings.key
        return {"anthropic-version": VERSION, **({"x-api-key": key.reveal()} if key else {})}

    def _body(self, messages: Sequence[Message], options: CompletionOptions) -> dict[str, Any]:
        converted = list(_messages(messages, self.id))
        if options.system_prompt and options.stable_prompt >= len(options.system_prompt):
            # Nothing before the conversation changes from turn to turn, so the conversation can be cached too.
            _mark_last(converted)
        tools = [
            {"name": tool.name, "description": tool.description, "input_schema": dict(tool.input_schema)}
            for tool in options.tools
        ]
        return without_empty(
            model=options.model or self._settings.model,
            max_tokens=options.max_tokens or DEFAULT_MAX_TOKENS,
            messages=converted,
            system=list(_system(options)),
            temperature=options.temperature,
            stop_sequences=list(options.stop),
            tools=tools,
            tool_choice={"type": options.tool_choice} if tools else None,
        )

    def _read_event(self, answer: AnswerInProgress, event: Mapping[str, Any]) -> Iterator[CompletionChunk]:
        kind = event["type"]
        if kind == "content_block_delta":
            yield from self._read_delta(answer, event["index"], event["delta"])
        elif kind == "content_block_start":
            block = event["content_block"]
            if block["type"] == "tool_use":
                answer.begin_call(event["index"], block["id"], block["name"])
            elif block["type"] in THINKING:
                answer.unfinished[event["index"]] = dict(block)
                if block.get("thinking"):
                    yield answer.add_thought(block["thinking"])
            elif block["type"] == "text" and block["text"]:
                yield answer.add_text(block["text"])
        elif kind == "content_block_stop" and event["index"] in answer.unfinished:
            block = answer.unfinished.pop(event["index"])
            raw = {name: value for name, value in block.items() if value is not None}
            answer.thinking.append(Thinking(raw.get("thinking") or "", self.id, raw))
        elif kind == "message_start":
            _count(answer, event["message"].get("usage"))
        elif kind == "message_delta":
            answer.note_end(event["delta"].get("stop_reason"))
            _count(answer, event.get("usage"))

    def _read_delta(self, answer: AnswerInProgress, index: int, delta: Mapping[str, Any]) -> Iterator[CompletionChunk]:
        if delta["type"] == "text_delta":
            yield answer.add_text(delta["text"])
        elif delta["type"] == "input_json_delta":
            answer.add_arguments(index, delta["partial_json"])
        elif delta["type"] == "thinking_delta":
            block = answer.unfinished[index]
            block["thinking"] = (block.get("thinking") or "") + delta["thinking"]
            yield answer.add_thought(delta["thinking"])
        elif delta["type"] == "signature_delta":
            block = answer.unfinished[index]
            block["signature"] = block.get("signature", "") + delta["signature"]


def _system(options: CompletionOptions) -> Iterator[dict[str, Any]]:
    """The system prompt in two parts, of which the first does not change, and is cached with the tools before it."""
    stable, rest = options.system_prompt[: options.stable_prompt], options.system_prompt[options.stable_prompt :]
    if stable:
        yield {"type": "text", "text": valid_text(stable), "cache_control": CACHED}
    if rest.strip():
        yield {"type": "text", "text": valid_text(rest.lstrip("\n"))}


def _mark_last(messages: Sequence[dict[str, Any]]) -> None:
    """Mark the conversation so far for caching; a thinking block cannot be marked."""
    if messages and messages[-1]["content"] and messages[-1]["content"][-1]["type"] not in THINKING:
        messages[-1]["content"][-1]["cache_control"] = CACHED


def _messages(messages: Sequence[Message], provider: str) -> Iterator[dict[str, Any]]:
    """The messages as the API requires them: roles alternate, so neighbours of one role become one message."""
    for role, neighbours in groupby(messages, lambda each: "assistant" if each.role == "assistant" else "user"):
        blocks = [block for message in neighbours for block in _blocks(message, provider)]
        if blocks:
            yield {"role": role, "content": blocks}


def _blocks(message: Message, provider: str) -> Iterator[dict[str, Any]]:
    text = valid_text(message.content)
    if message.role == "tool":
        yield {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": text}
        return
    # Signed thinking goes back unchanged, and first; thinking of another provider is of no use here.
    yield from (dict(thinking.raw) for thinking in message.thinking if thinking.provider == provider)
    if text.strip():
        yield {"type": "text", "text": text}
    for call in message.tool_calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}


def _count(answer: AnswerInProgress, counts: Mapping[str, Any] | None) -> None:
    """Count the tokens so far: input includes tokens read from or written to the cache."""
    if counts is not None:
        kinds = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        answer.note_tokens(sum(whole_number(counts.get(kind)) for kind in kinds), counts.get("output_tokens"))
