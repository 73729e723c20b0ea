"""Compactions: both halves are told, once each, before whatever follows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from signet_reference_harness.host import SessionHost

from .recording_daemon import COMPLETE, PRE, Answer, RecordingDaemon
from .sessions import IDENTITY, PROJECT, say, session_of

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
