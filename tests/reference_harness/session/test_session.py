"""The session loop: which hooks are sent for turns and tools, and with which fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from signet_reference_harness.messages import ToolCall
from signet_reference_harness.providers import CompletionResult, StopReason
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.session.host import SessionHost
from tests.reference_harness.recording_daemon import COMPLETE, END, PROMPT, START, Answer, RecordingDaemon
from tests.reference_harness.sessions import IDENTITY, PROJECT, say, session_of, turns

Hosted = Callable[..., Any]


def test_whole_session_sends_exact_bodies_in_order(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """Health, start, prompts and end carry harness, key, agent, path and project, and nothing else."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await say(session, "hello", "hi")
        await say(session, "and now?", "done")
        await session.end("session.deleted")

    hosted(work)
    assert [request.path for request in daemon.requests] == ["/health", START, PROMPT, PROMPT, END]
    start, first, second, end = (request.body for request in daemon.requests[1:])
    assert start == {**IDENTITY, "project": PROJECT, "source": "startup"}
    assert first == {**IDENTITY, "project": PROJECT, "userMessage": "hello"}
    assert second == {**IDENTITY, "project": PROJECT, "userMessage": "and now?", "lastAssistantMessage": "hi"}
    assert {name: value for name, value in end.items() if name != "transcript"} == {
        **IDENTITY,
        "cwd": PROJECT,
        "reason": "session.deleted",
    }
    assert turns(end) == [("user", "hello"), ("assistant", "hi"), ("user", "and now?"), ("assistant", "done")]


