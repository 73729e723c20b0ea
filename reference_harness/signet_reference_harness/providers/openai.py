"""OpenAI's two APIs: chat completions, which compatible servers speak too, and responses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from signet_reference_harness.messages import Message, Thinking, valid_text
from signet_reference_harness.providers import CompletionChunk, CompletionOptions
from signet_reference_harness.providers.answer import AnswerInProgress
from signet_reference_harness.providers.failures import failure_of_words
from signet_reference_harness.providers.http import HttpProvider, function_tools, without_empty

UNFINISHED: Final = (None, "queued", "in_progress")
THOUGHTS: Final = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})


class OpenAIChatProvider(HttpProvider):
    """Completes through the chat completions of OpenAI, or of a server that speaks them."""

    api = "openai-completions"
    path = "/chat/completions"
    models_path = "/models"
    thinking_member = "reasoning_content"
    stream_members: ClassVar = {"stream": True, "stream_options": {"include_usage": True}}

    def _body(self, messages: Sequence[Message], options: CompletionOptions) -> dict[str, Any]:
        system = [{"role": "system", "content": valid_text(options.system_prompt)}] if options.system_prompt else []
        # OpenAI's newer models refuse the old name, and many compatible servers know only that.
        limit = "max_completion_tokens" if self._settings.at_vendor else "max_tokens"
        return without_empty(
            model=options.model or self._settings.model,
            messages=[*system, *(_message(message) for message in messages)],
            **{limit: options.max_tokens},
            temperature=options.temperature,
            stop=list(options.stop),
            tools=function_tools(options.tools),
            tool_choice=options.tool_choice if options.tools else None,
        )

    def _read_event(self, answer: AnswerInProgress, event: Mapping[str, Any]) -> Iterator[CompletionChunk]:
        usage = event.get("usage") or {}
        answer.note_tokens(usage.get("prompt_tokens"), usage.get("completion_tokens"))
        for choice in event["choices"][:1]:
            answer.note_end(choice.get("finish_reason"))
            yield from _read_message(answer, choice.get("delta") or {})


class OpenAIResponsesProvider(HttpProvider):
    """Completes through the responses API of OpenAI, or of a server that speaks it.

    The server stores nothing: each request holds the whole conversation.
    """

    api = "openai-responses"
    path = "/responses"
    models_path = "/models"
    ignored_events = frozenset({b"response.created", b"response.in_progress"})
    """They repeat the whole request, and contain nothing that is needed here."""

    def _body(self, messages: Sequence[Message], options: CompletionOptions) -> dict[str, Any]:
        tools = ({"type": "function", **tool["function"], "strict": False} for tool in function_tools(options.tools))
        return without_empty(
            model=options.model or self._settings.model,
            input=[item for message in messages for item in _items(message, self.id)],
            store=False,
            instructions=valid_text(options.system_prompt) if options.system_prompt else None,
            max_output_tokens=options.max_tokens,
            temperature=options.temperature,
            tools=list(tools),
            tool_choice=options.tool_choice if options.tools else None,
        )

    def _read_event(self, answer: AnswerInProgress, event: Mapping[str, Any]) -> Iterator[CompletionChunk]:
        kind = event["type"]
        if kind == "response.output_text.delta":
            yield answer.add_text(event["delta"])
        elif kind == "response.refusal.delta":
            yield answer.add_refusal(event["delta"])
        elif kind in THOUGHTS:
            yield answer.add_thought(event["delta"])
        elif kind == "response.output_item.done":
            self._keep_item(answer, event["output_index"], event["item"])
        elif kind == "error":
            raise failure_of_words(event.get("code"), event.get("message"))
        elif "response" in event:
            _end(answer, event["response"])

    def _keep_item(self, answer: AnswerInProgress, place: int, item: Mapping[str, Any]) -> None:
        """Keep a call or a thought that has arrived complete."""
        if item["type"] == "function_call":
            answer.begin_call(place, item.get("call_id"), item.get("name"))
            answer.add_arguments(place, item.get("arguments") or "")
        elif item["type"] == "reasoning":
            thought = "".join(part["text"] for part in item.get("summary") or ())
            raw = {name: value for name, value in item.items() if value is not None}
            answer.thinking.append(Thinking(thought, self.id, raw))


def _message(message: Message) -> dict[str, Any]:
    text = valid_text(message.content)
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": text}
    if not message.tool_calls:
        return {"role": message.role, "content": text}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
        for call in message.tool_calls
    ]
    return {"role": "assistant", "content": text or None, "tool_calls": calls}


def _items(message: Message, provider: str) -> Iterator[dict[str, Any]]:
    text = valid_text(message.content)
    if message.role == "tool":
        yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": text}
        return
    for thinking in message.thinking:
        # The server stores nothing, so it accepts only thoughts that it encrypted itself.
        if thinking.provider == provider and thinking.raw.get("encrypted_content"):
            yield dict(thinking.raw)
    if text or not message.tool_calls:
        yield {"role": message.role, "content": text}
    for call in message.tool_calls:
        arguments = json.dumps(call.arguments)
        yield {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}


def _read_message(answer: AnswerInProgress, message: Mapping[str, Any]) -> Iterator[CompletionChunk]:
    """Read a message of chat completions, or a piece of one."""
    # OpenAI sends no thoughts; compatible servers do, under two names.
    thought = message.get("reasoning_content") or message.get("reasoning")
    if thought:
        yield answer.add_thought(thought)
    if message.get("content"):
        yield answer.add_text(message["content"])
    if message.get("refusal"):
        yield answer.add_refusal(message["refusal"])
    for call in message.get("tool_calls") or ():
        _read_call(answer, call)
    call = message.get("function_call")
    if call is not None:
        # The only call of an answer, in the form that preceded tools.
        if answer.call_id("function_call") is None:
            answer.begin_call("function_call", None, call.get("name"))
        answer.add_arguments("function_call", call.get("arguments") or "")


def _read_call(answer: AnswerInProgress, piece: Mapping[str, Any]) -> None:
    """Read a piece of a tool call. Some servers give every call the index 0, and tell them apart by id."""
    key: Any = piece.get("index") or 0
    identity, function = piece.get("id"), piece.get("function") or {}
    if identity and answer.call_id(key) not in {None, identity}:
        key = identity
    if answer.call_id(key) is None:
        answer.begin_call(key, identity, function.get("name"))
    answer.add_arguments(key, function.get("arguments") or "")


def _end(answer: AnswerInProgress, response: Mapping[str, Any]) -> None:
    """Note how a response ended. Raises CallFailure if it failed, so that it can be tried again."""
    status = response.get("status")
    if status in UNFINISHED:
        return
    usage = response.get("usage") or {}
    answer.note_tokens(usage.get("input_tokens"), usage.get("output_tokens"))
    answer.note_end(status)
    error = response.get("error")
    if status == "incomplete":
        why = (response.get("incomplete_details") or {}).get("reason")
        answer.note_end(f"incomplete: {why}" if why else "incomplete")
    elif status == "failed" and error is not None:
        raise failure_of_words(error.get("code"), error.get("message"))
