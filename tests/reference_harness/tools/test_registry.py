"""Whatever a tool does, there is a clear result, in time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from signet_reference_harness.errors import ConfigError
from signet_reference_harness.messages import ToolCall
from signet_reference_harness.providers import CompletionResult, StopReason
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.session.host import SessionHost
from signet_reference_harness.tools import ToolContext, ToolResult
from signet_reference_harness.tools.registry import RESULT_LIMIT, ResultFolder, ToolRegistry
from tests.reference_harness.recording_daemon import RecordingDaemon
from tests.reference_harness.sessions import AGENT, PROJECT, session_of

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
MEGABYTES = 50 * 1024 * 1024


@dataclass
class Made:
    """A tool as a stranger would write it."""

    do: Callable[[Mapping[str, Any], ToolContext], Any]
    name: str = "made"
    description: str = "Does what it is told."
    input_schema: Any = field(default_factory=lambda: {"type": "object"})
    run_before_generation: bool = False
    timeout_s: float = 20.0

    def execute(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        """What it was made to do."""
        return self.do(arguments, context)


@pytest.fixture
def use(config: Any) -> Callable[..., ToolResult]:
    """Runs one tool of a stranger in a session that was not started."""

    def run(tool: Made, arguments: Mapping[str, Any] | None = None, results: Path | None = None) -> ToolResult:
        async def work() -> ToolResult:
            host = SessionHost(config, [tool])
            session = session_of(host)
            session.is_open = True
            if results is not None:
                session.results = ResultFolder(results)
            try:
                return await session.use_tool("made", arguments or {})
            finally:
                await host.client.aclose()

        return asyncio.run(work())

    return run


Use = Callable[..., ToolResult]


def refuse(*_: Any) -> Any:
    """A tool that raises."""
    raise LookupError("no such thing")


def leave(*_: Any) -> Any:
    """A tool that tries to end the program."""
    raise SystemExit(3)


async def wait(*_: Any) -> Any:
    """A tool that is a coroutine."""
    await asyncio.sleep(0)
    return "waited"


def test_a_tool_knows_whose_call_it_is(use: Use, daemon: RecordingDaemon) -> None:
    """It is told session key, project, agent id and where the daemon is; and runs though the daemon was never told."""
    told = use(Made(lambda _, context: [context.session_key, context.project, context.agent_id, context.daemon_url]))
    assert told.content == ["key-s1", PROJECT, AGENT, daemon.origin]
    assert daemon.requests == []


def test_a_coroutine_is_run_too(use: Use) -> None:
    """What it returns in the end is the result."""
    assert use(Made(wait)).content == "waited"


@pytest.mark.parametrize(
    ("tool", "error"),
    [
        (Made(refuse), "the tool failed: LookupError: no such thing"),
        (Made(leave), "the tool failed: SystemExit: 3"),
        (Made(lambda *_: time.sleep(600), timeout_s=0.05), "no result within 0.05 s"),
        (Made(lambda *_: object()), "result is not JSON"),
        (Made(lambda *_: float("nan")), "result is not JSON"),
        (Made(wait, input_schema={"type": "nonsense"}), "has a schema that cannot be used: its type is not 'object'"),
        (Made(wait, input_schema={"type": "object", "properties": 5}), "has a schema that cannot be used"),
        (Made(wait, input_schema=None), "has a schema that cannot be used"),
        (Made(wait, input_schema=SCHEMA), 'do not fit the tool\'s schema: the object: "n" is a required property'),
    ],
)
def test_a_tool_that_fails_says_how(use: Use, tool: Made, error: str) -> None:
    """Raising, leaving, hanging, returning what is no JSON, having a bad schema: each is a result with its reason."""
    result = use(tool)
    assert (result.ok, result.content) == (False, {})
    assert error in result.error


def test_arguments_are_checked_before_the_tool_runs(use: Use) -> None:
    """The place and the value that do not fit are named, and nothing ran."""
    ran: list[Any] = []
    result = use(Made(lambda arguments, _: ran.append(arguments), input_schema=SCHEMA), {"n": "five"})
    assert result.error == 'the arguments do not fit the tool\'s schema: /n: "five" is not of type "integer"'
    assert ran == []


def test_a_tool_with_a_bad_schema_is_not_shown_to_the_model() -> None:
    """A provider would refuse every request that holds such a schema."""
    registry = ToolRegistry([Made(wait, name="good"), Made(wait, name="bad", input_schema={"type": "nonsense"})])
    assert [definition.name for definition in registry.definitions] == ["good"]


def test_a_long_result_is_cut_and_kept_in_a_file(use: Use, tmp_path: Path) -> None:
    """Of 50 MB the model is given at most 64 kB, and told which file of the session holds the whole."""
    whole = "line\n" * (MEGABYTES // 5)
    result = use(Made(lambda *_: whole), results=tmp_path / "s1.files")
    assert result.file is not None
    assert result.file.read_text("utf-8") == whole
    assert result.file.stat().st_mode & 0o777 == 0o600
    assert (result.content["file"], result.content["bytes"]) == (str(result.file), len(whole))
    assert whole.startswith(result.content["beginning"])


@pytest.mark.parametrize("character", ["a", '"', "\x00", "é", "\U0001f600", "\ud800"])
def test_what_the_model_is_told_of_a_long_result_is_bounded(hosted: Any, character: str) -> None:
    """The message takes at most 64 kB of UTF-8, whatever characters the result is made of."""

    async def work(host: SessionHost) -> str:
        session = session_of(host)
        session.tools = ToolRegistry([Made(lambda *_: character * RESULT_LIMIT)])
        call = CompletionResult(content="", tool_calls=(ToolCall("c", "made", {}),), stop_reason=StopReason.TOOL_USE)
        provider = ScriptedProvider([call, CompletionResult(content="ok")])
        await session.turn("go", provider)
        session.results.close()
        return provider.seen[1][0][-1].content

    told: str = hosted(work)
    assert RESULT_LIMIT // 2 < len(told.encode()) <= RESULT_LIMIT


def test_a_result_that_cannot_be_kept_is_cut_all_the_same(use: Use, tmp_path: Path) -> None:
    """Where no file can be written the model is told that the rest is lost."""
    (tmp_path / "file").write_text("in the way")
    result = use(Made(lambda *_: "x" * 100_000), results=tmp_path / "file" / "below")
    assert (result.ok, result.file) == (True, None)
    assert "the rest is lost" in result.content["note"]


def test_a_temporary_folder_goes_with_its_session() -> None:
    """Without a folder of its own, a session keeps its results in a private one, which is removed."""
    folder = ResultFolder()
    file = folder.keep("a/../b", b"x")
    assert file.name == "001-a____b.txt"
    folder.close()
    assert not file.parent.exists()


def test_two_tools_of_one_name_are_refused() -> None:
    """The error names it."""
    with pytest.raises(ConfigError, match="two tools have the same name: made"):
        ToolRegistry([Made(wait), Made(refuse)])


def test_research_runs_before_the_model_and_stays_with_its_prompt(hosted: Any) -> None:
    """Tools that ask for it run on the prompt; what they brought is beside that prompt in the next turn too."""

    async def work(host: SessionHost) -> ScriptedProvider:
        session = session_of(host)
        seen = Made(lambda arguments, _: {"known of": arguments["query"]}, run_before_generation=True)
        session.tools = ToolRegistry([seen, Made(refuse, name="broken", run_before_generation=True)])
        provider = ScriptedProvider([CompletionResult(content="a"), CompletionResult(content="b")])
        await session.turn("ports", provider)
        await session.turn("names", provider)
        return provider

    provider: ScriptedProvider = hosted(work)
    (first, options), (second, _) = provider.seen
    assert first[0].content.startswith('ports\n\n<system-reminder kind="research" origin="tool" source="made">')
    assert '{"known of": "ports"}' in first[0].content
    assert second[0] == first[0]
    assert '{"known of": "names"}' in second[-1].content
    assert options.metadata["context"][-1]["part"] == "research"


@pytest.mark.parametrize("nothing", [None, "", [], {"results": [], "query": "ports"}])
def test_research_that_found_nothing_is_not_put_beside_the_prompt(hosted: Any, nothing: Any) -> None:
    """The model sees the prompt alone."""

    async def work(host: SessionHost) -> str:
        session = session_of(host)
        session.tools = ToolRegistry([Made(lambda *_: nothing, run_before_generation=True)])
        provider = ScriptedProvider([CompletionResult(content="a")])
        await session.turn("ports", provider)
        return provider.seen[0][0][0].content

    assert hosted(work) == "ports"
