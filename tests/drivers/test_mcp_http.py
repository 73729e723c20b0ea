"""Memory servers over streamable HTTP, called by the official client: conforming, broken, refusing, gone."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from signet_conformance.drivers.launch import command_line
from signet_conformance.errors import TargetError
from signet_conformance.finding import Verdict

from .conftest import FIXTURES, START, Broken, Made, performed

pytestmark = pytest.mark.skipif(
    find_spec("mcp") is None, reason="the official MCP client is not installed: the extra harness brings it"
)

SERVED = {
    "command": [sys.executable, str(FIXTURES / "mcp_http_server.py"), "{port}"],
    "url": "http://127.0.0.1:{port}/mcp",
    "processes": "agent",
}
SEARCH = {"step": "tool", "session": "s1", "tool": "memory_search", "arguments": {"query": "invoices"}}
EXPECTED: Mapping[str, Mapping[str, Verdict]] = {"conforming": {}, "drops-agent": {"SIG-AGENT-002": Verdict.FAIL}}


@pytest.mark.parametrize("mode", EXPECTED)
def test_a_conforming_server_passes_over_http_and_a_broken_one_fails(mode: str, made: Made, broken: Broken) -> None:
    """A server that drops the agent of its calls is found out over HTTP too, one that sends it passes."""
    assert broken(made("mcp", mode=mode, **SERVED), ("tools", "interleaved")) == EXPECTED[mode]


def test_session_lists_the_tools(made: Made, tmp_path: Path) -> None:
    """A session begins with the server's tools, calls one, and leaves the server running for the next."""
    again = {**START, "session": "s2"}
    steps = [START, SEARCH, {"step": "end", "session": "s1"}, again]
    started, called, ended, other = performed(
        made("mcp", **SERVED), tmp_path / "home", steps, SIGNET_AGENT_ID="atlas-agent"
    )
    assert started["tools"] == other["tools"] == ["memory_store", "memory_search"]
    assert (called["text"], called["is_error"]) == ("{}", False)
    assert ended == {"ended": True}


SPOKEN_TO = {"command": [sys.executable, str(FIXTURES / "mcp_server.py")], "processes": "agent"}


@pytest.mark.parametrize("server", [SERVED, SPOKEN_TO], ids=["over HTTP", "over standard input and output"])
def test_tools_of_all_pages_are_listed(server: Mapping[str, object], made: Made, tmp_path: Path) -> None:
    """A server may list its tools in pages: each answer but the last names the next one."""
    target = made("mcp", mode="pages", **server)
    (started,) = performed(target, tmp_path / "home", [START], SIGNET_AGENT_ID="atlas-agent")
    assert started["tools"] == ["memory_store", "memory_search"]


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("refuses", r"the MCP server at http://127\.0\.0\.1:\d+/mcp"),
        ("ends", "the MCP server (ended with status 9|at .* Connection closed)"),
    ],
)
def test_server_that_fails_is_the_scenario_s_error(mode: str, message: str, made: Made, tmp_path: Path) -> None:
    """A server that refuses the client, or ends under a call, is an error that names it."""
    with pytest.raises(TargetError, match=message):
        performed(made("mcp", mode=mode, **SERVED), tmp_path / "home", [START, SEARCH], SIGNET_AGENT_ID="atlas-agent")


def test_only_this_machine_is_spoken_to(made: Made) -> None:
    """An address elsewhere is refused before anything is sent."""
    with pytest.raises(TargetError, match="not an http address on this machine"):
        command_line(made("mcp", url="http://192.0.2.7/mcp"))
