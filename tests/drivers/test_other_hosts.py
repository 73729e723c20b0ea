"""Hosts for memory servers and Python providers: a conforming connector passes, a broken one is found out."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from signet_conformance import engine, trace
from signet_conformance.drivers.answers import handler_marks
from signet_conformance.drivers.hosts.mcp_server import McpServer
from signet_conformance.drivers.hosts.protocol import Skipped
from signet_conformance.errors import TargetError
from signet_conformance.facts import Recording
from signet_conformance.finding import Finding, Verdict
from signet_conformance.rules import harness_rules
from signet_conformance.targets import Target
from signet_conformance.targets.files import find_file
from signet_conformance.trace.marks import InstalledMark, LoadedMark, RegisteredMark, marks_of

from .conftest import FIXTURES, PROMPT, START, Broken, Made, Recorded, performed


def test_installer_that_forgets_the_address(runtime: str, made: Made, tmp_path: Path) -> None:
    """Where hooks inherit nothing, an address that the installer did not write down is not known to them."""
    hook = shlex.join([sys.executable, str(FIXTURES / "hook.py")])
    module = str(FIXTURES / "hooks_installer.mjs")
    target = made("muse-code", mode="forgets-address", module=module, runtime=runtime)
    target = replace(target, env={**target.env, "FIXTURE_HOOK": hook})
    (started,) = performed(target, tmp_path / "home", [START])
    (run,) = started["hooks"]
    assert run["status"] == 1
    assert "KeyError: 'SIGNET_DAEMON_URL'" in run["stderr"]


@pytest.mark.parametrize("mode", ["conforming", "drops-agent"])
def test_python_provider(mode: str, made: Made, broken: Broken) -> None:
    """A provider that leaves its agent out of pre-compaction breaks the agent requirements, a whole one none."""
    breached = broken(made("hermes-agent", mode=mode, module=str(FIXTURES / "hermes_conforming" / "__init__.py")))
    expected = {} if mode == "conforming" else {"SIG-AGENT-001": Verdict.FAIL, "SIG-AGENT-002": Verdict.FAIL}
    assert breached == expected


def test_hermes_tells_of_writes_into_its_own_memory(made: Made, recorded: Recorded) -> None:
    """A provider that mirrors them is called for each entry that is added, replaced or removed."""
    module = str(FIXTURES / "hermes_conforming" / "__init__.py")
    (own,) = map(trace.read, recorded(made("hermes-agent", module=module), ["own-memory"]))
    sent = [(call.request.method, call.request.body) for call in own.exchanges if "/api/memory/" in call.request.path]
    assert [method for method, _ in sent] == ["POST", "POST", "POST", "DELETE", "DELETE"]


@pytest.mark.parametrize("mode", ["conforming", "keeps-old"])
def test_mirror_of_hermes_own_memory(mode: str, made: Made, broken: Broken) -> None:
    """One that stores what the harness replaced lets its memory and the daemon's say different things."""
    module = str(FIXTURES / "hermes_conforming" / "__init__.py")
    breached = broken(made("hermes-agent", mode=mode, module=module), ("own-memory",))
    assert breached == ({} if mode == "conforming" else {"SIG-MEM-006": Verdict.FAIL})


@pytest.mark.parametrize(("mode", "verdict"), [("conforming", Verdict.PASS), ("tells-tools", Verdict.WARN)])
def test_what_tools_gave_back_stands_in_the_conversation_of_hermes(
    mode: str, verdict: Verdict, made: Made, recorded: Recorded
) -> None:
    """A provider that tells it as the user's words in its transcript is found out; another one is not blamed."""
    module = str(FIXTURES / "hermes_conforming" / "__init__.py")
    (own,) = recorded(made("hermes-agent", mode=mode, module=module), ["own-memory"])
    assert engine.judge(trace.read(own)).verdicts["SIG-END-013"] is verdict


