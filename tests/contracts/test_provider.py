"""The suite for providers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from signet_conformance.contracts import ProviderContract, ScriptedProvider, StreamingProvider
from signet_reference_harness.errors import ProviderError
from signet_reference_harness.messages import Message, ToolCall
from signet_reference_harness.providers import (
    CompletionChunk,
    CompletionOptions,
    CompletionResult,
    StopReason,
)

from .suites import failures

CUT = CompletionResult(content="The port", stop_reason=StopReason.MALFORMED, detail="the connection broke")


class Scripted(ProviderContract):
    """The suite, for the provider that answers from a script."""

    made: type[ScriptedProvider] = ScriptedProvider

    def answering(self, text: str) -> Any:
        """As the script says."""
        return self.made([CompletionResult(content=text)] * 3)

    def calling(self, name: str, arguments: dict[str, Any]) -> Any:
        """As the script says."""
        call = ToolCall("call-1", name, arguments)
        return self.made([CompletionResult(content="", tool_calls=(call,), stop_reason=StopReason.TOOL_USE)])

    def failing(self) -> Any:
        """The script has run out."""
        return self.made([])

    def breaking(self, text: str) -> Any:
        """The last piece says that it broke."""
        return StreamingProvider(CompletionChunk(text[:8]), CompletionChunk("", result=CUT))


class Nameless(ScriptedProvider):
    id = " "


class Shy(ScriptedProvider):
    async def available(self) -> bool:
        return False


class Short(ScriptedProvider):
    async def complete(self, messages: Sequence[Message], options: CompletionOptions) -> CompletionResult:
        return replace(await super().complete(messages, options), content="The port")


class Plain(ScriptedProvider):
    async def complete(self, messages: Sequence[Message], options: CompletionOptions) -> Any:
        return (await super().complete(messages, options)).content


class Vague(ScriptedProvider):
    async def complete(self, messages: Sequence[Message], options: CompletionOptions) -> CompletionResult:
        return replace(await super().complete(messages, options), stop_reason=StopReason.ERROR)


class Streaming(ScriptedProvider):
    async def changed(self, chunks: list[CompletionChunk]) -> list[Any]:
        return chunks

    async def stream(self, messages: Sequence[Message], options: CompletionOptions) -> AsyncIterator[CompletionChunk]:
        for chunk in await self.changed([chunk async for chunk in super().stream(messages, options)]):
            yield chunk


class Endless(Streaming):
    async def changed(self, chunks: list[CompletionChunk]) -> list[Any]:
        return chunks[:-1]


class Silent(Streaming):
    async def changed(self, chunks: list[CompletionChunk]) -> list[Any]:
        return []


class Eager(Streaming):
    async def changed(self, chunks: list[CompletionChunk]) -> list[Any]:
        return [replace(chunk, result=chunks[-1].result) for chunk in chunks]


class Texts(Streaming):
    async def changed(self, chunks: list[CompletionChunk]) -> list[Any]:
        return [chunk.text for chunk in chunks[:-1]]


class Trimming(Streaming):
    async def changed(self, chunks: list[CompletionChunk]) -> list[Any]:
        return [replace(chunk, text=chunk.text.strip()) for chunk in chunks]


class Uncounted(ScriptedProvider):
    async def complete(self, messages: Sequence[Message], options: CompletionOptions) -> CompletionResult:
        usage: Any = None
        return replace(await super().complete(messages, options), usage=usage)


class Meddling(ScriptedProvider):
    async def complete(self, messages: Any, options: CompletionOptions) -> CompletionResult:
        messages.append(Message("assistant", "Hm."))
        return await super().complete(messages, options)


class Clinging(ScriptedProvider):
    async def stream(self, messages: Sequence[Message], options: CompletionOptions) -> AsyncIterator[CompletionChunk]:
        try:
            async for chunk in super().stream(messages, options):
                yield chunk
        except GeneratorExit:
            raise RuntimeError("left") from None


class Once(ScriptedProvider):
    closed = False

    async def aclose(self) -> None:
        if self.closed:
            raise RuntimeError("closed already")
        self.closed = True


class Anonymous(ScriptedProvider):
    async def complete(self, messages: Sequence[Message], options: CompletionOptions) -> CompletionResult:
        result = await super().complete(messages, options)
        return replace(result, tool_calls=tuple(replace(call, id="") for call in result.tool_calls))


class Unfinished(ScriptedProvider):
    async def complete(self, messages: Sequence[Message], options: CompletionOptions) -> CompletionResult:
        return replace(await super().complete(messages, options), stop_reason=StopReason.END_TURN)


class Raw(ScriptedProvider):
    async def complete(self, messages: Sequence[Message], options: CompletionOptions) -> CompletionResult:
        try:
            return await super().complete(messages, options)
        except ProviderError as error:
            raise ConnectionError(error.message) from None


class Swallowing(ScriptedProvider):
    async def complete(self, messages: Sequence[Message], options: CompletionOptions) -> CompletionResult:
        try:
            return await super().complete(messages, options)
        except ProviderError as error:
            return CompletionResult(content=error.message)


BROKEN = [
    ("test_it_has_an_id", Nameless),
    ("test_it_says_whether_its_model_can_be_asked", Shy),
    ("test_it_completes", Short),
    ("test_it_completes", Plain),
    ("test_it_completes", Vague),
    ("test_its_stream_ends_with_the_result", Endless),
    ("test_its_stream_ends_with_the_result", Silent),
    ("test_its_stream_ends_with_the_result", Eager),
    ("test_its_stream_ends_with_the_result", Texts),
    ("test_its_stream_says_what_its_result_holds", Trimming),
    ("test_it_counts_tokens", Uncounted),
    ("test_it_leaves_the_messages_alone", Meddling),
    ("test_a_stream_can_be_left", Clinging),
    ("test_it_can_be_closed_twice", Once),
    ("test_its_tool_calls_are_whole", Anonymous),
    ("test_its_tool_calls_are_whole", Unfinished),
    ("test_it_raises_provider_error_and_nothing_else", Raw),
    ("test_it_raises_provider_error_and_nothing_else", Swallowing),
]


def test_a_conforming_provider_passes() -> None:
    """Every test of the suite holds, and none is skipped."""
    assert failures(Scripted()) == {}


@pytest.mark.parametrize(("name", "provider"), BROKEN, ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_provider_is_caught_by_name(name: str, provider: type[ScriptedProvider]) -> None:
    """The test that is named for the breach fails, and says what it met."""
    suite = Scripted()
    suite.made = provider
    assert failures(suite).get(name)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (StreamingProvider(CompletionChunk("The port"), error=ProviderError("gone")), "raised ProviderError: gone"),
        (StreamingProvider(CompletionChunk("The port")), "ended without a result"),
        (StreamingProvider(CompletionChunk("", result=CUT)), "the result holds 'The port'; what had arrived is ''"),
        (StreamingProvider(CompletionChunk("The port", result=replace(CUT, detail=""))), "says no detail"),
        (
            StreamingProvider(CompletionChunk("The port", result=replace(CUT, stop_reason=StopReason.END_TURN))),
            "has the stop reason <StopReason.END_TURN: 'end_turn'>",
        ),
    ],
)
def test_a_stream_that_breaks_badly_is_caught_by_name(broken: StreamingProvider, said: str) -> None:
    """Raising after a piece, ending without a result, and a result that hides the break."""

    class Breaking(Scripted):
        def breaking(self, text: str) -> Any:
            return broken

    (told,) = failures(Breaking()).items()
    assert told[0] == "test_a_stream_that_breaks_ends_with_what_had_arrived"
    assert said in told[1]


def test_what_the_author_did_not_say_is_skipped_by_name() -> None:
    """Only `answering` is demanded; the others are named in what is skipped."""

    class Bare(ProviderContract):
        def answering(self, text: str) -> Any:
            return ScriptedProvider([CompletionResult(content=text)] * 3)

    assert failures(Bare()) == {
        "TEST_ITS_TOOL_CALLS_ARE_WHOLE": "the suite is not told how: override calling(name, arguments)",
        "TEST_IT_RAISES_PROVIDER_ERROR_AND_NOTHING_ELSE": "the suite is not told how: override failing()",
        "TEST_A_STREAM_THAT_BREAKS_ENDS_WITH_WHAT_HAD_ARRIVED": "the suite is not told how: override breaking(text)",
    }
