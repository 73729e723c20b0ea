"""The client on the wire: failing open in each class of failure, probing, credentials, deadlines, restraint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from signet_reference_harness.config import HARNESS_NAME, HarnessConfig
from signet_reference_harness.daemon_client.reply import FailureClass, Reply
from signet_reference_harness.errors import IdentityError
from signet_reference_harness.session import Session
from signet_reference_harness.session.host import SessionHost
from signet_reference_harness.session.turn import TurnResult
from tests.reference_harness.recording_daemon import COMPLETE, END, PRE, PROMPT, RECALL, START, Answer, RecordingDaemon
from tests.reference_harness.sessions import PROJECT, say, session_of

Hosted = Callable[..., Any]
SHORT = {"health": 5.0, "session-start": 0.15, "user-prompt-submit": 0.15, "session-end": 0.15}

FAULTS = {
    "reset": (Answer(fault="reset"), FailureClass.OFFLINE),
    "hang": (Answer(fault="hang"), FailureClass.TIMEOUT),
    "drip": (Answer(fault="drip"), FailureClass.TIMEOUT),
    "cut": (Answer(fault="cut"), FailureClass.BODY_READ),
    "500": (Answer({"error": "Hook execution failed"}, 500), FailureClass.HTTP),
    "503": (Answer({"error": "shutting down"}, 503), FailureClass.HTTP),
    "404 text": (Answer(text="404 Not Found", status=404), FailureClass.HTTP),
    "redirect": (Answer({}, 307, headers={"location": "/elsewhere"}), FailureClass.HTTP),
    "html": (Answer(text="<html>"), FailureClass.INVALID_JSON),
    "empty": (Answer(text=""), FailureClass.INVALID_JSON),
    "deep": (Answer(text="[" * 100_000), FailureClass.INVALID_JSON),
    "null": (Answer(None), FailureClass.SHAPE),
    "list": (Answer([1]), FailureClass.SHAPE),
    "error object": (Answer({"error": "odd"}), FailureClass.SHAPE),
    "number": (Answer({"inject": 42, "memories": {}, "memoriesSaved": "0"}), FailureClass.SHAPE),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_turns_take_place_whatever_the_daemon_does(
    daemon: RecordingDaemon, hosted: Hosted, config: HarnessConfig, fault: str
) -> None:
    """Each class of failure yields a reply of the model, nothing injected, and the class on record."""
    answer, failure = FAULTS[fault]
    for path in (START, PROMPT, END):
        daemon.always[path] = answer

    async def work(host: SessionHost) -> tuple[TurnResult, tuple[Reply, ...]]:
        session = session_of(host)
        await session.start()
        result = await say(session, "hello", "hi")
        await session.end()
        return result, session.take_replies()

    # Only answers that never come need a short deadline; any other would be a race against it.
    result, replies = hosted(work, replace(config, timeouts_s=SHORT) if failure is FailureClass.TIMEOUT else config)
    assert (result.reply, result.injected) == ("hi", False)
    assert [(reply.operation, reply.failure) for reply in replies] == [
        ("session-start", failure),
        ("user-prompt-submit", failure),
        ("session-end", failure),
    ]


@pytest.mark.parametrize("fault", ["hang", "drip"])
def test_deadline_ends_the_exchange_for_the_daemon_too(
    daemon: RecordingDaemon, hosted: Hosted, config: HarnessConfig, fault: str
) -> None:
    """A call over its deadline is hung up, even while bytes keep dripping in."""
    daemon.always[START] = Answer(fault=fault)

    async def work(host: SessionHost) -> None:
        await session_of(host).start()

    hosted(work, replace(config, timeouts_s=SHORT))
    assert daemon.left.wait(10)


def test_refused_daemon_leaves_the_turn_alone(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """With nobody listening no hook is sent, and the turn takes place."""
    daemon.refuse()

    async def work(host: SessionHost) -> tuple[TurnResult, tuple[Reply, ...]]:
        session = session_of(host)
        await session.start()
        return await say(session, "hello", "hi"), session.take_replies()

    result, replies = hosted(work)
    assert result.reply == "hi"
    assert {reply.failure for reply in replies} == {FailureClass.OFFLINE}
    assert not any(reply.sent for reply in replies)
    daemon.listen_again()


def test_session_is_started_once_the_daemon_is_there(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A session begun without a daemon is probed for and started before its next prompt."""
    daemon.refuse()

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await say(session, "hello")
        daemon.listen_again()
        await say(session, "again")

    hosted(work)
    assert [request.path for request in daemon.requests] == ["/health", START, PROMPT]
    assert daemon.bodies(PROMPT)[0]["userMessage"] == "again"


