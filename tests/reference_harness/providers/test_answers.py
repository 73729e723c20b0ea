"""Answers of the scripted server arrive in one normalised form, streamed and not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from signet_reference_harness.messages import Message, Thinking, ToolCall
from signet_reference_harness.providers import CompletionOptions, CompletionResult, StopReason, Usage
from tests.reference_harness.llm_server.served import Serve
from tests.reference_harness.providers.asking import APIS, HELLO, RECALL, ask, make

each_api = pytest.mark.parametrize("api", APIS)
streamed_or_not = pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
TWO_CALLS = {
    "content": [
        {"type": "thinking", "text": "I have to look."},
        {"type": "text", "text": "I look it up."},
        {"type": "tool_call", "name": "recall", "arguments": {"q": "ö", "deep": {"n": [1, None]}}},
        {"type": "tool_call", "name": "recall", "arguments": {}},
    ],
    "usage": {"input_tokens": 11, "output_tokens": 7},
}


@each_api
@streamed_or_not
def test_an_answer_arrives_with_reason_and_usage(serve: Serve, api: str, streamed: bool) -> None:
    """Text, end_turn, the vendor's word and the tokens; streamed text is shown as it comes."""
    served = serve(turns=[{"content": "Good morning to you.", "usage": {"input_tokens": 9, "output_tokens": 4}}])
    asked = ask(api, served.url, streamed=streamed)
    assert asked.answer.content == "Good morning to you."
    assert asked.answer.stop_reason is StopReason.END_TURN
    assert asked.answer.raw_reason in {"end_turn", "stop", "completed"}
    assert asked.answer.usage == Usage(9, 4)
    assert [text for text, _ in asked.shown] == (["Good ", "morning ", "to ", "you."] if streamed else [])


@each_api
@streamed_or_not
def test_parallel_calls_arrive_whole(serve: Serve, api: str, streamed: bool) -> None:
    """Both calls keep their arguments, and each has an id; thinking is not in the text."""
    asked = ask(api, serve(turns=[TWO_CALLS]).url, streamed=streamed)
    first, second = asked.answer.tool_calls
    assert (first.name, dict(first.arguments)) == ("recall", {"q": "ö", "deep": {"n": [1, None]}})
    assert (second.name, dict(second.arguments)) == ("recall", {})
    assert first.id != second.id
    assert (asked.answer.stop_reason, asked.answer.content) == (StopReason.TOOL_USE, "I look it up.")
    assert [thinking.text for thinking in asked.answer.thinking] == ["I have to look."]
    if streamed:
        assert ("look.", "thinking") in asked.shown
        assert asked.text == "I look it up."


def _after(result: CompletionResult, *results: str) -> list[Message]:
    said = Message("assistant", result.content, tool_calls=result.tool_calls, thinking=result.thinking)
    told = zip(result.tool_calls, results, strict=True)
    return [said, *(Message("tool", text, tool_call_id=call.id) for call, text in told)]


@each_api
@streamed_or_not
def test_two_rounds_of_tools_reach_the_model(serve: Serve, api: str, streamed: bool) -> None:
    """The next request has each round's calls and results in order; then the model answers."""
    once = {"content": [{"type": "tool_call", "name": "recall", "arguments": {"q": "z"}}]}
    served = serve(turns=[TWO_CALLS, once, {"content": "Done."}])
    messages = list(HELLO)
    messages += _after(ask(api, served.url, messages, streamed=streamed).answer, "result one", "result two")
    messages += _after(ask(api, served.url, messages, streamed=streamed).answer, "result three")
    messages.append(Message("user", "a reminder"))
    assert ask(api, served.url, messages, streamed=streamed).answer.content == "Done."
    third = served.requests()[-1]["asked"]["messages"]
    assert [message["text"] for message in third if message["role"] == "tool"] == [
        "result one", "result two", "result three"
    ]  # fmt: skip
    assert third[0]["role"] == "system"
    assert third[-1]["role"] == "user"
    assert third[-1]["text"] == "a reminder"
    called = [name for message in third for name in message.get("calls", message.get("tool_calls", ()))]
    assert called == ["recall", "recall", "recall"]


