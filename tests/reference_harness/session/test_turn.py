"""A turn with the model: streamed, with tools, and ending with a reason whatever the provider does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from signet_reference_harness.errors import ProviderDeferredError, ProviderError
from signet_reference_harness.messages import Message, ToolCall
from signet_reference_harness.providers import CompletionChunk, CompletionResult, StopReason, Usage
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.session.host import SessionHost
from signet_reference_harness.session.turn import TurnListener, TurnResult
from signet_reference_harness.tools import ToolResult
from signet_reference_harness.tools.registry import ToolRegistry
from tests.reference_harness.recording_daemon import END, PROMPT, START, Answer, RecordingDaemon
from tests.reference_harness.sessions import Stream, say, session_of, turns

Hosted = Callable[..., Any]
SEARCH = ToolCall("c1", "memory_search", {"query": "port"})
UNKNOWN = ToolCall("c2", "no_such_tool", {})


def asking(*calls: ToolCall, content: str = "") -> CompletionResult:
    """A completion that calls tools."""
    return CompletionResult(content=content, tool_calls=calls, stop_reason=StopReason.TOOL_USE)


@pytest.fixture
def take(hosted: Hosted) -> Callable[..., TurnResult]:
    """One turn of a started session, with a provider; then the session ends."""

    def run(provider: Any, **given: Any) -> TurnResult:
        async def work(host: SessionHost) -> TurnResult:
            session = session_of(host)
            await session.start()
            result = await session.turn("hello", provider, **given)
            await session.end()
            return result

        result: TurnResult = hosted(work)
        return result

    return run


Take = Callable[..., TurnResult]


class Noting(TurnListener):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, Any]] = []

    def chunk(self, chunk: CompletionChunk) -> None:
        """Its text."""
        self.noted.append(("chunk", chunk.text))

    def message(self, message: Message) -> None:
        """Its role."""
        self.noted.append(("message", message.role))

    def tool_call(self, call: ToolCall) -> None:
        """Its name."""
        self.noted.append(("call", call.name))

    def tool_result(self, call: ToolCall, result: ToolResult) -> None:
        """Its name, and how it went."""
        self.noted.append(("result", (call.name, result.ok)))


def test_a_listener_is_told_in_order(take: Take) -> None:
    """The prompt, the text piece by piece, the reply, then each tool before and after it ran, and its message."""
    listener = Noting()
    provider = ScriptedProvider([asking(SEARCH, UNKNOWN, content="Let me see."), CompletionResult(content="It is 5.")])
    result = take(provider, listener=listener)
    assert listener.noted == [
        ("message", "user"),
        *(("chunk", word) for word in ("Let ", "me ", "see.")),
        ("message", "assistant"),
        ("call", "memory_search"),
        ("result", ("memory_search", True)),
        ("message", "tool"),
        ("call", "no_such_tool"),
        ("result", ("no_such_tool", False)),
        ("message", "tool"),
        *(("chunk", word) for word in ("It ", "is ", "5.")),
        ("message", "assistant"),
    ]
    assert (result.reply, result.rounds, [each.ok for each in result.tool_results]) == ("It is 5.", 2, [True, False])
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "tool", "assistant"]


def test_a_listener_that_fails_is_not_taken_for_the_provider(take: Take) -> None:
    """An error in the listener reaches the caller, and the stream is closed."""
    provider = Stream(CompletionChunk("a"), CompletionChunk("", result=CompletionResult(content="a")))

    class Gone(TurnListener):
        def chunk(self, chunk: CompletionChunk) -> None:
            raise BrokenPipeError(chunk.text)

    with pytest.raises(BrokenPipeError):
        take(provider, listener=Gone())
    assert provider.closed


@pytest.mark.parametrize(
    ("chunk", "told"),
    [
        ("hi", "it yielded str, not a CompletionChunk"),
        (CompletionChunk("hi", result="hi"), "a chunk's result is str, not a CompletionResult"),
    ],
)
def test_a_provider_that_yields_something_else_ends_the_turn_with_a_reason(take: Take, chunk: Any, told: str) -> None:
    """The turn ends as an error that names what came; the session goes on to its end."""
    assert told in take(Stream(chunk)).detail


def test_a_provider_that_exits_ends_the_turn_alone(take: Take) -> None:
    """The harness, whose session must end at the daemon, does not exit with it."""
    result = take(Stream(error=SystemExit(0)))
    assert (result.outcome, result.detail) == (StopReason.ERROR, "the provider crashed: SystemExit: 0")


def test_usage_is_that_of_all_rounds(take: Take) -> None:
    """Tokens add up over the rounds; the raw reason is that of the last."""
    first = CompletionResult(content="", tool_calls=(SEARCH,), stop_reason=StopReason.TOOL_USE, usage=Usage(10, 2))
    last = CompletionResult(content="done", usage=Usage(20, 3), raw_reason="stop")
    result = take(ScriptedProvider([first, last]))
    assert (result.usage, result.raw_reason) == (Usage(30, 5), "stop")


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_out_of_rounds_the_model_is_asked_once_more_without_tools(hosted: Hosted, rounds: int) -> None:
    """After the last round of tools no tool may be called, the model is told so, and its answer is the reply."""
    provider = ScriptedProvider([*[asking(UNKNOWN)] * rounds, CompletionResult(content="So far: 5.")])

    async def work(host: SessionHost) -> TurnResult:
        session = session_of(host)
        session.most_rounds = rounds
        await session.start()
        return await session.turn("go", provider)

    result: TurnResult = hosted(work)
    assert result.reply == "So far: 5."
    assert result.outcome == (StopReason.ROUND_LIMIT if rounds else StopReason.END_TURN)
    assert [options.tool_choice for _, options in provider.seen] == ["auto"] * rounds + ["none"]
    assert ("No tool can be called now" in provider.seen[-1][0][-1].content) == bool(rounds)


def test_endless_tool_calls_are_cut_off_with_a_reason(take: Take) -> None:
    """A model that never stops calling tools runs eight rounds of them, is asked a ninth time, and the turn ends."""
    provider = ScriptedProvider([asking(UNKNOWN)] * 20)
    result = take(provider)
    assert (len(provider.seen), len(result.tool_results)) == (9, 8)
    assert (result.outcome, result.error, result.reply) == (StopReason.ROUND_LIMIT, None, "")
    assert "all 8 rounds" in result.detail
    assert "no answer" in result.detail


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (ProviderError("the connection broke"), "the connection broke"),
        (ZeroDivisionError("x"), "the provider crashed: ZeroDivisionError: x"),
        (None, "the stream closed without a reason"),
    ],
)
def test_a_broken_stream_keeps_what_arrived(
    daemon: RecordingDaemon, hosted: Hosted, error: Exception | None, detail: str
) -> None:
    """The reply is what arrived, shown as broken, in the transcript; the model is told of it in the next turn."""
    after = ScriptedProvider([CompletionResult(content="again")])

    async def work(host: SessionHost) -> TurnResult:
        session = session_of(host)
        await session.start()
        result = await session.turn("hello", Stream(CompletionChunk("The port "), error=error))
        await session.turn("go on", after)
        await session.end()
        return result

    result: TurnResult = hosted(work)
    assert (result.reply, result.outcome, result.error) == ("The port ", "malformed", None)
    assert result.detail == detail
    assert turns(daemon.bodies(END)[0]) == [
        ("user", "hello"),
        ("assistant", "The port "),
        ("user", "go on"),
        ("assistant", "again"),
    ]
    asked = after.seen[0][0]
    assert [message.role for message in asked] == ["user", "assistant", "user"]
    assert "broke off" in asked[-1].content
    assert daemon.bodies(PROMPT)[1]["userMessage"] == "go on"


@pytest.mark.parametrize(
    ("provider", "outcome", "error"),
    [
        (Stream(error=ProviderError("no key")), StopReason.ERROR, "no key"),
        (Stream(error=ValueError("x")), StopReason.ERROR, "the provider crashed: ValueError: x"),
        (Stream(), StopReason.MALFORMED, "the stream closed without a reason"),
        (
            ScriptedProvider([CompletionResult(content="", stop_reason=StopReason.REFUSAL, raw_reason="refusal")]),
            StopReason.REFUSAL,
            "the model gave no answer: refusal",
        ),
    ],
)
def test_a_turn_without_an_answer_says_why(
    daemon: RecordingDaemon, take: Take, provider: Any, outcome: StopReason, error: str
) -> None:
    """Nothing arrived: the turn leaves no trace, has an outcome and a reason, and the session is ended."""
    result = take(provider)
    assert (result.reply, result.outcome, result.error, result.messages) == ("", outcome, error, ())
    assert daemon.paths() == ["session-start", "user-prompt-submit", "session-end"]
    assert '"user"' not in daemon.bodies(END)[0]["transcript"]


def test_a_deferred_turn_says_for_how_long(take: Take) -> None:
    """A provider that wants a longer wait leaves its seconds with the result."""
    result = take(Stream(error=ProviderDeferredError("rate limited", 90.0)))
    assert (result.deferred_s, result.error) == (90.0, "rate limited")


def test_what_the_provider_said_of_a_failure_stays_with_the_outcome(take: Take) -> None:
    """The raw reason of a call that failed is that of the turn."""
    result = take(Stream(error=ProviderError("busy", raw_reason="rate_limit_error")))
    assert (result.outcome, result.raw_reason) == (StopReason.ERROR, "rate_limit_error")


def test_tool_calls_of_a_reply_that_was_cut_are_not_run(take: Take) -> None:
    """At the length limit arguments may be incomplete: no tool runs, and none stays in the conversation."""
    cut = CompletionResult(content="I will", tool_calls=(SEARCH,), stop_reason=StopReason.LENGTH, raw_reason="length")
    result = take(ScriptedProvider([cut]))
    assert (result.outcome, result.tool_results, result.reply) == (StopReason.LENGTH, (), "I will")
    assert not any(message.tool_calls for message in result.messages)


def test_a_cancelled_turn_keeps_what_arrived(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """Cancelling goes on to the caller; the words that had arrived are in the transcript of the end."""
    arrived = asyncio.Event()

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        turn = asyncio.create_task(session.turn("hello", Stream(CompletionChunk("Half a "), arrived=arrived)))
        await arrived.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        await say(session, "more")
        await session.end()

    hosted(work)
    assert turns(daemon.bodies(END)[0])[:2] == [("user", "hello"), ("assistant", "Half a ")]


def test_a_turn_cancelled_during_a_tool_leaves_no_call_without_a_result(hosted: Hosted) -> None:
    """What the model said before the call stays; the call does not, since providers refuse one without its result."""
    running, released = threading.Event(), threading.Event()

    class Slow:
        name, description, input_schema, run_before_generation = "slow", "Takes its time.", {"type": "object"}, False

        def execute(self, _arguments: object, _context: object) -> None:
            running.set()
            released.wait(30)

    after = ScriptedProvider([CompletionResult(content="ok")])

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        session.tools = ToolRegistry([Slow()])
        slow = (ToolCall("c1", "no_such_tool", {}), ToolCall("c2", "slow", {}))
        provider = ScriptedProvider([asking(*slow, content="Let me see.")])
        turn = asyncio.create_task(session.turn("hello", provider))
        await asyncio.to_thread(running.wait, 30)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        released.set()
        await session.turn("more", after)

    hosted(work)
    messages = after.seen[0][0]
    assert [(message.role, message.tool_calls) for message in messages] == [
        ("user", ()),
        ("assistant", ()),
        ("user", ()),
    ]
    assert messages[1].content == "Let me see."


def test_the_parts_of_the_context_are_named_in_their_order(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """What start and prompt injected, the summary and the history are listed in the options' metadata."""
    daemon.always[START] = Answer({"inject": "start context", "memories": []})
    daemon.always[PROMPT] = Answer({"inject": "turn context", "memoryCount": 1, "sessionKnown": True})
    provider = ScriptedProvider([CompletionResult(content="hi")])

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await say(session, "before")
        await session.compaction_complete("They greeted.")
        await say(session, "between")
        await session.turn("hello", provider)

    hosted(work)
    messages, options = provider.seen[0]
    assert [part["part"] for part in options.metadata["context"]] == [
        "session-start",
        "user-prompt-submit",
        "summary",
        "history",
    ]
    assert options.metadata["context"][-1]["messages"] == 2
    places = [options.system_prompt.index(text) for text in ("start context", "turn context", "They greeted.")]
    assert places == sorted(places)
    assert [message.content for message in messages] == ["between", "Fine.", "hello"]
