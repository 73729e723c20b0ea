"""Many sessions in one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from signet_reference_harness.errors import IdentityError, StepError
from signet_reference_harness.session.host import SessionHost, agent_in
from tests.reference_harness.recording_daemon import END, START, USUAL, Answer, RecordingDaemon
from tests.reference_harness.sessions import PROJECT, say, session_of

Hosted = Callable[..., Any]


def test_switch_ends_the_old_session_first(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A session that replaces another is started after the other's end."""

    async def work(host: SessionHost) -> None:
        old, new = session_of(host), session_of(host, "s2")
        await host.start(old, "startup")
        await host.start(new, "startup", replaces=old)

    hosted(work)
    assert daemon.paths() == ["session-start", "session-end", "session-start"]
    assert daemon.bodies(END)[0]["reason"] == "session_switch"


@pytest.mark.parametrize(
    ("anew", "paths"),
    [(False, ["session-start", "session-start"]), (True, ["session-start", "session-end", "session-start"])],
)
def test_session_of_a_killed_process_is_taken_up(
    anew: bool, paths: list[str], daemon: RecordingDaemon, hosted: Hosted
) -> None:
    """It is started again as a resume, with what was said; under another key the one before is ended first."""

    async def work(host: SessionHost) -> None:
        first = session_of(host)
        await host.start(first, "startup")
        first.conversation.add_turn("hello", "hi", [])
        after = await host.continue_session("s1", anew=anew)
        assert host.session("s1") is after is not first
        assert ("user", "hello") in after.conversation.turns
        assert daemon.paths() == paths
        second = daemon.bodies(START)[1]
        assert second["source"] == "resume"
        assert (second["sessionKey"] == "key-s1") is not anew

    hosted(work)