@pytest.mark.parametrize(("mode", "verdict"), [("asks-later:2", Verdict.PASS), ("asks-later:0.6", Verdict.WARN)])
def test_answer_in_time_reaches_a_provider_that_asks_in_the_background(
    mode: str, verdict: Verdict, made: Made, recorded: Recorded
) -> None:
    """An answer that is held back comes after its step, too: a provider that gives up before it does is found out."""
    module = str(FIXTURES / "hermes_conforming" / "__init__.py")
    target = made("hermes-agent", mode=mode, module=module)
    target = replace(target, declared=structs.replace(target.declared, bounds_s={"start": 2.0, "prompt": 2.0}))
    (slow,) = recorded(target, ["daemon-slow-in-time"])
    assert engine.judge(trace.read(slow)).verdicts["SIG-FAIL-006"] is verdict


def test_provider_that_throws_stops_no_turn(made: Made, tmp_path: Path) -> None:
    """The turn goes on, and the answer tells which method raised what, and where."""
    target = made("hermes-agent", mode="throws", module=str(FIXTURES / "hermes_conforming" / "__init__.py"))
    _, turn = performed(target, tmp_path / "home", [START, PROMPT])
    (told,) = [call for call in handler_marks(1, turn) if call.event == "prefetch"]
    assert (turn["turn"], told.outcome) == (True, "thrown")
    assert re.fullmatch(r"LookupError\('no recall'\) at .*__init__\.py:\d+", told.text or "")


OFFERS = """class Provider:
    ready = False

    def is_available(self):
        return True

    def initialize(self, session_id, **_):
        self.ready = True

    def get_tool_schemas(self):
        fields = {"type": "object", "properties": {"query": {"type": "string"}}}
        named = ["session_search", "recall", *(["store"] if self.ready else [])]
        return [{"name": name, "parameters": fields} for name in named]

    def handle_tool_call(self, name, args):
        return "{}"


def register(context):
    context.register_memory_provider(Provider())
"""


def test_tools_that_hermes_does_not_pass_on(made: Made, recorded: Recorded, tmp_path: Path) -> None:
    """It keeps the names of its own tools, and asks for those of a provider before that is initialised."""
    module = tmp_path / "provider" / "__init__.py"
    module.parent.mkdir()
    module.write_text(OFFERS)
    (plain,) = map(trace.read, recorded(made("hermes-agent", module=str(module)), ["plain"]))
    told = {mark.file: str(mark.words) for mark in marks_of(plain, InstalledMark)}
    assert list(told) == ["the tool session_search", "the tool store"]
    assert "shadows a reserved core tool name" in told["the tool session_search"]
    assert "before it initialises it" in told["the tool store"]
    (taken,) = marks_of(plain, RegisteredMark)
    assert (taken.handlers, taken.tools, taken.refused) == (4, 1, 2)


WRITES = """import json
from pathlib import Path


class Provider:
    def is_available(self):
        return True

    def initialize(self, session_id, **_):
        pass

    def sync_turn(self, user, assistant, {takes}):
        (Path.home() / "taken").write_text(json.dumps({tells}))


def register(context):
    context.register_memory_provider(Provider())
"""


@pytest.mark.parametrize(
    ("takes", "tells", "roles"),
    [
        ("*, session_id", "None", None),
        ("*, session_id, messages=()", "messages", ["user", "assistant"]),
        ("**said", "said['messages']", ["user", "assistant"]),
    ],
)
def test_provider_is_handed_the_conversation_where_it_takes_it(
    takes: str, tells: str, roles: list[str] | None, made: Made, tmp_path: Path
) -> None:
    """As the harness finds out from its signature; another one is called without."""
    module = tmp_path / "provider" / "__init__.py"
    module.parent.mkdir()
    module.write_text(WRITES.format(takes=takes, tells=tells))
    _, turn = performed(made("hermes-agent", module=str(module)), tmp_path / "home", [START, PROMPT])
    assert [call for call in turn["calls"] if "thrown" in call] == []
    taken = json.loads((tmp_path / "home" / "taken").read_text())
    assert (None if taken is None else [message["role"] for message in taken]) == roles


def test_memory_server_that_does_not_come_up(made: Made, tmp_path: Path) -> None:
    """A session whose server ends at its start goes on without it: its steps are skipped, with the reason."""
    target = made("mcp", mode="gives-up", module=str(FIXTURES / "mcp_server.py"), runtime=sys.executable)
    results = performed(target, tmp_path / "home", [START, {"step": "prompt", "session": "s1", "text": "hello"}])
    assert len(results) == 2
    for result in results:
        assert "has no memory server: the MCP server ended with status 1" in result["skipped"]


