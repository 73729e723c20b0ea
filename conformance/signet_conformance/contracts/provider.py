"""Tests that every model provider must pass (`signet_reference_harness.providers.Provider`)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from signet_conformance.contracts.fakes import demand, run_to_end, skip_unless_overridden
from signet_reference_harness.errors import ProviderError
from signet_reference_harness.messages import Message
from signet_reference_harness.providers import (
    CompletionChunk,
    CompletionOptions,
    CompletionResult,
    Provider,
    StopReason,
    Usage,
)

ANSWER = "The port is 50051.\nIt is open."
ASKED = "Which port?"
BROKEN_REASONS = frozenset({StopReason.MALFORMED, StopReason.ERROR, StopReason.CONTENT_FILTER, StopReason.CANCELLED})


class ProviderContract:
    """Subclass it, and let each method return a provider of yours whose model behaves as described there.

    Only :meth:`answering` has to be overridden; the tests of the others are skipped until they are.
    """

    def answering(self, text: str) -> Provider:
        """A provider whose model answers each question with `text`."""
        raise NotImplementedError("override answering(text): a provider of yours whose model answers with that text")

    def calling(self, name: str, arguments: dict[str, Any]) -> Provider:
        """A provider whose model calls the tool `name`."""
        del name, arguments
        skip_unless_overridden("calling(name, arguments)")

    def failing(self) -> Provider:
        """A provider whose model cannot be asked: no server listens, or the key is refused."""
        skip_unless_overridden("failing()")

    def breaking(self, text: str) -> Provider:
        """A provider whose model says `text`, or its beginning, and is then cut off."""
        del text
        skip_unless_overridden("breaking(text)")

    def test_it_has_an_id(self) -> None:
        """The id names the provider, in messages and settings."""
        name = self.answering(ANSWER).id
        demand(isinstance(name, str) and name.strip(), f"id is {name!r}, not a name")

    def test_it_says_whether_its_model_can_be_asked(self) -> None:
        """`available` is True for one that answers."""

        async def work(provider: Provider) -> Any:
            return await provider.available()

        available = _use(self.answering(ANSWER), work)
        demand(available is True, f"available() gave {available!r} for a model that answers, not True")

    def test_it_completes(self) -> None:
        """`complete` gives a CompletionResult with the model's words, which ended as usual."""
        result = _use(self.answering(ANSWER), _complete)
        _check_result(result, "complete()")
        demand(result.content == ANSWER, f"complete() gave the content {result.content!r}; the model said {ANSWER!r}")
        demand(
            result.stop_reason is StopReason.END_TURN,
            f"complete() gave the stop reason {result.stop_reason!r} for a whole answer, not end_turn",
        )

    def test_its_stream_ends_with_the_result(self) -> None:
        """Every piece is a CompletionChunk; the last one, and no other, carries the whole result."""
        chunks = _use(self.answering(ANSWER), _stream)
        demand(chunks, "stream() yielded nothing")
        strange = [type(chunk).__name__ for chunk in chunks if not isinstance(chunk, CompletionChunk)]
        demand(not strange, f"stream() yielded {strange and strange[0]}, not a CompletionChunk")
        demand(chunks[-1].result is not None, "the last chunk of the stream carries no result")
        _check_result(chunks[-1].result, "the last chunk")
        early = [number for number, chunk in enumerate(chunks[:-1]) if chunk.result is not None]
        demand(not early, f"chunk {early and early[0]} of {len(chunks)} carries a result: only the last one may")

    def test_its_stream_says_what_its_result_holds(self) -> None:
        """The texts of the pieces, put together, are the content of the result."""
        chunks = _use(self.answering(ANSWER), _stream)
        text = "".join(chunk.text for chunk in chunks if chunk.kind == "text")
        content = chunks[-1].result.content if chunks and chunks[-1].result else None
        demand(text == content == ANSWER, f"the chunks say {text!r}, their result {content!r}, the model {ANSWER!r}")

    def test_it_counts_tokens(self) -> None:
        """`usage` holds whole numbers of 0 or more."""
        usage = _use(self.answering(ANSWER), _complete).usage
        counted = isinstance(usage, Usage) and all(
            type(tokens) is int and tokens >= 0 for tokens in (usage.input_tokens, usage.output_tokens)
        )
        demand(counted, f"usage is {usage!r}, not a Usage of whole numbers")

    def test_it_leaves_the_messages_alone(self) -> None:
        """The provider does not change the list of messages, which is the harness's own."""

        async def work(provider: Provider) -> Sequence[Message]:
            messages = [Message("user", ASKED)]
            await provider.complete(messages, CompletionOptions())
            return messages

        messages = _use(self.answering(ANSWER), work)
        demand(messages == [Message("user", ASKED)], f"after complete() the caller's messages are {messages!r}")

    def test_a_stream_can_be_left(self) -> None:
        """Closing a stream after its first piece raises nothing, and the provider can be asked again."""

        async def work(provider: Provider) -> CompletionResult:
            stream = provider.stream([Message("user", ASKED)], CompletionOptions())
            await anext(aiter(stream))
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
            return await provider.complete([Message("user", ASKED)], CompletionOptions())

        result = _use(self.answering(ANSWER), work, "leaving a stream")
        _check_result(result, "complete() after a stream that was left")

    def test_it_can_be_closed_twice(self) -> None:
        """The second aclose() does nothing."""

        async def work(provider: Provider) -> None:
            await provider.aclose()

        _use(self.answering(ANSWER), work, "closing it twice")

    def test_its_tool_calls_are_whole(self) -> None:
        """A call has an id, the tool's name and its arguments as an object, and the reason says tool_use."""
        for kind, ask in (("complete()", _complete), ("stream()", _last_result)):
            result = _use(self.calling("weather", {"place": "Ulm"}), ask)
            _check_result(result, kind)
            demand(
                result.stop_reason is StopReason.TOOL_USE,
                f"{kind} gave the stop reason {result.stop_reason!r} for a tool call, not tool_use",
            )
            calls = [(call.name, dict(call.arguments)) for call in result.tool_calls]
            demand(calls == [("weather", {"place": "Ulm"})], f"{kind} gave the tool calls {calls!r}")
            demand(all(call.id for call in result.tool_calls), f"a tool call of {kind} has no id")

    def test_it_raises_provider_error_and_nothing_else(self) -> None:
        """A model that cannot be asked is a ProviderError from `complete` and `stream`, before any piece."""
        for kind, ask in (("complete()", _complete), ("stream()", _stream)):
            answer, error = _try(self.failing(), ask)
            demand(
                error is not None, f"{kind} of a model that cannot be asked gave {answer!r} and raised no ProviderError"
            )
            demand(
                isinstance(error, ProviderError),
                f"{kind} raised {type(error).__name__}: {error}; only ProviderError may be raised",
            )
            demand(str(error).strip(), f"the ProviderError of {kind} says nothing")

    def test_a_stream_that_breaks_ends_with_what_had_arrived(self) -> None:
        """A stream that has yielded a piece raises no more: its result says that it broke, and holds what arrived."""
        chunks, error = _try(self.breaking(ANSWER), _stream)
        demand(error is None, f"the stream raised {type(error).__name__}: {error} after its first chunk")
        text = "".join(chunk.text for chunk in chunks if chunk.kind == "text")
        result = chunks[-1].result if chunks else None
        demand(result is not None, "the stream that was cut off ended without a result")
        if result is not None:
            demand(
                result.stop_reason in BROKEN_REASONS,
                f"the result of a stream that was cut off has the stop reason {result.stop_reason!r}",
            )
            demand(result.content == text, f"the result holds {result.content!r}; what had arrived is {text!r}")
            demand(result.detail, "the result of a stream that was cut off says no detail")


