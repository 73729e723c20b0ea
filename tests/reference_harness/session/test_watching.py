"""A turn that is watched: a task beside its reader, whom it does not wait for and does not outlive."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from signet_reference_harness.errors import IdentityError
from signet_reference_harness.messages import Message, Reminder, ToolCall
from signet_reference_harness.providers import CompletionChunk, CompletionResult, StopReason
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.session.events import (
    Event,
    Notice,
    RunFinished,
    RunStarted,
    StreamOverflow,
    TextPiece,
    ToolReturned,
    as_json,
)
from signet_reference_harness.session.host import SessionHost
from signet_reference_harness.session.turn import TurnListener, TurnResult
from signet_reference_harness.session.watching import watch
from tests.reference_harness.sessions import Stream, session_of

SCHEMA = Path(__file__).resolve().parents[3] / "schemas" / "harness" / "signet-run-event-1.schema.json"
CALL = ToolCall("c1", "memory_search", {"query": "port"})
CALLING = CompletionResult(content="Let me see.", tool_calls=(CALL,), stop_reason=StopReason.TOOL_USE)
Hosted = Callable[..., Any]


def collected(hosted: Hosted, provider: Any) -> list[Event]:
    """The events of one turn."""

    async def work(host: SessionHost) -> list[Event]:
        session = session_of(host)
        await session.start()
        async with watch(session, lambda told: session.turn("hello", provider, listener=told)) as stream:
            return [event async for event in stream]

    events: list[Event] = hosted(work)
    return events


def test_a_turn_is_a_stream_from_its_start_to_its_end(hosted: Hosted) -> None:
    """Start, text, call, result, text, and what the run came to; each is a line of the published schema."""
    events = collected(hosted, ScriptedProvider([CALLING, CompletionResult(content="5.")]))
    said = ["text"] * 3
    kinds = ["run.started", *said, "tool_call", "tool_result", "text", "run.finished"]
    assert [as_json(event)["type"] for event in events] == kinds
    first, last = events[0], events[-1]
    assert isinstance(first, RunStarted)
    assert isinstance(last, RunFinished)
    assert (first.run, last.reply) == (last.summary.run, "5.")
    assert (last.summary.status, last.summary.rounds) == ("done", 2)
    schema = jsonschema_rs.validator_for(json.loads(SCHEMA.read_text("utf-8")))
    assert all(schema.is_valid(json.loads(json.dumps(as_json(event)))) for event in events)


def test_what_the_harness_has_to_say_to_the_person_is_in_the_stream(hosted: Hosted) -> None:
    """A reminder that a person may see is an event of its own; what a person typed is not told back."""
    notice = Reminder(
        kind="notice",
        origin="harness",
        visibility="both",
        text="A server of tools has ended.",
    )

    async def work(host: SessionHost) -> list[Event]:
        session = session_of(host)
        session.steered = lambda: [Message("user", "Hurry.", reminders=(notice,))]
        provider = ScriptedProvider([CALLING, CompletionResult(content="5.")])
        async with watch(session, lambda told: session.turn("hello", provider, listener=told)) as stream:
            return [event async for event in stream]

    events = hosted(work)
    assert [event for event in events if isinstance(event, Notice)] == [Notice("A server of tools has ended.")]


def test_leaving_the_stream_cancels_the_run(hosted: Hosted) -> None:
    """The block is left at the first word: the provider's stream is closed, and the turn keeps what had arrived."""
    provider = Stream(CompletionChunk("One "), arrived=asyncio.Event())

    async def work(host: SessionHost) -> TurnResult | None:
        session = session_of(host)
        await session.start()
        async with watch(session, lambda told: session.turn("hello", provider, listener=told)) as stream:
            async for event in stream:
                if isinstance(event, TextPiece):
                    break
        return session.cut_turn

    cut = hosted(work)
    assert provider.closed
    assert (cut.reply, cut.outcome, cut.rounds) == ("One ", StopReason.CANCELLED, 1)


def test_a_run_that_is_cancelled_says_so_in_its_last_event(hosted: Hosted) -> None:
    """Who watches sees the stream to its end, with what had arrived of the reply."""
    provider = Stream(CompletionChunk("One "), arrived=asyncio.Event())

    async def work(host: SessionHost) -> Event:
        session = session_of(host)
        await session.start()
        async with watch(session, lambda told: session.turn("hello", provider, listener=told)) as stream:
            async for event in stream:
                if isinstance(event, TextPiece):
                    stream.cancel()
        return event

    last = hosted(work)
    assert isinstance(last, RunFinished)
    assert (last.reply, last.summary.status, last.summary.outcome) == ("One ", "cancelled", StopReason.CANCELLED)


def test_a_reader_that_reads_nothing_does_not_hold_the_run_up(hosted: Hosted) -> None:
    """The turn is over before its first event is read; the reader is told what it lacks, and reads the end."""
    words = 10_000

    async def work(host: SessionHost) -> list[Event]:
        session = session_of(host)
        await session.start()
        over = asyncio.Event()

        async def turn(told: TurnListener) -> TurnResult:
            said = ScriptedProvider([CALLING, CompletionResult(content="word " * words)])
            result = await session.turn("hello", said, listener=told)
            over.set()
            return result

        async with watch(session, turn) as stream:
            await over.wait()
            return [event async for event in stream]

    events = hosted(work)
    dropped = sum(event.dropped for event in events if isinstance(event, StreamOverflow))
    assert dropped + sum(isinstance(event, TextPiece) for event in events) == words + 3
    assert any(isinstance(event, ToolReturned) for event in events)
    assert isinstance(events[-1], RunFinished)


def test_what_the_turn_raises_reaches_who_watches(hosted: Hosted) -> None:
    """The stream ends with a failed run, then the error comes out of the block."""
    seen: list[Event] = []

    async def work(host: SessionHost) -> None:
        async def turn(_told: TurnListener) -> TurnResult:
            raise IdentityError("no key")

        async with watch(session_of(host), turn) as stream:
            seen.extend([event async for event in stream])

    with pytest.raises(IdentityError, match="no key"):
        hosted(work)
    assert [as_json(event)["type"] for event in seen] == ["run.started", "run.finished"]
