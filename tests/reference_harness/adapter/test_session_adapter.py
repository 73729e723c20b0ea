"""The adapter of a harness that keeps its own conversations: what the daemon is told, however it is called."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from signet_conformance.contracts import DaemonTransport
from signet_reference_harness import adapter as session_adapter
from signet_reference_harness.adapter import SessionAdapter, create_adapter
from signet_reference_harness.daemon_client.adapter import (
    CompactionCompleteParams,
    PreCompactionParams,
    PromptSubmitParams,
    SessionEndParams,
    SessionStartParams,
)
from signet_reference_harness.daemon_client.reply import FailureClass
from signet_reference_harness.errors import HarnessError, StepError
from signet_reference_harness.identity import SessionIdentity
from tests.reference_harness.recording_daemon import CHECKPOINT, COMPLETE, END, PRE, PROMPT, START, Answer
from tests.reference_harness.sessions import PATIENT

PROJECT = "/srv/acme"
Work = Callable[[SessionAdapter, SessionIdentity], Awaitable[Any]]


@pytest.fixture
def daemon() -> DaemonTransport:
    """A daemon without a socket."""
    return DaemonTransport()


def adapted(daemon: DaemonTransport, work: Work, **given: Any) -> Any:
    """What `work` gives with an adapter and a session of it; the adapter is closed."""

    async def run() -> Any:
        async with create_adapter("acme-shell", agent="atlas", environ=PATIENT, transport=daemon, **given) as adapter:
            return await work(adapter, adapter.session(PROJECT, key="k-1"))

    return asyncio.run(run())


def prompt(session: SessionIdentity, text: str, last: str | None = None) -> PromptSubmitParams:
    """A prompt of a session."""
    return PromptSubmitParams(session=session, user_message=text, last_assistant_message=last)


def test_whole_session_is_told_as_the_caller_s(daemon: DaemonTransport) -> None:
    """Each event is one hook, which carries the caller's name, path and agent, and the transcript as it was given."""

    async def work(adapter: SessionAdapter, session: SessionIdentity) -> None:
        await adapter.on_session_start(SessionStartParams(session=session))
        await adapter.on_user_prompt_submit(prompt(session, "hello"))
        asked = await adapter.on_pre_compaction(PreCompactionParams(session=session, message_count=2))
        assert asked.summary_prompt == "Summarise."
        await adapter.on_compaction_complete(CompactionCompleteParams(session=session, summary="Greetings."))
        await adapter.on_user_prompt_submit(prompt(session, "and now?", "hi"))
        await adapter.on_session_end(SessionEndParams(session=session, transcript="User: hello\nAssistant: hi"))

    adapted(daemon, work, runtime_path="legacy")
    told = [request for request in daemon.requests if request.path != "/health"]
    assert [request.path for request in told] == [START, PROMPT, PRE, COMPLETE, PROMPT, END]
    named = {"harness": "acme-shell", "sessionKey": "k-1", "agentId": "atlas", "runtimePath": "legacy"}
    assert all(named.items() <= request.body.items() for request in told)
    assert {request.headers["x-signet-runtime-path"] for request in told} == {"legacy"}
    assert (told[2].body["messageCount"], told[4].body["lastAssistantMessage"]) == (2, "hi")
    assert told[5].body["transcript"] == "User: hello\nAssistant: hi"
    assert told[5].body["reason"] == "session_shutdown"


def test_lost_start_is_told_with_the_next_prompt(daemon: DaemonTransport) -> None:
    """What the start then brings stands in front of the turn's own context."""
    daemon.always[START] = Answer({"inject": "From the start.", "memories": []})
    daemon.always[PROMPT] = Answer({"inject": "For the turn.", "memoryCount": 1, "sessionKnown": True})

    async def work(adapter: SessionAdapter, session: SessionIdentity) -> str:
        daemon.away = True
        started = await adapter.on_session_start(SessionStartParams(session=session))
        assert started.reply.failure is FailureClass.OFFLINE
        daemon.away = False
        return (await adapter.on_user_prompt_submit(prompt(session, "hello"))).inject

    assert adapted(daemon, work) == "From the start.\n\nFor the turn."
    assert daemon.paths() == ["session-start", "user-prompt-submit", "session-end"]


def test_what_the_user_says_twice_is_told_twice(daemon: DaemonTransport) -> None:
    """Each call is a turn of its own, also of the same words to a reply that nobody named."""

    async def work(adapter: SessionAdapter, session: SessionIdentity) -> None:
        await adapter.on_session_start(SessionStartParams(session=session))
        await adapter.on_user_prompt_submit(prompt(session, "continue"))
        await adapter.on_user_prompt_submit(prompt(session, "continue"))

    adapted(daemon, work)
    assert [body["userMessage"] for body in daemon.bodies(PROMPT)] == ["continue", "continue"]


def test_calls_that_would_break_the_contract_are_held_back(daemon: DaemonTransport) -> None:
    """A second start, a second end and a compaction after the end are not made, and say why."""

    async def work(adapter: SessionAdapter, session: SessionIdentity) -> list[tuple[FailureClass | None, str]]:
        end = SessionEndParams(session=session, transcript="User: hello")
        await adapter.on_session_start(SessionStartParams(session=session))
        again = await adapter.on_session_start(SessionStartParams(session=session, source="resume"))
        await adapter.on_session_end(end)
        late = await adapter.on_pre_compaction(PreCompactionParams(session=session, message_count=1))
        replies = [again.reply, await adapter.on_session_end(end), late.reply]
        return [(reply.failure, reply.detail) for reply in replies]

    assert adapted(daemon, work) == [
        (FailureClass.HELD_BACK, "the session is open already"),
        (FailureClass.HELD_BACK, "the session is not open"),
        (FailureClass.HELD_BACK, "the daemon does not hold this session"),
    ]
    assert daemon.paths() == ["session-start", "session-end"]