REASONS: list[tuple[str, str, dict[str, Any], StopReason]] = [
    (
        "anthropic-messages",
        "stop_sequence",
        {"stop": "stop_sequence", "stop_sequence": "END"},
        StopReason.STOP_SEQUENCE,
    ),
    ("anthropic-messages", "max_tokens", {"stop": "length"}, StopReason.LENGTH),
    ("anthropic-messages", "pause_turn", {"stop": "pause"}, StopReason.PAUSE),
    ("anthropic-messages", "refusal", {"stop": "refusal"}, StopReason.REFUSAL),
    ("anthropic-messages", "model_context_window_exceeded", {"stop": "context_limit"}, StopReason.CONTEXT_LIMIT),
    ("openai-completions", "length", {"stop": "length"}, StopReason.LENGTH),
    ("openai-completions", "content_filter", {"stop": "content_filter"}, StopReason.CONTENT_FILTER),
    ("openai-responses", "incomplete: max_output_tokens", {"stop": "length"}, StopReason.LENGTH),
    ("openai-responses", "incomplete: content_filter", {"stop": "content_filter"}, StopReason.CONTENT_FILTER),
    (
        "openai-responses",
        "cancelled",
        {"raw_stop": {"openai-responses": {"status": "cancelled"}}},
        StopReason.CANCELLED,
    ),
    (
        "openai-responses",
        "incomplete: bored",
        {"raw_stop": {"openai-responses": {"status": "incomplete", "reason": "bored"}}},
        StopReason.ERROR,
    ),
    ("openai-responses", "adjourned", {"raw_stop": {"openai-responses": {"status": "adjourned"}}}, StopReason.ERROR),
    ("ollama-chat", "length", {"stop": "length"}, StopReason.LENGTH),
    ("ollama-chat", "load", {"raw_stop": {"ollama-chat": "load"}}, StopReason.ERROR),
    ("ollama-chat", "unload", {"raw_stop": {"ollama-chat": "unload"}}, StopReason.ERROR),
    ("anthropic-messages", "bored", {"raw_stop": {"anthropic-messages": "bored"}}, StopReason.ERROR),
    ("openai-completions", "bored", {"raw_stop": {"openai-completions": "bored"}}, StopReason.ERROR),
    ("ollama-chat", "bored", {"raw_stop": {"ollama-chat": "bored"}}, StopReason.ERROR),
]


@pytest.mark.parametrize(("api", "raw", "turn", "reason"), REASONS, ids=[f"{row[0]}-{row[1]}" for row in REASONS])
@streamed_or_not
def test_a_reason_is_normalised(
    serve: Serve, api: str, raw: str, turn: dict[str, Any], reason: StopReason, streamed: bool
) -> None:
    """The vendor's word stays beside the normalised reason; an unknown word is an error that names it."""
    asked = ask(api, serve(turns=[{"content": "Well.", **turn}]).url, streamed=streamed)
    assert (asked.answer.stop_reason, asked.answer.raw_reason, asked.answer.content) == (reason, raw, "Well.")
    assert (raw in asked.answer.detail) == (reason is StopReason.ERROR)


@pytest.mark.parametrize("api", ["openai-completions", "openai-responses"])
@streamed_or_not
def test_a_refusal_told_as_text_is_a_refusal(serve: Serve, api: str, streamed: bool) -> None:
    """The reason is refusal, though the vendor's word is that of a normal end; the text is kept."""
    asked = ask(api, serve(turns=[{"content": [{"type": "refusal", "text": "I will not."}]}]).url, streamed=streamed)
    assert (asked.answer.stop_reason, asked.answer.content) == (StopReason.REFUSAL, "I will not.")


