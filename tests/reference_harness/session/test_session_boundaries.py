"""Where sessions begin, end, are cleared and resumed: which starts and ends are sent, and when again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from signet_reference_harness.daemon_client.reply import FailureClass
from signet_reference_harness.providers import CompletionResult
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.session.host import SessionHost
from tests.reference_harness.recording_daemon import CHECKPOINT, END, PROMPT, START, Answer, RecordingDaemon
from tests.reference_harness.sessions import say, session_of, turns

Hosted = Callable[..., Any]


def test_end_of_a_session_without_turns_has_a_transcript_without_turns(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """The transcript is never blank, and never pretends a turn."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await session.end()

    hosted(work)
    assert [role for role, _ in turns(daemon.bodies(END)[0])] == ["system"]


def test_failed_end_is_repeated_once(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """An end that was not accepted is sent again with the same body when the host closes."""
    daemon.answers[END] = [Answer({"error": "x"}, 500)]

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await session.end()
        await host.aclose()
        await host.aclose()

    hosted(work)
    first, second = daemon.bodies(END)
    assert first == second


@pytest.mark.parametrize("following", ["end", "clear"])
def test_start_that_a_clear_announced_comes_before_the_next_end(
    daemon: RecordingDaemon, hosted: Hosted, following: str
) -> None:
    """When a clear lost its end and could not send its start, the next end waits for that start."""
    daemon.answers[END] = [Answer(fault="reset")]
    daemon.answers["/health"] = [Answer({"status": "healthy"}), Answer(fault="reset")]

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await session.clear()
        assert daemon.paths() == ["session-start", "session-end"]
        await getattr(session, following)()

    hosted(work)
    expected = ["session-start", "session-end", "session-start", "session-end"]
    assert daemon.paths() == expected + (["session-start"] if following == "clear" else [])
    assert daemon.bodies(START)[1]["source"] == "clear"


def test_no_end_follows_a_clear_whose_start_never_went_out(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """While the daemon stays away after a lost clear, an end is held back."""
    daemon.answers[END] = [Answer(fault="reset")]

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        daemon.always["/health"] = Answer(fault="reset")
        await session.clear()
        assert (await session.end()).failure is FailureClass.HELD_BACK

    hosted(work)
    assert daemon.paths() == ["session-start", "session-end"]


def test_accepted_end_is_not_repeated(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """Closing a host sends nothing for a session whose end was accepted, nor for a failed clear."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        held = [await session.end(), await session.end()]
        assert held[1].failure is FailureClass.HELD_BACK
        await host.aclose()

    hosted(work)
    assert daemon.paths() == ["session-start", "session-end"]


def test_reason_that_is_no_boundary_is_sent_as_shutdown(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """An end is always a boundary, and says so."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await session.end("user typed exit")

    hosted(work)
    assert daemon.bodies(END)[0]["reason"] == "session_shutdown"


def test_resume_starts_the_key_after_its_end(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A resumed session starts with source resume, and its next transcript continues the first."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await say(session, "one", "1")
        await session.end()
        await session.start("resume")
        await say(session, "two", "2")
        await session.end()

    hosted(work)
    assert [body["source"] for body in daemon.bodies(START)] == ["startup", "resume"]
    first, second = (turns(body) for body in daemon.bodies(END))
    assert second[: len(first)] == first


def test_clear_ends_and_starts_the_same_key_as_clear(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A clear is an end with reason clear, then a start with source clear; the model forgets."""

    async def work(host: SessionHost) -> ScriptedProvider:
        session = session_of(host)
        await session.start()
        await say(session, "hello", "hi")
        await session.clear()
        provider = ScriptedProvider([CompletionResult(content="anew")])
        await session.turn("again", provider)
        return provider

    provider = hosted(work)
    assert daemon.paths() == [
        "session-start",
        "user-prompt-submit",
        "session-end",
        "session-start",
        "user-prompt-submit",
    ]
    assert daemon.bodies(END)[0]["reason"] == "clear"
    assert daemon.bodies(START)[1]["source"] == "clear"
    assert {body["sessionKey"] for body in daemon.bodies(START)} == {"key-s1"}
    assert "lastAssistantMessage" not in daemon.bodies(PROMPT)[1]
    assert [message.content for message in provider.seen[0][0]] == ["again"]


def test_second_start_of_an_open_session_sends_nothing(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """An open session is not started twice."""

    async def work(host: SessionHost) -> tuple[bool, bool]:
        session = session_of(host)
        return await session.start(), await session.start("resume")

    assert hosted(work) == (True, False)
    assert daemon.paths() == ["session-start"]


def test_claimed_key_gets_no_further_hook(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """After 409 on the start the session goes on without the daemon, even over an end and a resume."""
    daemon.always[START] = Answer({"error": "session claimed by legacy path"}, 409)

    async def work(host: SessionHost) -> str:
        session = session_of(host)
        await session.start()
        result = await say(session, "hello", "hi")
        await session.compaction_complete("sum")
        await session.use_tool("memory_store", {"content": "note"})
        await session.end()
        await session.start("resume")
        await session.end()
        return result.reply

    assert hosted(work) == "hi"
    assert daemon.paths() == ["session-start"]


def test_checkpoint_carries_the_transcript(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A checkpoint hands over the turns so far, inside the session."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await say(session, "hello", "hi")
        await session.checkpoint()

    hosted(work)
    assert turns(daemon.bodies(CHECKPOINT)[0]) == [("user", "hello"), ("assistant", "hi")]


def test_end_that_never_went_out_is_sent_before_the_session_is_started_again(
    daemon: RecordingDaemon, hosted: Hosted
) -> None:
    """To the daemon a session whose end was refused goes on: a resume ends it first, with the end's own reason."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        daemon.refuse()
        await session.end("session.deleted")
        daemon.listen_again()
        await session.start("resume")
        await session.end()

    hosted(work)
    assert daemon.paths() == ["session-start", "session-end", "session-start", "session-end"]
    assert [body["reason"] for body in daemon.bodies(END)] == ["session.deleted", "session_shutdown"]


def test_session_resumed_in_the_outage_of_its_end_is_ended_once(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """As long as neither end nor start went out, one end covers both, and its transcript holds all turns."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        daemon.refuse()
        await session.end()
        await session.start("resume")
        await say(session, "hello", "hi")
        daemon.listen_again()
        await session.end("session.deleted")

    hosted(work)
    assert daemon.paths() == ["session-start", "session-end"]
    (end,) = daemon.bodies(END)
    assert end["reason"] == "session.deleted"
    assert [turn for turn in turns(end) if turn[0] != "system"] == [("user", "hello"), ("assistant", "hi")]


def test_end_after_a_resume_differs_from_the_end_that_was_refused(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A daemon that answers 401 to an end is told of the next one, though no turn lies between."""
    daemon.answers[END] = [Answer({"error": "unauthorised"}, 401)]

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await session.end()
        await session.start("resume")
        await session.end()

    hosted(work)
    assert daemon.paths() == ["session-start", "session-end", "session-start", "session-end"]
    first, second = daemon.bodies(END)
    assert first != second


@pytest.mark.parametrize("again", ["resume", "clear"])
def test_start_that_was_refused_is_sent_once_for_each_time_the_user_asks(
    daemon: RecordingDaemon, hosted: Hosted, again: str
) -> None:
    """Two equal steps are two requests; the turns after them are told, and repeat no start."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        daemon.always[START] = Answer({"error": "unauthorised"}, 401)
        for _ in range(2):
            if again == "clear":
                await session.clear()
            else:
                await session.end()
                await session.start("resume")
        del daemon.always[START]
        assert (await say(session, "hello", "hi")).reply == "hi"
        await session.end()

    hosted(work)
    assert daemon.paths() == [
        *["session-start", "session-end"] * 2,
        "session-start",
        "user-prompt-submit",
        "session-end",
    ]


def test_start_that_only_an_end_needs_is_not_repeated(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A session that starts at its prompts sends a start before the end of a clear; refused, it is held back later."""
    accepted = list[Mapping[str, Any]]()

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        session.starts_at_prompt = True
        await session.start()
        await session.clear()
        assert (await say(session, "hello", "hi")).reply == "hi"
        await session.clear()
        accepted.extend(daemon.bodies(START))
        daemon.always[START] = Answer({"error": "unauthorised"}, 401)
        await session.clear()
        await session.end()

    hosted(work)
    assert len(daemon.bodies(START)) == len(accepted) + 1


def test_an_end_that_tells_more_than_the_refused_one_is_sent_to_an_old_daemon_too(
    daemon: RecordingDaemon, hosted: Hosted
) -> None:
    """A daemon that takes transcripts as files gets another file for another transcript, not the request it refused."""
    daemon.always["/health"] = Answer({"status": "healthy", "version": "0.58.1"})
    daemon.answers[END] = [Answer({"error": "authentication required"}, 401)]

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await session.end()
        await session.start("resume")
        await session.end()

    hosted(work)
    refused, accepted = daemon.bodies(END)
    assert refused["transcriptPath"] != accepted["transcriptPath"]
