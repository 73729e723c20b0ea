"""A whole turn over each vendor's interface: it ends with the right reason, and the daemon sees the session end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from signet_reference_harness.providers import StopReason
from signet_reference_harness.providers.agent_file import RetryPolicy
from signet_reference_harness.providers.failures import Timing
from signet_reference_harness.session.host import SessionHost
from signet_reference_harness.session.turn import TurnResult
from tests.reference_harness.llm_server.conftest import scripted_model, serve
from tests.reference_harness.llm_server.served import Serve
from tests.reference_harness.providers.asking import APIS, make
from tests.reference_harness.recording_daemon import END, PROMPT, START, Answer, RecordingDaemon
from tests.reference_harness.sessions import session_of

__all__ = ["scripted_model", "serve"]
each_api = pytest.mark.parametrize("api", APIS)
SEARCH = {"type": "tool_call", "name": "memory_search", "arguments": {"query": "port"}}
GOOD = {"content": "The port is 3850."}


@pytest.fixture
def take(hosted: Callable[..., Any], daemon: RecordingDaemon) -> Callable[..., TurnResult]:
    """One turn of a session that starts and ends at the daemon, with a provider that waits for nothing."""

    async def no_wait(_seconds: float) -> None: ...

    def run(api: str, url: str) -> TurnResult:
        async def work(host: SessionHost) -> TurnResult:
            provider = make(api, url, Timing(sleep=no_wait), retry=RetryPolicy())
            session = session_of(host)
            try:
                await session.start()
                result = await session.turn("Which port?", provider)
                await session.end()
            finally:
                await provider.aclose()
            return result

        result: TurnResult = hosted(work)
        assert len(daemon.bodies(START)) == len(daemon.bodies(END)) == 1
        return result

    return run


@each_api
def test_two_rounds_of_parallel_tools(take: Callable[..., TurnResult], serve: Serve, api: str) -> None:
    """Each call is run once, its result reaches the model, and the model's answer is the reply."""
    text = {"type": "text", "text": "I look."}
    served = serve(turns=[{"content": [text, SEARCH, SEARCH]}, {"content": [SEARCH]}, GOOD])
    result = take(api, served.url)
    assert (result.reply, result.outcome, result.rounds) == ("The port is 3850.", StopReason.END_TURN, 3)
    assert [tool.ok for tool in result.tool_results] == [True, True, True]
    roles = [message["role"] for message in served.requests()[-1]["asked"]["messages"]]
    assert roles.count("tool") == 3


@each_api
@pytest.mark.parametrize(
    ("turns", "outcome", "reply"),
    [
        ([{**GOOD, "fault": {"kind": "close", "after": 2}}], StopReason.MALFORMED, "The port "),
        ([{"error": {"status": 429, "retry_after_s": 2}}, GOOD], StopReason.END_TURN, "The port is 3850."),
        ([{"error": {"status": 429, "retry_after_s": 900}}], StopReason.ERROR, ""),
        ([{"error": {"kind": "context_limit"}}], StopReason.CONTEXT_LIMIT, ""),
        ([{"error": {"status": 401}}], StopReason.ERROR, ""),
        ([{**GOOD, "stop": "length"}], StopReason.LENGTH, "The port is 3850."),
    ],
    ids=["cut", "429-then-success", "deferred", "over-long", "wrong-key", "length"],
)
def test_a_turn_ends_with_its_reason(
    take: Callable[..., TurnResult], serve: Serve, api: str, turns: list[Any], outcome: StopReason, reply: str
) -> None:
    """Whatever the vendor does; what arrived is the reply."""
    result = take(api, serve(turns=turns).url)
    assert (result.outcome, result.reply) == (outcome, reply)
    assert bool(result.detail) == (outcome not in {StopReason.END_TURN, StopReason.LENGTH})
    assert (result.deferred_s == 900) == (turns[0].get("error", {}).get("retry_after_s") == 900)


@each_api
def test_torn_arguments_go_back_to_the_model(take: Callable[..., TurnResult], serve: Serve, api: str) -> None:
    """The tool is not run, the model reads what is wrong, and the next round may do better."""
    torn = {"content": [{**SEARCH, "arguments": '{"query": "po'}]}
    served = serve(turns=[torn, {"content": [SEARCH]}, GOOD])
    result = take(api, served.url)
    assert (result.reply, result.outcome) == ("The port is 3850.", StopReason.END_TURN)
    assert [tool.ok for tool in result.tool_results] == [False, True]
    assert "not a JSON object" in json.dumps(served.requests()[1]["body"])


@pytest.mark.parametrize(
    ("api", "turn", "outcome"),
    [
        ("anthropic-messages", {"content": "I will not.", "stop": "refusal"}, StopReason.REFUSAL),
        ("openai-completions", {"content": [{"type": "refusal", "text": "I will not."}]}, StopReason.REFUSAL),
        ("openai-responses", {"content": [{"type": "refusal", "text": "I will not."}]}, StopReason.REFUSAL),
        ("anthropic-messages", {"content": "One moment.", "stop": "pause"}, StopReason.PAUSE),
    ],
    ids=["anthropic-refusal", "chat-refusal", "responses-refusal", "anthropic-pause"],
)
def test_what_not_every_vendor_says(
    take: Callable[..., TurnResult], serve: Serve, api: str, turn: dict[str, Any], outcome: StopReason
) -> None:
    """A refusal and a pause keep their reason, and the words beside them."""
    result = take(api, serve(turns=[turn]).url)
    assert result.outcome is outcome
    assert result.reply


def test_what_stays_the_same_is_marked_for_anthropic_s_cache(
    hosted: Callable[..., Any], daemon: RecordingDaemon, serve: Serve
) -> None:
    """What begins each turn's request is the same and marked; the conversation only where nothing changes before it."""
    daemon.always[START] = Answer({"inject": "Robin prefers pytest.", "memories": []})
    daemon.answers[PROMPT] = [Answer({"inject": "Port 3850 it is.", "sessionKnown": True})]
    served = serve(turns=[GOOD, GOOD])

    async def work(host: SessionHost) -> None:
        provider = make("anthropic-messages", served.url)
        session = session_of(host)
        try:
            await session.start()
            for prompt in ("Which port?", "Sure?"):
                await session.turn(prompt, provider)
        finally:
            await provider.aclose()

    hosted(work)
    first, second = (request["body"] for request in served.requests())
    assert first["system"][0] == second["system"][0]
    assert "Robin prefers pytest." in first["system"][0]["text"]
    assert first["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert "Port 3850 it is." in first["system"][1]["text"]
    marked = [
        "cache_control" in block for body in (first, second) for each in body["messages"] for block in each["content"]
    ]
    assert marked == [False, False, False, True]
    assert (len(second["system"]), first["tools"]) == (1, second["tools"])