@pytest.mark.parametrize(("scenario", "verdict"), [("plain", Verdict.FAIL), ("daemon-away-at-start", None)])
def test_memory_server_that_never_comes_up_is_not_loaded(
    scenario: str, verdict: Verdict | None, made: Made, recorded: Recorded
) -> None:
    """SIG-LOAD-001 fails, with what the server printed; while the daemon is away, it may end for that reason."""
    target = made("mcp", mode="gives-up", module=str(FIXTURES / "mcp_server.py"), runtime=sys.executable)
    (path,) = recorded(target, [scenario])
    found = engine.judge(trace.read(path)).judgements["SIG-LOAD-001"].findings
    failed = [str(finding.message) for finding in found if finding.verdict is Verdict.FAIL]
    assert bool(failed) is (verdict is Verdict.FAIL)
    assert all("cannot be loaded by mcp 2025-06-18: the MCP server ended with status 1" in words for words in failed)


def test_memory_server_whose_program_is_not_there(tmp_path: Path) -> None:
    """It may be missing on this machine: that blames neither the kit nor the connector, and the session goes on."""
    with pytest.raises(Skipped, match="the MCP server's program signet_mcp is not there: install it"):
        McpServer(["signet_mcp"], {"PATH": os.environ["PATH"]}, str(tmp_path), "gemini")


def test_memory_server_that_ends_in_a_call(made: Made, recorded: Recorded) -> None:
    """The model is told that the connection is closed, and the harness continues: SIG-LOAD-001 warns, once."""
    target = made("mcp", mode="ends", module=str(FIXTURES / "mcp_server.py"), runtime=sys.executable)
    (path,) = recorded(target, ["tools"])
    judged = engine.judge(trace.read(path)).judgements["SIG-LOAD-001"]
    warned = [finding for finding in judged.findings if finding.verdict is Verdict.WARN]
    assert [finding.message for finding in warned] == ["tool memory_search threw: the host caught it and went on"], (
        judged.findings
    )
    assert "the MCP server ended with status 1: ConnectionError: no daemon" in str(warned[0].received)


@pytest.mark.parametrize("mode", ["tells", "swallows"])
def test_memory_server_that_hides_an_error(mode: str, made: Made, recorded: Recorded) -> None:
    """The model sees only the tools' results, and these are in the requests that the kit plays: SIG-MODEL-007 warns."""
    target = made("mcp", mode=mode, module=str(FIXTURES / "mcp_server.py"), runtime=sys.executable)
    (path,) = recorded(target, ["daemon-limits"])
    outcomes = list(harness_rules()["SIG-MODEL-007"](Recording(trace.read(path))))
    found = {each.message for each in outcomes if isinstance(each, Finding) and each.verdict is Verdict.WARN}
    hidden = {"the daemon answered 429, but the model is told that nothing is known"}
    assert found == (hidden if mode == "swallows" else set()), outcomes
    assert Verdict.PASS in outcomes


def test_memory_server_that_refuses_a_call(made: Made, tmp_path: Path) -> None:
    """An error of the protocol is the tool's result, as harnesses tell their model."""
    target = made("mcp", mode="refuses", module=str(FIXTURES / "mcp_server.py"), runtime=sys.executable)
    search = {"step": "tool", "session": "s1", "tool": "memory_search", "arguments": {"query": "Atlas"}}
    _, result = performed(target, tmp_path / "home", [START, search])
    assert (result["is_error"], result["text"]) == (True, "the MCP server answers tools/call: no daemon")


@pytest.mark.parametrize("mode", ["conforming", "drops-agent"])
def test_memory_server_in_javascript(mode: str, runtime: str, made: Made, broken: Broken) -> None:
    """The server's language does not matter: the same is found of one for node or bun."""
    target = made("mcp", mode=mode, module=str(FIXTURES / "mcp_server.mjs"), runtime=runtime)
    assert broken(target, ("tools",)) == ({} if mode == "conforming" else {"SIG-AGENT-002": Verdict.FAIL})