@pytest.mark.parametrize("call", ["prompt", "end"])
def test_session_that_was_never_started_here_is_opened(daemon: DaemonTransport, call: str) -> None:
    """A harness that goes on after the adapter was started anew gets its memory, and its end is told."""

    async def work(adapter: SessionAdapter, session: SessionIdentity) -> None:
        if call == "prompt":
            await adapter.on_user_prompt_submit(prompt(session, "hello"))
        else:
            await adapter.on_session_end(SessionEndParams(session=session, transcript="User: hello"))

    adapted(daemon, work)
    assert [body["source"] for body in daemon.bodies(START)] == ["resume"]
    assert daemon.paths()[-1] == "session-end"


def test_closing_ends_what_is_open(daemon: DaemonTransport) -> None:
    """The transcript of an end that the harness did not send is what the user asked and what it said of the replies."""

    async def work(adapter: SessionAdapter, session: SessionIdentity) -> None:
        await adapter.on_session_start(SessionStartParams(session=session))
        await adapter.on_user_prompt_submit(prompt(session, "hello"))
        await adapter.on_user_prompt_submit(prompt(session, "more", "hi"))

    adapted(daemon, work)
    (end,) = daemon.bodies(END)
    lines = [tuple(json.loads(line).values()) for line in end["transcript"].splitlines()]
    assert lines == [("user", "hello"), ("assistant", "hi"), ("user", "more")]


def test_end_that_was_lost_is_told_before_the_next_session(daemon: DaemonTransport) -> None:
    """With its transcript; the session that follows starts after it."""

    async def work(adapter: SessionAdapter, session: SessionIdentity) -> None:
        await adapter.on_session_start(SessionStartParams(session=session))
        daemon.away = True
        lost = await adapter.on_session_end(SessionEndParams(session=session, transcript="User: hello"))
        assert lost.failure is FailureClass.OFFLINE
        daemon.away = False
        await adapter.on_session_start(SessionStartParams(session=adapter.session(PROJECT, key="k-2")))

    adapted(daemon, work)
    assert daemon.paths() == ["session-start", "session-end", "session-start", "session-end"]
    assert [body["sessionKey"] for body in daemon.bodies(END)] == ["k-1", "k-2"]


def test_a_daemon_that_is_away_is_asked_once_for_all_lost_ends(daemon: DaemonTransport) -> None:
    """A call does not wait for each of them; all are told when the daemon is back."""

    async def work(adapter: SessionAdapter, session: SessionIdentity) -> int:
        others = [adapter.session(PROJECT, key=f"lost-{number}") for number in range(5)]
        for other in others:
            await adapter.on_session_start(SessionStartParams(session=other))
        daemon.away = True
        for other in others:
            await adapter.on_session_end(SessionEndParams(session=other, transcript="User: hello"))
        before = daemon.refused
        await adapter.on_session_start(SessionStartParams(session=session))
        refused, daemon.away = daemon.refused - before, False
        return refused

    assert adapted(daemon, work) == 2
    assert [body["sessionKey"] for body in daemon.bodies(END)][:5] == [f"lost-{number}" for number in range(5)]


def test_sessions_that_are_over_are_forgotten(daemon: DaemonTransport, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number of them; what the daemon still has to hear of one is kept, and open ones are."""
    monkeypatch.setattr(session_adapter, "ENDED_KEPT", 1)

    async def work(adapter: SessionAdapter, first: SessionIdentity) -> list[str]:
        await adapter.on_session_start(SessionStartParams(session=first))
        for number in range(3):
            over = adapter.session(PROJECT, key=f"over-{number}")
            await adapter.on_session_start(SessionStartParams(session=over))
            await adapter.on_session_end(SessionEndParams(session=over, transcript="User: hello"))
        # Another session was started since its last hook: it shows its life, though that one is forgotten.
        await adapter.on_session_end(SessionEndParams(session=first, transcript="User: bye"))
        return list(adapter._known)

    assert adapted(daemon, work) == ["k-1"]
    assert [body["sessionKey"] for body in daemon.bodies(CHECKPOINT)] == ["k-1"]


def test_one_key_is_one_session(daemon: DaemonTransport) -> None:
    """The key of a session cannot name another project."""

    async def work(adapter: SessionAdapter, session: SessionIdentity) -> None:
        await adapter.on_session_start(SessionStartParams(session=session))
        other = adapter.session("/srv/other", key="k-1")
        with pytest.raises(StepError, match="has the project '/srv/acme', not '/srv/other'"):
            await adapter.on_user_prompt_submit(prompt(other, "hello"))

    adapted(daemon, work)


@pytest.mark.parametrize(
    ("harness", "given", "message"),
    [
        ("", {}, "the harness's name is ''"),
        ("acme", {"agent": "acme"}, "agent 'acme' is the name of the harness"),
        ("default", {}, "agent 'default' is the name of the harness"),
        ("acme", {"runtime_path": "hooks"}, "the runtime path is 'hooks'"),
        ("acme", {"daemon_url": "ftp://x"}, "the daemon's address is not an http or https URL: 'ftp://x'"),
        ("acme", {"daemon_url": "http://me:hidden@x"}, "the daemon's address holds credentials"),
    ],
)
def test_what_the_caller_gives_is_checked_at_once(harness: str, given: dict[str, Any], message: str) -> None:
    """An adapter that could not conform is not made."""
    with pytest.raises(HarnessError) as raised:
        create_adapter(harness, environ={}, **given)
    assert raised.value.message == message
    assert raised.value.remedy
