"""The vendors' own packages as clients of a server: what each reads of an answer, in one form.

A package is imported by the first test that asks with it: every worker of a run collects the tests, few run these.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

KEY = "sk-planted-1234"
MODEL = "scripted"
USER = [{"role": "user", "content": "What did we ship in May?"}]


@dataclass
class Answer:
    """The answer as a package read it. `broken` is the error that it raised after that."""

    text: str = ""
    thinking: str = ""
    refusal: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    stop: Any = None
    tokens: tuple[int | None, int | None] = (None, None)
    chunks: int = 0
    broken: Exception | None = None


def anthropic_messages(url: str, answer: Answer, *, stream: bool) -> None:
    """POST /v1/messages."""
    import anthropic

    asked: dict[str, Any] = {"model": MODEL, "max_tokens": 99, "messages": USER}
    with anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0) as client:
        if not stream:
            message = client.messages.create(**asked)
        else:
            with client.messages.stream(**asked) as events:
                for event in events:
                    answer.chunks += event.type == "content_block_delta"
                    answer.text += event.text if event.type == "text" else ""
                message = events.get_final_message()
            answer.text = ""
    for block in message.content:
        if block.type == "text":
            answer.text += block.text
        elif block.type == "thinking":
            answer.thinking += block.thinking
        elif block.type == "tool_use":
            answer.calls.append((block.name, block.input))
            answer.ids.append(block.id)
    answer.stop = message.stop_reason
    answer.tokens = (message.usage.input_tokens, message.usage.output_tokens)


def openai_completions(url: str, answer: Answer, *, stream: bool) -> None:
    """POST /v1/chat/completions."""
    import openai

    asked: dict[str, Any] = {"model": MODEL, "messages": USER}
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        if stream:
            with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as events:
                for event in events:
                    answer.chunks += event.type == "chunk"
                    answer.text += event.delta if event.type == "content.delta" else ""
                completion: Any = events.get_final_completion()
        else:
            completion = client.chat.completions.create(**asked)
    (choice,) = completion.choices
    message = choice.message
    answer.text, answer.refusal = message.content or "", message.refusal or ""
    answer.thinking = getattr(message, "reasoning_content", None) or ""
    for call in message.tool_calls or ():
        answer.calls.append((call.function.name, json.loads(call.function.arguments)))
        answer.ids.append(call.id)
    answer.stop = choice.finish_reason
    answer.tokens = (completion.usage.prompt_tokens, completion.usage.completion_tokens)


def openai_responses(url: str, answer: Answer, *, stream: bool) -> None:
    """POST /v1/responses."""
    import openai

    asked: dict[str, Any] = {"model": MODEL, "input": USER}
    response: Any = None
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        if stream:
            with client.responses.create(**asked, stream=True) as events:
                for event in events:
                    answer.chunks += event.type.endswith(".delta")
                    answer.text += event.delta if event.type == "response.output_text.delta" else ""
                    if event.type == "error":
                        raise RuntimeError(event.message)
                    # Not every end of a response is known to the package's own collector, nor to its types.
                    response = getattr(event, "response", response)
                    if isinstance(response, dict):
                        response = openai.types.responses.Response(**response)
            answer.text = ""
        else:
            response = client.responses.create(**asked)
    for item in response.output:
        if item.type == "function_call":
            answer.calls.append((item.name, json.loads(item.arguments)))
            answer.ids.append(item.call_id)
        elif item.type == "reasoning":
            answer.thinking += "".join(part.text for part in item.summary)
        else:
            answer.text += "".join(part.text for part in item.content if part.type == "output_text")
            answer.refusal += "".join(part.refusal for part in item.content if part.type == "refusal")
    details = response.incomplete_details
    answer.stop = (response.status, details and details.reason, response.error and response.error.code)
    answer.tokens = (response.usage.input_tokens, response.usage.output_tokens) if response.usage else (None, None)


def ollama_chat(url: str, answer: Answer, *, stream: bool) -> None:
    """POST /api/chat."""
    import ollama

    with ollama.Client(host=url) as client:
        for chunk in client.chat(MODEL, USER, stream=True) if stream else [client.chat(MODEL, USER)]:
            message = chunk.message
            answer.chunks += stream
            answer.text += message.content or ""
            answer.thinking += message.thinking or ""
            answer.calls += [(call.function.name, dict(call.function.arguments)) for call in message.tool_calls or ()]
            answer.stop = chunk.done_reason
            answer.tokens = (chunk.prompt_eval_count, chunk.eval_count)


CLIENTS: dict[str, Callable[..., None]] = {
    "anthropic-messages": anthropic_messages,
    "openai-completions": openai_completions,
    "openai-responses": openai_responses,
    "ollama-chat": ollama_chat,
}


def ask(url: str, api: str, *, stream: bool) -> Answer:
    """Ask a question, and read the answer with the vendor's package to its end or until it raises."""
    answer = Answer()
    try:
        CLIENTS[api](url, answer, stream=stream)
    except Exception as error:  # noqa: BLE001 - which one it is, is what a test looks at
        answer.broken = error
    return answer
