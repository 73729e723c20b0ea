"""Compactions: both halves are told, once each, before whatever follows them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from signet_conformance.contracts import EventRecorder
from signet_reference_harness.providers import CompletionResult, StopReason, Usage
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.session.context import SessionCompaction
from signet_reference_harness.session.events import Compacted
from signet_reference_harness.session.host import SessionHost
from signet_reference_harness.session.turn import TurnResult
from tests.reference_harness.recording_daemon import COMPLETE, PRE, Answer, RecordingDaemon
from tests.reference_harness.sessions import IDENTITY, PROJECT, Stream, say, session_of

Hosted = Callable[..., Any]


def test_compaction_sends_both_halves(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """Pre-compaction tells the number of messages; compaction-complete the summary and the project."""

    async def work(host: SessionHost) -> str:
        session = session_of(host)
        await session.start()
        await say(session, "hello", "hi")
        before = await session.pre_compaction()
        await session.compaction_complete("They greeted.")
        return before.summary_prompt

    assert hosted(work) == "Summarise."
    assert daemon.bodies(PRE) == [{**IDENTITY, "messageCount": 2}]
    assert daemon.bodies(COMPLETE) == [{**IDENTITY, "project": PROJECT, "summary": "They greeted."}]


@pytest.mark.parametrize("following", ["prompt", "end", "clear", "pre_compaction"])
def test_compaction_left_open_is_completed_before_the_next_hook(
    daemon: RecordingDaemon, hosted: Hosted, following: str
) -> None:
    """A pre-compaction without a summary from the host is completed with one of the harness's own."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await say(session, "hello", "hi")
        await session.pre_compaction()
        if following == "prompt":
            await say(session, "next")
        else:
            await getattr(session, following)()

    hosted(work)
    after = daemon.paths()[daemon.paths().index("pre-compaction") + 1 :]
    assert after[0] == "compaction-complete"
    assert daemon.bodies(COMPLETE)[0]["summary"].strip()


