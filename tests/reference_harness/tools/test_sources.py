"""Tools that come and go while a session lasts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from signet_conformance.contracts import EventRecorder
from signet_reference_harness.errors import ToolFailedError
from signet_reference_harness.messages import Message, ToolCall, ToolDefinition, lower_reminders, texts_for_person
from signet_reference_harness.providers import CompletionOptions, CompletionResult, StopReason
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.session import Session
from signet_reference_harness.session.host import SessionHost
from signet_reference_harness.tools import ServedTool
from tests.reference_harness.sessions import session_of


class Changing:
    """A source with one tool, whose call takes it away."""

    def __init__(self) -> None:
        self.tools: Mapping[str, ServedTool] = {}
        self.notices: list[str] = []
        self.cancelled = False
        self.offer("vanish")

    def offer(self, name: str, schema: Mapping[str, Any] | None = None, timeout_s: float = 20.0) -> None:
        """Have this tool, and no other."""
        definition = ToolDefinition(name, "Goes when it is called.", schema or {"type": "object"})
        self.tools = {name: ServedTool(definition, self.call, timeout_s)}

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """Go, and say so."""
        if arguments.get("hang"):
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled = True
        if arguments.get("fail"):
            raise ToolFailedError("it cannot")
        self.offer("arrive")
        self.notices.append("'vanish' has gone, 'arrive' has come")
        return {"gone": True}


class Asked(ScriptedProvider):
    """Keeps what tools it was offered at each question."""

    def __init__(self, *answers: CompletionResult) -> None:
        super().__init__(answers)
        self.offered: list[set[str]] = []

    def stream(self, messages: Any, options: CompletionOptions) -> Any:
        """Answer as the script says."""
        self.offered.append({tool.name for tool in options.tools})
        return super().stream(messages, options)


def calls(name: str, **arguments: Any) -> CompletionResult:
    """An answer that calls a tool."""
    return CompletionResult(content="", tool_calls=(ToolCall("c1", name, arguments),), stop_reason=StopReason.TOOL_USE)


def in_session(config: Any, source: Changing, work: Any) -> None:
    """Do some work in an open session that has the source's tools."""

    async def run() -> None:
        host = SessionHost(config, [], sources=[source])
        session = session_of(host)
        session.is_open = True
        try:
            await work(session)
        finally:
            await host.client.aclose()

    asyncio.run(run())


def test_what_became_of_tools_is_told_after_the_result_and_the_tools_are_renewed(config: Any) -> None:
    """A tool that goes during a turn is told of after its result, to model and person, and not offered again."""
    source, heard = Changing(), EventRecorder()
    provider = Asked(calls("vanish"), CompletionResult(content="Done."), CompletionResult(content="Yes."))

    async def work(session: Session) -> None:
        turn = await session.turn("Go.", provider, listener=heard)
        assert turn.reply == "Done."
        told = heard.messages[-2]
        assert texts_for_person(told) == ("'vanish' has gone, 'arrive' has come",)
        assert "has come" in lower_reminders([told])[0].content
        await session.turn("And now?", provider, listener=heard)
        assert provider.offered == [{"vanish"}, {"arrive"}, {"arrive"}]
        assert sum(bool(message.reminders) for message in heard.messages) == 1, "it is told once"

    in_session(config, source, work)


def test_what_became_of_tools_between_turns_is_told_with_the_next_prompt(config: Any) -> None:
    """A notice that comes between turns goes with the prompt that follows; one whose turn failed is told again."""
    source, heard = Changing(), EventRecorder()

    async def work(session: Session) -> None:
        source.notices.append("'vanish' has gone")
        failed = await session.turn("Go.", ScriptedProvider([]), listener=heard)
        assert failed.error
        await session.turn("Go.", ScriptedProvider([CompletionResult(content="Done.")]), listener=heard)
        shown = [texts_for_person(message) for message in heard.messages if message.role == "user"]
        assert shown == [("Go.", "'vanish' has gone")] * 2

    in_session(config, source, work)


def test_what_a_person_says_meanwhile_follows_the_results(config: Any) -> None:
    """What steers a turn stands after the tool results, before the model is asked again."""
    source, heard = Changing(), EventRecorder()

    async def work(session: Session) -> None:
        said = [Message("user", "In French, please.")]
        session.steered = lambda: [said.pop()] if said else []
        await session.turn("Go.", ScriptedProvider([calls("vanish"), CompletionResult(content="Oui.")]), listener=heard)
        assert [message.role for message in heard.messages[-4:]] == ["tool", "user", "user", "assistant"]
        assert heard.messages[-2].content == "In French, please."

    in_session(config, source, work)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [({"fail": True}, "it cannot"), ({"hang": True}, "no result within 0.05 s"), ({"n": "x"}, "do not fit")],
)
def test_a_served_tool_that_fails_is_told_clearly(config: Any, arguments: dict[str, Any], told: str) -> None:
    """A served tool that fails, takes too long or is called wrongly ends in a result that says so."""
    source = Changing()
    source.offer("vanish", {"type": "object", "properties": {"n": {"type": "integer"}}}, 0.05)

    async def work(session: Session) -> None:
        result = await session.use_tool("vanish", arguments)
        assert not result.ok
        assert told in result.error
        assert source.cancelled == ("hang" in arguments)

    in_session(config, source, work)


def test_a_stranger_s_schema_opens_no_address(config: Any) -> None:
    """A schema that refers to an address or a file is not followed: the tool is not offered."""
    source = Changing()
    source.offer("vanish", {"type": "object", "properties": {"a": {"$ref": "file:///etc/hostname"}}})

    async def work(session: Session) -> None:
        assert session.tools.definitions == ()
        assert "outside itself" in (await session.use_tool("vanish", {})).error

    in_session(config, source, work)
