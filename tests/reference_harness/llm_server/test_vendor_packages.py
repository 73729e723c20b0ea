"""The vendors' own packages read what the server writes: each turn, streamed and not, says what the script says."""

from __future__ import annotations

import anthropic
import openai

from .served import Serve

CALLS = [("recall", {"query": "the release notes of May"}), ("remember", {"content": "ö"})]
SPOKEN = {
    "content": [
        {"type": "text", "text": "I look it up, wait."},
        *({"type": "tool_call", "name": name, "arguments": arguments} for name, arguments in CALLS),
    ],
    "usage": {"input_tokens": 11, "output_tokens": 7},
}


def test_anthropic_reads_text_and_parallel_tool_calls(serve: Serve) -> None:
    """Text, both calls, the reason to stop and the usage arrive, streamed as in one answer."""
    client = anthropic.Anthropic(base_url=serve(turns=[SPOKEN, SPOKEN]).url, api_key="sk-planted", max_retries=0)
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    with client.messages.stream(**asked) as stream:
        streamed = stream.get_final_message()
    for message in (client.messages.create(**asked), streamed):
        text, *calls = message.content
        assert text.text == "I look it up, wait."
        assert [(call.name, call.input) for call in calls] == CALLS
        assert len({call.id for call in calls}) == 2
        assert (message.stop_reason, message.usage.input_tokens, message.usage.output_tokens) == ("tool_use", 11, 7)


def test_openai_reads_text_and_parallel_tool_calls(serve: Serve) -> None:
    """Text, both calls, the reason to stop and the usage arrive, streamed as in one answer."""
    client = openai.OpenAI(base_url=f"{serve(turns=[SPOKEN, SPOKEN]).url}/v1", api_key="sk-planted", max_retries=0)
    asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
        streamed = stream.get_final_completion()
    for completion in (client.chat.completions.create(**asked), streamed):
        (choice,) = completion.choices
        assert choice.message.content == "I look it up, wait."
        assert [call.function.name for call in choice.message.tool_calls] == ["recall", "remember"]
        assert '"ö"' in choice.message.tool_calls[1].function.arguments
        assert (choice.finish_reason, completion.usage.prompt_tokens) == ("tool_calls", 11)
        assert completion.usage.completion_tokens == 7


def test_a_request_is_kept_without_its_key(serve: Serve) -> None:
    """GET /requests shows what was asked, by whom, and which turn answered; of the key only that there was one."""
    served = serve(turns=[{"content": "Hello."}])
    client = anthropic.Anthropic(base_url=served.url, api_key="sk-planted", max_retries=0)
    client.messages.create(model="m", max_tokens=9, system="Be brief.", messages=[{"role": "user", "content": "hi"}])
    (kept,) = served.requests()
    assert kept["body"]["system"] == "Be brief."
    assert kept["asked"]["messages"] == [{"role": "system", "text": "Be brief."}, {"role": "user", "text": "hi"}]
    assert (kept["api"], kept["turn"], kept["outcome"]) == ("anthropic-messages", "turns/0", "complete")
    assert ["x-api-key", "[redacted]"] in kept["headers"]
    assert "sk-planted" not in served.http.get("/requests").text


def test_a_path_that_no_vendor_has_is_answered_with_the_path(serve: Serve) -> None:
    """404 names method and path, and the request is kept."""
    served = serve(turns=[])
    answer = served.http.post("/v1/nowhere", json={})
    assert (answer.status_code, answer.json()["error"]["message"]) == (404, "this server has no POST /v1/nowhere")
    assert served.requests()[0]["path"] == "/v1/nowhere"