@pytest.mark.parametrize(
    ("mode", "requirement"),
    [("conforming", None), ("drops-agent", "SIG-AGENT-002"), ("latin-1", "SIG-MEM-006")],
)
def test_memory_server(mode: str, requirement: str | None, made: Made, broken: Broken) -> None:
    """One that drops the agent of its calls, or misreads characters, is found out; a right one passes."""
    target = made("mcp", mode=mode, module=str(FIXTURES / "mcp_server.py"), runtime=sys.executable)
    breached = broken(target, ("tools", "interleaved"))
    assert breached == ({} if requirement is None else {requirement: Verdict.FAIL})


@pytest.mark.parametrize("mode", ["prints", "logs"])
def test_memory_server_that_writes_more_than_messages(mode: str, made: Made, recorded: Recorded) -> None:
    """A client passes over the lines, and so does the kit: each session goes on, and SIG-LOAD-002 warns of them."""
    target = made("mcp", mode=mode, module=str(FIXTURES / "mcp_server.py"), runtime=sys.executable)
    (path,) = recorded(target, ["tools"])
    judged = engine.judge(trace.read(path))
    told = judged.judgements["SIG-LOAD-002"]
    assert (judged.verdicts["SIG-LOAD-002"], judged.verdicts["SIG-AGENT-002"]) == (Verdict.WARN, Verdict.PASS)
    assert "tiny is ready" in told.message
    assert "is no JSON-RPC message: clients may pass over it" in told.message


def installs(made: Made, runtime: str, mode: str = "conforming", server_mode: str = "conforming") -> Target:
    """A target whose connector is an installer, which names the fixture's memory server for Forge."""
    target = made("forge", mode=mode, module=str(FIXTURES / "mcp_installer.mjs"), runtime=runtime)
    words = ["env", f"FIXTURE_MODE={server_mode}", sys.executable, str(FIXTURES / "mcp_server.py")]
    return replace(target, env={**target.env, "FIXTURE_SERVER": json.dumps(words)})


@pytest.mark.parametrize("mode", ["conforming", "drops-agent"])
def test_memory_server_is_the_one_that_the_connector_installs(
    mode: str, runtime: str, made: Made, broken: Broken
) -> None:
    """It is started as the harness's file says, for each session's own agent, and finds the daemon where it runs."""
    breached = broken(installs(made, runtime, server_mode=mode), ("tools", "interleaved"))
    assert breached == ({} if mode == "conforming" else {"SIG-AGENT-002": Verdict.FAIL})


def test_installer_that_names_no_server_is_told(runtime: str, made: Made, recorded: Recorded) -> None:
    """The harness takes nothing from its file: that breaks SIG-LOAD-002, and every session is without memory."""
    (path,) = recorded(installs(made, runtime, "names-none"), ["tools"])
    judged = engine.judge(trace.read(path))
    assert judged.verdicts["SIG-LOAD-002"] is Verdict.FAIL
    assert "no installed memory server is one that the harness starts" in judged.judgements["SIG-LOAD-002"].message


@pytest.mark.parametrize("name", ["forge", "codex"])
def test_installer_that_fails_is_a_finding(name: str, runtime: str, made: Made, recorded: Recorded) -> None:
    """A connector that cannot be installed breaks SIG-LOAD-001, in its own words; the kit has not failed."""
    target = made(name, mode="fails", module=str(FIXTURES / "mcp_installer.mjs"), runtime=runtime)
    (path,) = recorded(target, ["plain"])
    (loaded,) = marks_of(trace.read(path), LoadedMark)
    assert loaded.ok is False
    assert "the connector's installer ended with status 1: " in str(loaded.words)
    assert "no acme here" in str(loaded.words)


def test_connector_is_not_found_where_only_the_server_is(made: Made, tmp_path: Path) -> None:
    """A repository that holds the memory server and no connector for the harness has nothing to drive."""
    server = tmp_path / "platform" / "daemon" / "src" / "mcp-stdio.ts"
    server.parent.mkdir(parents=True)
    server.write_text("")
    with pytest.raises(TargetError, match="the connector gemini is not found"):
        find_file(made("gemini"))