def test_nothing_is_sent_before_a_healthy_probe(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A probe that is not answered 200 with an object holds every call back."""
    daemon.answers["/health"] = [Answer({"status": "starting"}, 500), Answer(text="ok"), Answer(None)]

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await say(session, "one")
        await session.end()
        await session.start("resume")
        await say(session, "two")

    hosted(work)
    assert [request.path for request in daemon.requests] == ["/health"] * 4 + [START, PROMPT]


def test_daemon_is_probed_again_after_an_outage(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """After a lost connection the next call asks for the daemon's health first."""
    daemon.answers[PROMPT] = [Answer(fault="reset")]

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await say(session, "one")
        await say(session, "two")
        await say(session, "three")

    hosted(work)
    assert [request.path for request in daemon.requests] == ["/health", START, PROMPT, "/health", PROMPT, PROMPT]


def test_refused_probe_is_not_repeated_and_holds_back_one_call_alone(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """The daemon is there, so the next turn itself shows whether it serves again."""
    daemon.answers[PROMPT] = [Answer(fault="reset")]

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await say(session, "one")
        daemon.answers["/health"] = [Answer({"error": "unauthorized"}, 401)]
        await say(session, "two")
        await say(session, "three")

    hosted(work)
    assert [request.path for request in daemon.requests] == ["/health", START, PROMPT, "/health", PROMPT]
    assert daemon.bodies(PROMPT)[-1]["userMessage"] == "three"


def test_end_is_tried_while_the_daemon_is_out_of_sight(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """An end is sent although the daemon was lost and does not answer probes."""
    daemon.answers[PROMPT] = [Answer(fault="reset")]

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await say(session, "one")
        daemon.always["/health"] = Answer(fault="reset")
        await say(session, "two")
        await session.end()

    hosted(work)
    assert daemon.paths() == ["session-start", "user-prompt-submit", "session-end"]


def test_token_goes_to_every_call(daemon: RecordingDaemon, hosted: Hosted, config: HarnessConfig) -> None:
    """With a token all requests carry it as Bearer, the probe too, as 0.58 wants it; nothing else holds it."""
    token = "sig_sk_abcdefgh12345678"

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await say(session, f"my key is {token}, or Bearer abcdefghijklmnop1234")
        for tool, arguments in (("memory_search", {"query": token}), ("memory_get", {"id": "m-1"})):
            await session.use_tool(tool, arguments)
        await session.end()

    hosted(work, replace(config, token=token))
    assert {request.headers["authorization"] for request in daemon.requests} == {f"Bearer {token}"}
    assert daemon.bodies(PROMPT)[0]["userMessage"] == "my key is [token removed], or [token removed]"
    assert all(token not in f"{request.path}{request.query}{request.body}" for request in daemon.requests)


def test_bypass_makes_no_request(daemon: RecordingDaemon, hosted: Hosted, config: HarnessConfig) -> None:
    """Bypassed, a whole session with tools takes place without one request."""

    async def work(host: SessionHost) -> str:
        session = session_of(host)
        await session.start()
        result = await say(session, "hello", "hi")
        await session.use_tool("memory_search", {"query": "x"})
        await session.pre_compaction()
        await session.compaction_complete("sum")
        await session.clear()
        await session.end()
        await host.aclose()
        return result.reply

    assert hosted(work, replace(config, bypassed=True)) == "hi"
    assert daemon.requests == []


def test_refused_request_is_not_repeated(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """An identical request after a 4xx is held back; another one goes out."""
    daemon.always[PROMPT] = Answer({"error": "bad"}, 400)

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        for text in ("same", "same", "same", "other"):
            await say(session, text, "ok")

    hosted(work)
    bodies = daemon.bodies(PROMPT)
    assert [body["userMessage"] for body in bodies] == ["same", "same", "other"]
    assert bodies[0] != bodies[1]


def test_busy_daemon_is_left_alone(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A request answered 503 with Retry-After is dropped, and is not made again in that time."""
    daemon.answers[RECALL] = [Answer({"error": "busy"}, 503, headers={"retry-after": "60"})]

    async def work(host: SessionHost) -> list[str]:
        session = session_of(host)
        await session.start()
        results = [await session.use_tool("memory_search", {"query": query}) for query in ("a", "a", "b")]
        return [result.error.partition(":")[0] for result in results]

    assert hosted(work) == ["http", "held-back", ""]
    assert [body["query"] for body in daemon.bodies(RECALL)] == ["a", "b"]


def test_unknown_fields_and_set_aside_answers_are_taken(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """Answers with more fields, or that say skipped or bypassed and little else, are no failures."""
    daemon.always[START] = Answer({"inject": "", "memories": [], "bypassed": True, "future": {"a": [1]}})
    daemon.always[PRE] = Answer({"instructions": "", "bypassed": True})
    daemon.always[COMPLETE] = Answer({"success": True, "skipped": True, "claimedBy": "legacy"})
    daemon.always[END] = Answer({"memoriesSaved": 0, "skipped": True, "duplicateSessionEnd": True})

    async def work(host: SessionHost) -> Session:
        session = session_of(host)
        await session.start()
        await session.pre_compaction()
        await session.compaction_complete("sum")
        await session.end()
        return session

    assert [reply.failure for reply in hosted(work).replies] == [None] * 4


def test_sessions_share_connections_and_keep_their_agents(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """Interleaved sessions of several agents each send their own key and agent on every call."""

    async def work(host: SessionHost) -> None:
        sessions = [session_of(host, name, agent=agent) for name, agent in (("s1", "atlas"), ("s2", "nova"))]
        for session in sessions:
            await session.start()
        for text in ("one", "two"):
            for session in sessions:
                await say(session, text)
                await session.use_tool("memory_search", {"query": text})
                await session.use_tool("memory_store", {"content": text})
                await session.use_tool("memory_get", {"id": "m-1"})
                await session.use_tool("memory_modify", {"id": "m-1", "content": text, "reason": "it changed"})
        for session in sessions:
            await session.pre_compaction()
            await host.end(session)

    hosted(work)
    owners = {"key-s1": "atlas", "key-s2": "nova"}
    for request in daemon.requests[1:]:
        key = request.headers["x-signet-session-key"]
        assert (request.body or request.query)["agentId"] == owners[key]
        assert (request.body or {}).get("sessionKey", key) == key
        assert request.headers["x-signet-harness"] == HARNESS_NAME
        assert request.headers["x-signet-workspace"] == PROJECT
    assert {request.path for request in daemon.requests} >= {"/api/memory/m-1", "/api/memory/modify", PRE}


def test_what_a_header_cannot_carry_stands_in_bodies_alone(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A project outside ASCII is told where an operation has a member for it, and a token in one is removed."""

    async def work(host: SessionHost) -> None:
        session = host.session_for("s1", project="/workspace/größe", agent="atlas", key="k sig_sk_abcdefgh12345678")
        await session.start()
        await session.use_tool("memory_search", {"query": "ports"})

    hosted(work)
    start, recall = (request for request in daemon.requests if request.path != "/health")
    assert start.body["project"] == "/workspace/größe"
    for request in (start, recall):
        assert "x-signet-workspace" not in request.headers
        assert request.headers["x-signet-session-key"] == request.body["sessionKey"] == "k [token removed]"


def test_text_that_utf8_cannot_hold_still_travels(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A lone surrogate in a prompt, a reply or a memory is sent as JSON escapes it."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await say(session, "a\ud800b", "c\udfffd")
        await session.use_tool("memory_store", {"content": "e\ud800"})
        await session.end()

    hosted(work)
    assert daemon.bodies(PROMPT)[0]["userMessage"] == "a\ud800b"
    assert daemon.paths()[-2:] == ["remember", "session-end"]


def test_name_and_runtime_path_of_the_caller_go_over_the_wire(
    daemon: RecordingDaemon, hosted: Hosted, config: HarnessConfig
) -> None:
    """A harness of another name and path is that harness in every body and header, and may not be an agent."""

    async def work(host: SessionHost) -> str:
        session = session_of(host)
        await session.start()
        await session.use_tool("memory_search", {"query": "ports"})
        await session.end()
        with pytest.raises(IdentityError) as refused:
            session_of(host, "s2", agent="acme")
        return refused.value.message

    message = hosted(work, replace(config, harness="acme", runtime_path="legacy"))
    assert message == "agent 'acme' is the name of the harness"
    start, recall, end = (request for request in daemon.requests if request.path != "/health")
    for hook in (start, end):
        assert (hook.body["harness"], hook.body["runtimePath"]) == ("acme", "legacy")
    for request in (start, recall, end):
        assert request.headers["x-signet-runtime-path"] == "legacy"
        assert request.headers["x-signet-actor"] == "acme-harness"
