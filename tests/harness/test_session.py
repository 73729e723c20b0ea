"""The session loop: which hooks are sent, in which order, with which fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from signet_reference_harness.host import SessionHost
from signet_reference_harness.providers import CompletionResult, ScriptedProvider, ToolCall
from signet_reference_harness.reply import FailureClass

from .recording_daemon import CHECKPOINT, COMPLETE, END, PRE, PROMPT, START, Answer, RecordingDaemon
from .sessions import AGENT, PROJECT, say, session_of

Hosted = Callable[..., Any]
IDENTITY = {"harness": "reference", "sessionKey": "key-s1", "agentId": AGENT, "runtimePath": "plugin"}


def turns(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Role and content of each line of an end's transcript."""
    return [(line["role"], line["content"]) for line in map(json.loads, body["transcript"].split("\n"))]


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
    for request in daemon.requests[1:]:
        assert request.headers["x-signet-runtime-path"] == request.body["runtimePath"] == "plugin"
        assert request.headers["content-type"] == "application/json"


def test_end_of_a_session_without_turns_has_a_transcript_without_turns(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """The transcript is never blank, and never pretends a turn."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await session.end()

    hosted(work)
    assert [role for role, _ in turns(daemon.bodies(END)[0])] == ["system"]


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


def test_second_start_of_an_open_session_sends_nothing(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """An open session is not started twice."""

    async def work(host: SessionHost) -> tuple[bool, bool]:
        session = session_of(host)
        return await session.start(), await session.start("resume")

    assert hosted(work) == (True, False)
    assert daemon.paths() == ["session-start"]


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
    assert all(one != other for one, other in pairwise(sent))


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
                CompletionResult(content="", tool_calls=(call,), stop_reason="tool_use"),
                CompletionResult(content="50051"),
            ]
        )
        result = await session.turn("which port?", provider)
        assert [one.ok for one in result.tool_results] == [True]
        await session.end()
        return provider

    provider = hosted(work)
    answer = provider.seen[1][0][-1]
    assert (answer.role, answer.tool_call_id, json.loads(answer.content)) == ("tool", "c1", {"results": []})
    assert turns(daemon.bodies(END)[0]) == [("user", "which port?"), ("assistant", "50051")]


def test_endless_tool_calls_are_cut_off(hosted: Hosted) -> None:
    """A model that never stops calling tools is asked eight times, and the turn ends."""

    async def work(host: SessionHost) -> int:
        session = session_of(host)
        await session.start()
        call = ToolCall("c1", "no_such_tool", {})
        provider = ScriptedProvider([CompletionResult(content="...", tool_calls=(call,))] * 20)
        result = await session.turn("go", provider)
        assert result.error is None
        return len(provider.seen)

    assert hosted(work) == 8


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


def test_checkpoint_carries_the_transcript(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A checkpoint hands over the turns so far, inside the session."""

    async def work(host: SessionHost) -> None:
        session = session_of(host)
        await session.start()
        await say(session, "hello", "hi")
        await session.checkpoint()

    hosted(work)
    assert turns(daemon.bodies(CHECKPOINT)[0]) == [("user", "hello"), ("assistant", "hi")]
