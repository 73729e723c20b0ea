"""The server's answers have all members of the vendors' types; the packages themselves overlook missing ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from .served import Serve

CONTENT = [
    {"type": "thinking", "text": "Hm."},
    {"type": "text", "text": "I look it up."},
    {"type": "tool_call", "name": "recall", "arguments": {"query": "May"}},
]
PATHS = {
    "anthropic-messages": "/v1/messages",
    "openai-completions": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "ollama-chat": "/api/chat",
}
TURNS: dict[str, dict[str, Any]] = {
    "tools": {"content": CONTENT},
    "refusal": {"content": [{"type": "refusal", "text": "No."}]},
    "length": {"content": "", "stop": "length"},
}
NO_REFUSAL = ("ollama-chat", "refusal")


def types_of(api: str) -> tuple[Any, Any]:
    """The package's types of a whole answer and of an event; imported here, since each worker collects these tests."""
    import anthropic.types
    import ollama
    import openai.types.chat
    import openai.types.responses

    return {
        "anthropic-messages": (anthropic.types.Message, anthropic.types.RawMessageStreamEvent),
        "openai-completions": (openai.types.chat.ChatCompletion, openai.types.chat.ChatCompletionChunk),
        "openai-responses": (openai.types.responses.Response, openai.types.responses.ResponseStreamEvent),
        "ollama-chat": (ollama.ChatResponse, ollama.ChatResponse),
    }[api]


def events(text: str) -> list[Any]:
    """The JSON values of server-sent events, or of lines."""
    lines = [line.removeprefix("data: ") for line in text.split("\n") if line[:1] == "{" or line[:6] == "data: "]
    return [json.loads(line) for line in lines if line != "[DONE]"]


@pytest.mark.parametrize(("api", "turn"), [(api, turn) for api in PATHS for turn in TURNS if (api, turn) != NO_REFUSAL])
def test_all_that_the_types_ask_for_is_there(serve: Serve, api: str, turn: str) -> None:
    """A whole answer and each event are valid by the package's types: no member missing, none of another type."""
    answer_type, event_type = types_of(api)
    served = serve(turns=[TURNS[turn]] * 2)
    asked = {"model": "m", "stream_options": {"include_usage": True}}
    whole = served.http.post(PATHS[api], json={**asked, "stream": False})
    assert whole.status_code == 200, whole.text
    TypeAdapter(answer_type).validate_python(whole.json())
    streamed = events(served.http.post(PATHS[api], json={**asked, "stream": True}).text)
    adapter = TypeAdapter(event_type)
    for event in streamed:
        if event.get("type") != "ping":
            adapter.validate_python(event)
    assert len(streamed) >= 1


def test_lists_and_counts_are_what_the_types_ask_for(serve: Serve) -> None:
    """The models of each vendor, and Anthropic's count of tokens."""
    import anthropic.types
    import ollama
    import openai.types

    http = serve(models=["one", "two"]).http
    version = {"anthropic-version": "2023-06-01"}
    described = http.get("/v1/models", headers=version).json()["data"]
    assert [anthropic.types.ModelInfo.model_validate(each).id for each in described] == ["one", "two"]
    described = http.get("/v1/models").json()["data"]
    assert [openai.types.Model.model_validate(each).id for each in described] == ["one", "two"]
    assert openai.types.Model.model_validate(http.get("/v1/models/two").json()).id == "two"
    listed = ollama.ListResponse.model_validate(http.get("/api/tags").json())
    assert [each.model for each in listed.models] == ["one:latest", "two:latest"]
    assert ollama.ShowResponse.model_validate(http.post("/api/show", json={"model": "two"}).json()).capabilities
    assert http.post("/api/show", json={"model": "three"}).status_code == 404
    counted = http.post("/v1/messages/count_tokens", json={"model": "one", "messages": []}, headers=version).json()
    assert anthropic.types.MessageTokensCount.model_validate(counted).input_tokens > 0