def _use(provider: Provider, work: Callable[[Provider], Awaitable[Any]], doing: str = "asking it") -> Any:
    """Run `work` with the provider, close it, and return the result. The test fails if anything is raised."""
    value, error = _try(provider, work)
    demand(error is None, f"{doing} raised {type(error).__name__}: {error}")
    return value


def _try(provider: Provider, work: Callable[[Provider], Awaitable[Any]]) -> tuple[Any, Exception | None]:
    """Run `work` with the provider and close it. Return the result, or None and the exception."""

    async def use_and_close() -> Any:
        try:
            return await work(provider)
        finally:
            await provider.aclose()

    try:
        return run_to_end(use_and_close()), None
    except Exception as error:  # noqa: BLE001 - what a stranger's code raises is what is tested
        return None, error


async def _complete(provider: Provider) -> CompletionResult:
    return await provider.complete([Message("user", ASKED)], CompletionOptions())


async def _stream(provider: Provider) -> list[CompletionChunk]:
    stream: AsyncIterator[CompletionChunk] = provider.stream([Message("user", ASKED)], CompletionOptions())
    return [chunk async for chunk in stream]


async def _last_result(provider: Provider) -> CompletionResult | None:
    chunks = await _stream(provider)
    return chunks[-1].result if chunks else None


def _check_result(result: object, what: str) -> None:
    demand(isinstance(result, CompletionResult), f"{what} gave {type(result).__name__}, not a CompletionResult")
