"""An author's own memory server over standard input and output, driven by what the documentation says."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from signet_conformance import engine, targets, trace
from signet_conformance.drivers.launch import command_line
from signet_conformance.errors import TargetError
from signet_conformance.finding import Verdict

from .conftest import FIXTURES, START, Made, Recorded, performed

ROOT = Path(__file__).parents[2]
SEARCH = {"step": "tool", "session": "s1", "tool": "memory_search", "arguments": {"query": "invoices"}}


def documented(folder: Path) -> None:
    """Write the files that the page shows in full, each named in its first line."""
    page = (ROOT / "docs" / "driver-protocol.md").read_text("utf-8")
    shown = re.findall(r"^```\w+\n(?://|#) ([\w.-]+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert [name for name, _ in shown] == ["server.mjs", "signet-conformance.toml"]
    for name, text in shown:
        (folder / name).write_text(text, encoding="utf-8")


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not on PATH")
@pytest.mark.parametrize("forgets", [False, True])
def test_the_documented_server_is_driven_as_documented(forgets: bool, tmp_path: Path, recorded: Recorded) -> None:
    """The page's settings and server come to recorded calls that conform; without its agent it is found out."""
    documented(tmp_path)
    if forgets:
        server = tmp_path / "server.mjs"
        server.write_text(server.read_text().replace("{ query, agentId }", "{ query }"))
    (tools,) = recorded(targets.load("mem", tmp_path), ["tools"])  # the scenario that calls every tool
    judged = engine.judge(trace.read(tools))
    assert {"/api/memory/remember", "/api/memory/recall"} <= {call.request.path for call in judged.trace.exchanges}
    assert judged.judgements["SIG-AGENT-002"].verdict is (Verdict.FAIL if forgets else Verdict.PASS)


def test_each_page_shows_the_same_settings() -> None:
    """The page about connectors repeats the example of the protocol's page."""
    page = (ROOT / "docs" / "add-a-connector.md").read_text("utf-8")
    protocol = (ROOT / "docs" / "driver-protocol.md").read_text("utf-8")
    (block,) = re.findall(r"^```toml\n(\[targets\.mem\].*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert all(line in protocol for line in block.splitlines())


def test_own_server_needs_no_face(tmp_path: Path) -> None:
    """The face of a memory server is the shipped one; a command with its arguments is what is spoken to."""
    command = json.dumps([sys.executable, str(FIXTURES / "mcp_server.py")])
    (tmp_path / "signet-conformance.toml").write_text(f'[targets.mem]\ndriver = "mcp"\ncommand = {command}\n')
    target = targets.load("mem", tmp_path)
    started, called = performed(target, tmp_path / "home", [START, SEARCH], SIGNET_AGENT_ID="atlas-agent")
    assert started["tools"] == ["memory_store", "memory_search"]
    assert (called["text"], called["is_error"]) == ("{}", False)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("raise SystemExit('no key is set')\n", "no key is set"),
        ("import nowhere_at_all\n", "the MCP server ended with status 1: ModuleNotFoundError: No module named"),
        ("import os\nos._exit(3)\n", "the MCP server ended with status 3; it wrote nothing"),
    ],
)
def test_server_that_ends_at_once_says_why(program: str, said: str, tmp_path: Path) -> None:
    """A session goes on without a server that did not come up; the reason holds what the server said last."""
    command = json.dumps([sys.executable, "{root}/server.py"])
    (tmp_path / "signet-conformance.toml").write_text(f'[targets.mem]\ndriver = "mcp"\ncommand = {command}\n')
    (tmp_path / "server.py").write_text(program)
    (started,) = performed(targets.load("mem", tmp_path), tmp_path / "home", [START])
    assert said in started["skipped"]


def test_command_stands_in_front_of_the_shipped_places(made: Made, tmp_path: Path) -> None:
    """A command for the shipped target replaces its files: nothing is looked for."""
    target = made("mcp", command=[sys.executable, str(FIXTURES / "mcp_server.py")])
    (started,) = performed(target, tmp_path / "home", [START], SIGNET_AGENT_ID="atlas-agent")
    assert started["tools"] == ["memory_store", "memory_search"]


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("", "no connector is named", "command = "),
        ('command = ["no-such-program-here"]', "no-such-program-here is not on PATH", "install it"),
        ('command = ["/no/such/program"]', "/no/such/program does not exist", "fix the setting command"),
        ('command = ["node", "{root}/server.mjs", "{port}"]', "no url says where", "http://127.0.0.1:{port}/mcp"),
        ('module = "server.mjs"', "server.mjs does not exist", "'module'"),
    ],
)
def test_server_that_cannot_be_started(text: str, message: str, remedy: str, tmp_path: Path) -> None:
    """What is missing is told before anything runs, with the setting that mends it."""
    (tmp_path / "signet-conformance.toml").write_text(f'[targets.mem]\ndriver = "mcp"\n{text}\n')
    with pytest.raises(TargetError) as caught:
        command_line(targets.load("mem", tmp_path))
    assert message in caught.value.message
    assert remedy in str(caught.value.remedy)