def test_complete_alone_is_preceded_by_a_pre(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """Each compaction-complete has a pre-compaction of its own."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await session.compaction_complete("one")
        await session.compaction_complete("two")

    hosted(work)
    assert daemon.paths()[1:] == ["pre-compaction", "compaction-complete"] * 2


@pytest.mark.parametrize("answer", [Answer({"error": "x"}, 500), Answer(fault="reset"), Answer(text="<html>")])
def test_complete_is_never_repeated(daemon: RecordingDaemon, hosted: Hosted, answer: Answer) -> None:
    """A compaction-complete that may have arrived is sent once, however it was answered."""
    daemon.always[COMPLETE] = answer

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await session.pre_compaction()
        await session.compaction_complete("sum")
        await say(session, "next")
        await session.end()

    hosted(work)
    assert daemon.paths().count("compaction-complete") == 1
    assert daemon.paths()[-2:] == ["user-prompt-submit", "session-end"]


def test_compaction_during_an_outage_is_told_before_the_next_prompt(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A summary that could not be sent is sent once the daemon is back, before anything else."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await session.pre_compaction()
        daemon.refuse()
        reply = await session.compaction_complete("sum")
        assert not reply.accepted
        daemon.listen_again()
        await say(session, "next")

    hosted(work)
    assert daemon.paths()[1:] == ["pre-compaction", "compaction-complete", "user-prompt-submit"]


@pytest.mark.parametrize("following", ["clear", "end"])
def test_compaction_during_an_outage_is_told_before_the_end_that_fell_into_it(
    daemon: RecordingDaemon, hosted: Hosted, following: str
) -> None:
    """When summary and end were both refused, they are told in their order before the session is started again."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await session.pre_compaction()
        daemon.refuse()
        await session.compaction_complete("sum")
        await getattr(session, following)()
        daemon.listen_again()
        if following == "end":
            await session.start("resume")
        await say(session, "next")

    hosted(work)
    assert daemon.paths()[1:] == [
        "pre-compaction",
        "compaction-complete",
        "session-end",
        "session-start",
        "user-prompt-submit",
    ]
    assert daemon.bodies(COMPLETE)[0]["summary"] == "sum"


def test_the_model_writes_the_summary_as_the_daemon_asks(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """Guidelines of the pre-compaction reach the model after the conversation; its words are told, and stand for it."""
    daemon.always[PRE] = Answer({"summaryPrompt": "Keep decisions.", "guidelines": "At most ten lines."})
    writer = ScriptedProvider([CompletionResult(content="Port 50051 was chosen.", usage=Usage(90, 9))])
    after = ScriptedProvider([CompletionResult(content="ok")])

    async def work(host: SessionHost) -> SessionCompaction:
        session = session_of(host)
        await session.start()
        await say(session, "which port?", "50051")
        done = await session.compact(writer)
        await session.turn("go on", after)
        return done

    done: SessionCompaction = hosted(work)
    assert (done.by_model, done.summary, done.usage) == (True, "Port 50051 was chosen.", Usage(90, 9))
    messages, options = writer.seen[0]
    assert [message.content for message in messages[:2]] == ["which port?", "50051"]
    assert "Keep decisions.\n\nAt most ten lines." in messages[-1].content
    assert options.tool_choice == "none"
    assert daemon.bodies(COMPLETE)[0]["summary"] == "Port 50051 was chosen."
    (prompt,), options = after.seen[0]
    assert prompt.content == "go on"
    assert '<system-reminder kind="summary" origin="model">\nPort 50051 was chosen.' in options.system_prompt


@pytest.mark.parametrize(
    "script",
    [
        [],
        [CompletionResult(content=" ")],
        [CompletionResult(content="half", stop_reason=StopReason.LENGTH)],
        [CompletionResult(content="no", stop_reason=StopReason.REFUSAL)],
    ],
)
def test_a_summary_that_the_model_fails_is_made_without_it(
    daemon: RecordingDaemon, hosted: Hosted, script: list[CompletionResult]
) -> None:
    """What the user asked stands for the conversation then, and the daemon is told that."""

    async def work(host: SessionHost) -> SessionCompaction:
        session = session_of(host)
        await session.start()
        await say(session, "which port?", "50051")
        return await session.compact(ScriptedProvider(script))

    done: SessionCompaction = hosted(work)
    assert (done.by_model, "which port?" in done.summary) == (False, True)
    assert daemon.bodies(COMPLETE)[0]["summary"] == done.summary


def test_a_context_over_its_budget_is_compacted_before_the_prompt(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """Once the provider counted more than the budget, the next turn begins with a compaction and counts its tokens."""
    full = CompletionResult(content="50051", usage=Usage(990, 20))
    provider = ScriptedProvider(
        [
            full,
            CompletionResult(content="Summary.", usage=Usage(5, 5)),
            CompletionResult(content="ok", usage=Usage(1, 1)),
        ]
    )
    told = EventRecorder()

    async def work(host: SessionHost) -> tuple[TurnResult, TurnResult]:
        session = session_of(host)
        session.context_budget = 1_000
        await session.start()
        return await session.turn("a", provider), await session.turn("b", provider, listener=told)

    first, second = hosted(work)
    assert (first.compacted, second.compacted, second.usage) == (False, True, Usage(6, 6))
    assert [event for event in told.events if isinstance(event, Compacted)] == [Compacted("Summary.")]
    assert daemon.paths() == [
        "session-start",
        "user-prompt-submit",
        "pre-compaction",
        "compaction-complete",
        "user-prompt-submit",
    ]


def test_a_context_that_the_provider_found_too_long_is_compacted(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """After context_limit the next turn begins with a compaction, whatever the budget."""
    provider = ScriptedProvider(
        [
            CompletionResult(content="", stop_reason=StopReason.CONTEXT_LIMIT),
            CompletionResult(content="Summary."),
            CompletionResult(content="ok"),
        ]
    )

    async def work(host: SessionHost) -> list[TurnResult]:
        session = session_of(host)
        await session.start()
        await say(session, "a")
        return [await session.turn("b", provider), await session.turn("b", provider)]

    first, second = hosted(work)
    assert (first.outcome, second.compacted, second.reply) == (StopReason.CONTEXT_LIMIT, True, "ok")
    assert daemon.paths().count("compaction-complete") == 1


def test_a_compaction_that_was_cancelled_is_completed_at_the_end(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A pre-compaction that was told is followed by its other half before the session ends."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await say(session, "a")
        arrived = asyncio.Event()
        compacting = asyncio.create_task(session.compact(Stream(arrived=arrived)))
        await arrived.wait()
        compacting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await compacting
        await session.end()

    hosted(work)
    assert daemon.paths()[-3:] == ["pre-compaction", "compaction-complete", "session-end"]