def test_overtaken_session_is_checkpointed_before_its_end(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A session that was quiet since another of its agent began shows that it still lives, then ends."""

    async def work(host: SessionHost) -> None:
        first, second = session_of(host), session_of(host, "s2")
        await host.start(first, "startup")
        await host.start(second, "startup")
        await say(second, "hello")
        await host.end(first)
        await host.end(second)

    hosted(work)
    assert daemon.paths()[3:] == ["session-checkpoint-extract", "session-end", "session-end"]


def test_overtaken_session_is_checkpointed_before_it_is_cleared(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """Its end would stand alone as a late one where the daemon asks for patience with starts like the next."""
    daemon.answers[START] = [Answer(USUAL[START]), Answer({"error": "busy"}, 503, headers={"retry-after": "60"})]

    async def work(host: SessionHost) -> None:
        first, second = session_of(host), session_of(host, "s2")
        await host.start(first, "startup")
        await host.clear(first)
        await host.start(second, "startup")
        await host.clear(first)

    hosted(work)
    cleared = ["session-start", "session-end", "session-start"]
    assert daemon.paths() == [*cleared, "session-start", "session-checkpoint-extract", "session-end"]


def test_session_that_begins_anew_has_another_key(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """It ends as cleared, and a session of the same agent and project takes its name under a fresh key."""

    async def work(host: SessionHost) -> None:
        await host.start(session_of(host), "startup")
        anew = await host.begin_anew("s1")
        assert host.session("s1") is anew
        await host.end(anew)

    hosted(work)
    assert daemon.paths() == ["session-start", "session-end", "session-start", "session-end"]
    first, second = daemon.bodies(START)
    assert (first["sessionKey"], second["source"]) == ("key-s1", "clear")
    assert second["sessionKey"] not in ("key-s1", "")
    assert [(body["sessionKey"], body["reason"]) for body in daemon.bodies(END)] == [
        ("key-s1", "clear"),
        (second["sessionKey"], "session_shutdown"),
    ]


def test_session_of_another_agent_overtakes_nobody(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """Sessions of different agents end without a checkpoint."""

    async def work(host: SessionHost) -> None:
        first, second = session_of(host), session_of(host, "s2", agent="nova")
        await host.start(first, "startup")
        await host.start(second, "startup")
        await host.end(first)

    hosted(work)
    assert daemon.paths() == ["session-start", "session-start", "session-end"]


def test_closing_ends_every_open_session(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """No started key is left without an end."""

    async def work(host: SessionHost) -> None:
        for name in ("s1", "s2", "s3"):
            await host.start(session_of(host, name), "startup")
        await host.end(host.session("s2"))
        await host.aclose()

    hosted(work)
    assert sorted(body["sessionKey"] for body in daemon.bodies(END)) == ["key-s1", "key-s2", "key-s3"]
    assert {body["reason"] for body in daemon.bodies(END)} == {"session_shutdown"}


def test_unsent_end_goes_out_when_asked_for(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """The end of a closed session that was refused is sent once the daemon is back, and then no more."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await host.start(session, "startup")
        daemon.refuse()
        await host.end(session)
        await host.send_unsent_ends()
        daemon.listen_again()
        await host.send_unsent_ends()
        await host.send_unsent_ends()
        await host.aclose()

    hosted(work)
    assert daemon.paths() == ["session-start", "session-end"]


def test_unsent_end_of_an_overtaken_session_follows_a_checkpoint(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """What shows that a session still lives was lost with its end, and is sent again with it."""

    async def work(host: SessionHost) -> None:
        first, second = session_of(host), session_of(host, "s2")
        await host.start(first, "startup")
        await host.start(second, "startup")
        daemon.refuse()
        await host.end(first)
        daemon.listen_again()
        await host.send_unsent_ends()

    hosted(work)
    assert daemon.paths() == ["session-start", "session-start", "session-checkpoint-extract", "session-end"]


def test_closing_sends_an_unsent_end(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A session whose end was refused is ended when the host closes."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await host.start(session, "startup")
        daemon.refuse()
        await host.end(session)
        daemon.listen_again()
        await host.aclose()

    hosted(work)
    assert daemon.paths() == ["session-start", "session-end"]


def test_start_as_clear_of_an_open_session_clears_it(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """The context goes with an end for that reason before the start."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await host.start(session, "startup")
        await host.start(session, "clear")

    hosted(work)
    assert daemon.paths() == ["session-start", "session-end", "session-start"]
    assert daemon.bodies(START)[1]["source"] == "clear"


def test_keys_are_made_up_and_distinct(hosted: Hosted) -> None:
    """A session without a given key has one of its own."""

    async def work(host: SessionHost) -> set[str]:
        return {host.session_for(name, project=PROJECT, agent="a", key=None).identity.key for name in ("x", "y")}

    assert len(hosted(work)) == 2


def test_agent_comes_from_key_or_environment(hosted: Hosted) -> None:
    """Without a given agent the key's own counts, and else the configured one."""

    async def work(host: SessionHost) -> list[str]:
        keys = ("agent:nova:1", "plain")
        return [host.session_for(key, project=PROJECT, agent=None, key=key).identity.agent for key in keys]

    assert hosted(work) == ["nova", "default"]
    assert agent_in("agent:") is None


def test_names_and_keys_are_not_shared(hosted: Hosted) -> None:
    """A key of another session, a changed identity, a missing project and an unknown name are errors."""

    async def work(host: SessionHost) -> None:
        session_of(host)
        assert session_of(host) is host.session("s1")
        with pytest.raises(StepError):
            host.session_for("s2", project=PROJECT, agent=None, key="key-s1")
        with pytest.raises(StepError):
            host.session_for("s1", project="/workspace/other", agent=None, key=None)
        with pytest.raises(StepError):
            host.session_for("s3", project=None, agent=None, key=None)
        with pytest.raises(StepError):
            host.session("s9")
        with pytest.raises(IdentityError):
            host.session_for("s4", project="relative", agent=None, key=None)

    hosted(work)
