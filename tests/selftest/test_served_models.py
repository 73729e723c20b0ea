"""A scripted model behind a vendor's interface: the harness's turns, with what the model is asked on the wire."""

from __future__ import annotations

import asyncio

import pytest

from signet_conformance.selftest.harness import ServedModels
from signet_reference_harness.errors import ProviderError
from signet_reference_harness.messages import Message, ToolCall
from signet_reference_harness.providers import CompletionOptions, CompletionResult, StopReason
from tests.reference_harness.llm_server.conftest import scripted_model, serve
from tests.reference_harness.llm_server.served import Serve
from tests.reference_harness.providers.asking import make

__all__ = ["scripted_model", "serve"]


def test_the_answers_of_the_script_come_over_the_vendors_interface(serve: Serve) -> None:
    """A call and then words are answered in their order, and the server has read what was asked."""
    server = serve(when_out="wait")
    call = ToolCall("c1", "memory_search", {"query": "port"})
    script = [
        CompletionResult(content="", tool_calls=(call,), stop_reason=StopReason.TOOL_USE),
        CompletionResult(content="It is 3850."),
    ]
    announced: list[str] = []

    async def announce() -> None:
        announced.append("now")

    async def ask() -> list[CompletionResult]:
        models = ServedModels(server.url, make("ollama-chat", server.url))
        model = models(script, announce)
        try:
            options = CompletionOptions(system_prompt="You know ports.")
            return [await model.complete([Message("user", "Which port?")], options) for _ in script]
        finally:
            await models.aclose()

    first, second = asyncio.run(ask())
    assert [(made.name, made.arguments) for made in first.tool_calls] == [("memory_search", {"query": "port"})]
    assert (second.content, announced) == ("It is 3850.", ["now"])
    assert [kept["asked"]["messages"][0]["text"] for kept in server.requests()] == ["You know ports."] * 2


def test_a_server_that_is_away_is_a_providers_failure() -> None:
    """A script that cannot be told raises what a provider raises."""

    async def ask() -> None:
        models = ServedModels("http://127.0.0.1:1", make("ollama-chat", "http://127.0.0.1:1"))
        try:
            await models([CompletionResult(content="Yes.")]).complete([Message("user", "?")], CompletionOptions())
        finally:
            await models.aclose()

    with pytest.raises(ProviderError, match="cannot be given its answer"):
        asyncio.run(ask())