@each_api
def test_options_of_a_completion_reach_the_model(serve: Serve, api: str) -> None:
    """Number of tokens, temperature and stop texts; OpenAI's responses have no stop texts."""
    served = serve(turns=[{"content": "ok"}])

    async def ask_with() -> None:
        provider = make(api, served.url)
        await provider.complete(HELLO, CompletionOptions(max_tokens=7, temperature=0.25, stop=("END",)))
        await provider.aclose()

    asyncio.run(ask_with())
    body = served.requests()[0]["body"]
    sent = body.get("options", body)
    assert sent["temperature"] == 0.25
    assert 7 in [sent.get(name) for name in ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")]
    stop = sent.get("stop", sent.get("stop_sequences"))
    assert stop == (None if api == "openai-responses" else ["END"])


@each_api
@streamed_or_not
def test_an_overlong_context_is_a_reason_not_an_exception(serve: Serve, api: str, streamed: bool) -> None:
    """The vendor's refusal of a request that is too long ends as context_limit, without a second try."""
    served = serve(turns=[{"error": {"kind": "context_limit"}}])
    asked = ask(api, served.url, streamed=streamed)
    assert asked.answer.stop_reason is StopReason.CONTEXT_LIMIT
    assert asked.answer.raw_reason
    assert len(served.requests()) == 1


@each_api
@streamed_or_not
def test_arguments_that_are_no_object_are_the_fault_of_their_call(serve: Serve, api: str, streamed: bool) -> None:
    """The call has the fault for the model to read; the rest of the answer is kept."""
    turn = {
        "content": [{"type": "text", "text": "So."}, {"type": "tool_call", "name": "recall", "arguments": '{"q": '}]
    }
    asked = ask(api, serve(turns=[turn]).url, streamed=streamed)
    (call,) = asked.answer.tool_calls
    assert (asked.answer.stop_reason, call.name, call.arguments) == (StopReason.TOOL_USE, "recall", {})
    assert "the arguments are not a JSON object" in call.fault
    assert '{"q": ' in call.fault


def test_anthropic_gets_its_thinking_back_unchanged(serve: Serve) -> None:
    """Blocks that Anthropic signed come first in the assistant's message; another provider's are left out."""
    served = serve(turns=[TWO_CALLS, {"content": "Done."}])
    result = ask("anthropic-messages", served.url).answer
    said, *told = _after(result, "one", "two")
    foreign = Thinking("else", "ollama", {"thinking": "else"})
    mixed = Message("assistant", said.content, tool_calls=said.tool_calls, thinking=(foreign, *said.thinking))
    ask("anthropic-messages", served.url, [*HELLO, mixed, *told, Message("user", "a reminder")])
    _, assistant, results = served.requests()[-1]["body"]["messages"]
    assert assistant["content"][0] == {
        "type": "thinking",
        "thinking": "I have to look.",
        "signature": "c2NyaXB0ZWQtc2lnbmF0dXJl",
    }
    assert [block["type"] for block in assistant["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert [block["type"] for block in results["content"]] == ["tool_result", "tool_result", "text"]


def test_openai_responses_stores_nothing(serve: Serve) -> None:
    """Each request has the whole conversation, and asks the server not to store it."""
    served = serve(turns=[{"content": "ok"}])
    ask("openai-responses", served.url)
    assert served.requests()[-1]["body"]["store"] is False


@each_api
def test_tools_can_be_forbidden(serve: Serve, api: str) -> None:
    """tool_choice none is sent to the vendor; if its API has no such choice, no tools are offered."""
    served = serve(turns=[{"content": "ok"}])
    call = ToolCall("call_1", "recall", {"q": "x"})
    messages = [*HELLO, Message("assistant", "", tool_calls=(call,)), Message("tool", "r", tool_call_id="call_1")]
    ask(api, served.url, messages, options=CompletionOptions(tools=(RECALL,), tool_choice="none"))
    body = served.requests()[-1]["body"]
    assert (body.get("tool_choice"), bool(body.get("tools"))) == {
        "anthropic-messages": ({"type": "none"}, True),
        "ollama-chat": (None, False),
    }.get(api, ("none", True))


@each_api
def test_bounds_of_an_answer_are_sent(serve: Serve, api: str) -> None:
    """Model, largest number of tokens and temperature reach the vendor."""
    served = serve(turns=[{"content": "ok"}])
    ask(api, served.url, options=CompletionOptions(model="other", max_tokens=77, temperature=0.5))
    body = served.requests()[-1]["body"]
    wishes = body.get("options", body)
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
    assert body["model"] == "other"
    assert [wishes[name] for name in names if name in wishes] == [77]
    assert wishes["temperature"] == 0.5


@each_api
def test_available_says_whether_the_server_answers(serve: Serve, api: str) -> None:
    """A server that lists models is available, an address without a server is not."""

    async def available(url: str) -> bool:
        provider = make(api, url)
        try:
            return await provider.available()
        finally:
            await provider.aclose()

    assert asyncio.run(available(serve(turns=[]).url))
    assert not asyncio.run(available("http://127.0.0.1:9"))
