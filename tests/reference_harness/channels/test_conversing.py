"""A conversation over a channel."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from signet_reference_harness.channels import Attachment, UserTurn
from signet_reference_harness.channels.conversing import MOST_WAITING, ChannelConversation
from signet_reference_harness.messages import ToolCall
from signet_reference_harness.providers import CompletionChunk, CompletionResult, Provider, StopReason
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.session import Session
from signet_reference_harness.session.host import SessionHost
from tests.reference_harness.recording_daemon import END, PROMPT, RecordingDaemon
from tests.reference_harness.sessions import Stream, session_of, turns

from .lines import Lines

Act = Callable[[Lines, ChannelConversation, Session], Awaitable[None]]


def converse(hosted: Callable[..., Any], provider: Callable[[], Provider], act: Act) -> Lines:
    """What came by a channel while `act` spoke on it; the session is ended after that."""

    async def work(host: SessionHost) -> Lines:
        channel, session, asked = Lines(), session_of(host), provider()
        await host.start(session, "startup")
        conversing = ChannelConversation(
            channel, lambda: session, lambda turn, told: session.turn(turn.content, asked, listener=told)
        )
        talking = asyncio.create_task(conversing.run())
        await act(channel, conversing, session)
        channel.close()
        await talking
        await host.end(session)
        return channel

    channel: Lines = hosted(work)
    return channel


def test_turns_are_answered_in_order_with_their_own_metadata(hosted: Callable[..., Any]) -> None:
    """Pieces stream, then comes the whole with what belongs to the turn, and the next is answered."""

    async def act(channel: Lines, _conversing: ChannelConversation, _session: Session) -> None:
        for number, text in enumerate(("Which colour?", "And why?")):
            channel.enqueue(UserTurn(content=text, metadata={"number": number}))
        await channel.wait_for(lambda: len(channel.answers) == 2)

    results = [CompletionResult(content="Blue."), CompletionResult(content="So.")]
    channel = converse(hosted, lambda: ScriptedProvider(results), act)
    assert [(each.content, each.metadata, each.error) for each in channel.answers] == [
        ("Blue.", {"number": 0}, ""),
        ("So.", {"number": 1}, ""),
    ]
    assert "".join(each.content for each in channel.outputs if each.streaming) == "Blue.So."


def test_what_is_said_meanwhile_stands_after_the_last_result_of_a_tool(
    hosted: Callable[..., Any], daemon: RecordingDaemon
) -> None:
    """The model sees it before its next words; the transcript has it in its place; it is no turn of its own."""
    seen: list[str] = []

    class Watching(ScriptedProvider):
        async def stream(self, messages: Any, options: Any) -> Any:
            seen.append(messages[-1].content)
            async for chunk in super().stream(messages, options):
                yield chunk

    async def act(channel: Lines, _conversing: ChannelConversation, _session: Session) -> None:
        channel.enqueue(UserTurn(content="Look."))
        channel.enqueue(UserTurn(content="In the cellar."))
        await channel.wait_for(lambda: len(channel.answers) == 1)

    call = ToolCall("c1", "memory_search", {"query": "cellar"})
    looks = CompletionResult(content="", tool_calls=(call,), stop_reason=StopReason.TOOL_USE)
    channel = converse(hosted, lambda: Watching([looks, CompletionResult(content="Done.")]), act)
    assert seen[-1] == "In the cellar."
    assert [result.name for result in channel.answers[0].tool_results] == ["memory_search"]
    assert len(daemon.bodies(PROMPT)) == 1
    assert turns(daemon.bodies(END)[0]) == [("user", "Look."), ("user", "In the cellar."), ("assistant", "Done.")]


def test_an_answer_is_stopped_and_the_next_turn_is_taken(hosted: Callable[..., Any], daemon: RecordingDaemon) -> None:
    """What arrived stays said; a second stop finds nothing to stop."""

    async def act(channel: Lines, conversing: ChannelConversation, _session: Session) -> None:
        channel.enqueue(UserTurn(content="Count."))
        await channel.wait_for(lambda: any(each.content for each in channel.outputs))
        assert conversing.interrupt()
        await channel.wait_for(lambda: channel.answers)
        assert not conversing.interrupt()

    channel = converse(hosted, lambda: Stream(CompletionChunk("One, "), arrived=asyncio.Event()), act)
    assert (channel.answers[0].content, channel.answers[0].error) == ("One, ", "the answer was stopped")
    assert turns(daemon.bodies(END)[0]) == [("user", "Count."), ("assistant", "One, ")]


def test_a_channel_that_closes_stops_the_answer(hosted: Callable[..., Any], daemon: RecordingDaemon) -> None:
    """The conversation ends at once, and the session after it with what had arrived."""

    async def act(channel: Lines, _conversing: ChannelConversation, _session: Session) -> None:
        channel.enqueue(UserTurn(content="Count."))
        await channel.wait_for(lambda: any(each.content for each in channel.outputs))

    converse(hosted, lambda: Stream(CompletionChunk("One, "), arrived=asyncio.Event()), act)
    assert turns(daemon.bodies(END)[0])[-1] == ("assistant", "One, ")


def test_turns_that_cannot_be_taken_are_refused_with_the_reason(hosted: Callable[..., Any]) -> None:
    """Attachments by name, a blank message, and more than may wait; the model is asked nothing."""

    async def act(channel: Lines, _conversing: ChannelConversation, _session: Session) -> None:
        files = (Attachment(name="plan.pdf"), Attachment(name=""))
        channel.enqueue(UserTurn(content="Read this.", attachments=files, metadata={"n": 1}))
        channel.enqueue(UserTurn(content=" \n"))
        await channel.wait_for(lambda: len(channel.answers) == 2)

    blank, attached = converse(hosted, lambda: ScriptedProvider([]), act).answers[::-1]
    assert attached.error == (
        "attachments are not supported, so this was not sent: plan.pdf, a file without a name; "
        "put the text into the message"
    )
    assert attached.metadata == {"n": 1}
    assert blank.error == "the message is blank"


def test_only_so_many_turns_wait(hosted: Callable[..., Any]) -> None:
    """The one that is too much is refused; the others are answered later."""

    async def act(channel: Lines, _conversing: ChannelConversation, _session: Session) -> None:
        for _ in range(MOST_WAITING + 2):
            channel.enqueue(UserTurn(content="Count."))
        await channel.wait_for(lambda: any(each.error for each in channel.outputs))

    channel = converse(hosted, lambda: Stream(CompletionChunk("One, "), arrived=asyncio.Event()), act)
    assert "wait already" in next(each.error for each in channel.outputs if each.error)


def test_who_asks_late_is_told_of_the_end_too() -> None:
    """A handler is called once when the channel closes, and at once where it is closed already."""

    async def ask() -> list[str]:
        told: list[str] = []
        channel = Lines()
        channel.on_close(lambda: told.append("early"))
        channel.close()
        channel.close()
        channel.on_close(lambda: told.append("late"))
        return told

    assert asyncio.run(ask()) == ["early", "late"]