def test_every_hook_has_the_runtime_path_in_the_header(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """Header and body name the runtime path alike, and bodies are declared as JSON."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await session.end()

    hosted(work)
    hooks = daemon.requests[1:]
    assert len(hooks) == 2
    for request in hooks:
        assert request.headers["x-signet-runtime-path"] == request.body["runtimePath"] == "plugin"
        assert request.headers["content-type"] == "application/json"


def test_prompt_precedes_the_model_and_context_reaches_only_its_system_prompt(
    daemon: RecordingDaemon, hosted: Hosted
) -> None:
    """The model is asked after the prompt hook, with the injected text outside the conversation."""
    daemon.always[START] = Answer({"inject": "start context", "memories": []})
    daemon.always[PROMPT] = Answer({"inject": "turn context", "memoryCount": 1, "sessionKnown": True})

    async def work(host: SessionHost) -> ScriptedProvider:
        session = session_of(host)
        await session.start()
        provider = ScriptedProvider([CompletionResult(content="hi")])
        result = await session.turn("hello", provider)
        assert result.injected
        return provider

    provider = hosted(work)
    messages, options = provider.seen[0]
    assert daemon.paths() == ["session-start", "user-prompt-submit"]
    assert [message.content for message in messages] == ["hello"]
    assert "start context" in options.system_prompt
    assert "turn context" in options.system_prompt


def test_injected_text_never_comes_back(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A model that quotes its context, and a user who pastes it, do not send it to the daemon again."""
    envelope = (
        "[signet active]\n# Current Date & Time\nSaturday, 21 November\nRobin prefers pytest over unittest, always."
    )
    undated = "[signet active]\nRobin prefers pytest over unittest, always."
    daemon.always[START] = Answer({"inject": envelope, "memories": []})

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await say(session, f"What is {envelope} about?", f"It says: {undated}")
        await say(session, envelope, undated)
        await say(session, "go on", "ok")
        await session.compaction_complete(f"Summary with {envelope}")
        await session.use_tool("memory_store", {"content": f"note: {undated}"})
        await session.end()

    hosted(work)
    sent = json.dumps([request.body for request in daemon.requests])
    assert "prefers pytest" not in sent
    assert [body["userMessage"] for body in daemon.bodies(PROMPT)] == ["What is  about?", "go on"]
    assert daemon.bodies(COMPLETE)[0]["summary"] == "Summary with "


def test_unknown_session_is_started_again_at_once(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A prompt answered sessionKnown false is followed by a start of the key, and is not sent again."""
    daemon.answers[PROMPT] = [Answer({"inject": "", "memoryCount": 0, "sessionKnown": False})]

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await say(session, "hello")
        await say(session, "more")

    hosted(work)
    assert daemon.paths() == ["session-start", "user-prompt-submit", "session-start", "user-prompt-submit"]
    assert daemon.bodies(START)[1]["source"] == "resume"


@pytest.mark.parametrize(
    ("version", "claims"), [("0.145.7", False), ("0.182.1", False), ("0.182.2", True), ("0.237.5", True)]
)
def test_unknown_session_is_taken_up_without_its_context(
    daemon: RecordingDaemon, hosted: Hosted, version: str, claims: bool
) -> None:
    """From the release on that can: the context of its start is in the conversation still."""
    daemon.always["/health"] = Answer({"status": "healthy", "version": version})
    daemon.answers[PROMPT] = [Answer({"inject": "", "memoryCount": 0, "sessionKnown": False})]

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await say(session, "hello")

    hosted(work)
    assert [body.get("claimOnly", False) for body in daemon.bodies(START)] == [False, claims]


def test_skipped_prompt_is_no_unknown_session(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A prompt set aside for another runtime path does not lead to a second start."""
    skipped = {"inject": "", "memoryCount": 0, "sessionKnown": False, "skipped": True, "duplicateRuntimePath": True}
    daemon.always[PROMPT] = Answer(skipped)

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await say(session, "hello")
        await say(session, "more")

    hosted(work)
    assert daemon.paths() == ["session-start", "user-prompt-submit", "user-prompt-submit"]


def test_same_words_twice_are_told_apart(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """Equal prompts that follow each other never have equal last replies."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        for _ in range(4):
            await say(session, "continue", "ok")

    hosted(work)
    sent = [(body["userMessage"], body.get("lastAssistantMessage")) for body in daemon.bodies(PROMPT)]
    assert len(sent) == 4
    assert all(earlier != other for earlier, other in pairwise(sent))


def test_turn_that_the_model_failed_leaves_no_trace(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A failed turn is not in the transcript, and its repetition is not submitted a second time."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        failed = await session.turn("hello", ScriptedProvider([]))
        assert failed.error
        await say(session, "hello", "hi")
        await session.end()

    hosted(work)
    assert len(daemon.bodies(PROMPT)) == 1
    assert turns(daemon.bodies(END)[0]) == [("user", "hello"), ("assistant", "hi")]


def test_blank_prompt_is_not_submitted(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """The model is asked, the daemon is not told."""

    async def work(host: SessionHost) -> str:
        session = session_of(host)
        await session.start()
        return (await say(session, " \n", "yes?")).reply

    assert hosted(work) == "yes?"
    assert daemon.paths() == ["session-start"]


def test_tool_calls_of_the_model_are_run_and_answered(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """The results of tool calls go to the model as messages, and not into the transcript."""

    async def work(host: SessionHost) -> ScriptedProvider:
        session = session_of(host)
        await session.start()
        call = ToolCall("c1", "memory_search", {"query": "port"})
        provider = ScriptedProvider(
            [
                CompletionResult(content="", tool_calls=(call,), stop_reason=StopReason.TOOL_USE),
                CompletionResult(content="50051"),
            ]
        )
        result = await session.turn("which port?", provider)
        assert [tool_result.ok for tool_result in result.tool_results] == [True]
        await session.end()
        return provider

    provider = hosted(work)
    answer = provider.seen[1][0][-1]
    assert (answer.role, answer.tool_call_id, json.loads(answer.content)) == ("tool", "c1", {"results": []})
    assert turns(daemon.bodies(END)[0]) == [("user", "which port?"), ("assistant", "50051")]
