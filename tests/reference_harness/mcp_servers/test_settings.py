"""MCP servers in agent.yaml and in the daemon's registry."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from signet_reference_harness.daemon_client.reply import Reply
from signet_reference_harness.errors import ConfigError
from signet_reference_harness.mcp_servers.settings import McpSettings, read_mcp_settings, read_registry
from signet_reference_harness.providers.agent_file import read_agent_file

HOME = "http://127.0.0.1:3850"
STDIO = {"transport": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"TOKEN": "sesame-opens"}, "timeoutMs": 5}


def said(folder: Path, servers: Any, **environ: str) -> McpSettings:
    """The settings of an agent.yaml with these servers; JSON is YAML, too."""
    (folder / "agent.yaml").write_text(json.dumps({"runtime": {"mcp_servers": servers}}))
    return read_mcp_settings(read_agent_file(folder), environ)


def listed(*rows: Any, origin: str = HOME) -> tuple[list[str], str]:
    """The names of the servers of a registry, and the notices about the others."""
    named = read_registry(Reply("marketplace-servers", status=200, body={"servers": list(rows)}), origin)
    return [server.name for server in named.servers], "\n".join(named.notices)


def row(name: str, config: Any, *, enabled: bool = True) -> dict[str, Any]:
    """A row as a daemon lists it."""
    return {"id": name, "name": name, "enabled": enabled, "config": config}


def test_servers_of_agent_yaml(tmp_path: Path) -> None:
    """Command and address are read, with the values of variables; no value is shown."""
    web = {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer ${WEB_TOKEN}"}, "timeout_s": 5}
    files = {"command": "npx", "args": ["-y", "files"], "env": {"KEY": "${FILES_KEY}-x"}, "cwd": "/srv", "tools": ["a"]}
    off = {"command": "npx", "enabled": False}
    servers = {"web": web, "files": files, "off": off}
    made = said(tmp_path, servers, WEB_TOKEN="sesame-opens", FILES_KEY="sesame")
    first, second = made.servers
    assert (first.url, first.headers["Authorization"].reveal(), first.timeout_s) == (
        "https://mcp.example.com/mcp", "Bearer sesame-opens", 5,
    )  # fmt: skip
    assert (second.command, second.env["KEY"].reveal(), second.cwd) == (("npx", "-y", "files"), "sesame-x", "/srv")
    assert (first.tools, second.tools) == (None, frozenset({"a"}))
    assert "sesame" not in repr(made)
    assert second.scrub("it is sesame-x") == "it is [key]"


def test_what_the_page_shows_can_be_written(tmp_path: Path) -> None:
    """Each agent.yaml of the page about MCP servers is valid."""
    page = (Path(__file__).parents[3] / "docs/harness/mcp.md").read_text()
    names = []
    for example in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL):
        (tmp_path / "agent.yaml").write_text(example)
        made = read_mcp_settings(read_agent_file(tmp_path), {"TICKETS_TOKEN": "sesame-opens"})
        names += [server.name for server in made.servers]
    assert names == ["files", "tickets", "signet"]


def test_a_variable_that_is_not_set_is_told(tmp_path: Path) -> None:
    """A server that needs an unset variable is not used, and the notice names the variable."""
    made = said(tmp_path, {"web": {"url": "http://127.0.0.1:1/mcp", "headers": {"X-Key": "${ABSENT}"}}})
    assert made.servers == ()
    assert "The MCP server web is not used: ABSENT is not set, which " in made.notices[0]


@pytest.mark.parametrize(
    ("server", "told"),
    [
        ({}, "/runtime/mcp_servers/x: has neither a command nor a url"),
        ({"command": "a", "url": "http://b/"}, "has both a command and a url"),
        ({"url": "ftp://b/"}, "/x/url: is not an http or https URL: 'ftp://b/'"),
        ({"url": "http://me:sesame-opens@b/"}, "/x/url: holds credentials"),
        ({"command": "a", "env": {"KEY": 12345678}}, "/x/env/KEY: is not a text"),
        ({"command": "a", "env": "KEY=12345678"}, "/x/env: is not a mapping"),
        ({"url": "http://b/", "headers": {"a b": "c"}}, "is not a valid header"),
        ({"url": "http://b/", "headers": {"a": "c\nd"}}, "/headers/a: holds a line break"),
        ({"command": "a", "enviroment": {"KEY": "12345678"}}, "unknown member 'enviroment'"),
        ({"command": ["a", "b"]}, "/x/command"),
    ],
)
def test_an_entry_that_cannot_be_meant_is_an_error(tmp_path: Path, server: Any, told: str) -> None:
    """It names the file and the place, and shows no value that may be secret."""
    with pytest.raises(ConfigError) as failure:
        said(tmp_path, {"x": server})
    assert told in failure.value.message
    assert str(tmp_path / "agent.yaml") in failure.value.message
    assert "1234567" not in failure.value.message
    assert "sesame" not in failure.value.message


def test_servers_of_the_registry() -> None:
    """Enabled servers on this machine are used, with the registry's times."""
    web = {"transport": "http", "url": "http://127.0.0.1:9/mcp", "headers": {}, "timeoutMs": 20_000}
    assert listed(row("files", STDIO), row("web", web), row("off", STDIO, enabled=False)) == (["files", "web"], "")


@pytest.mark.parametrize(
    ("config", "origin", "told"),
    [
        (STDIO, "http://daemon.example.com:3850", "another machine's daemon does not say what runs here"),
        ({"transport": "http", "url": "https://mcp.example.com/"}, HOME, "its address is not on this machine"),
        ({"transport": "http", "url": "http://localhost.evil.com/"}, HOME, "its address is not on this machine"),
        ({**STDIO, "env": {"TOKEN": "secret://GITHUB"}}, HOME, "it needs secrets that never leave the daemon"),
        ({**STDIO, "env": ["TOKEN"]}, HOME, "does not say how it is reached"),
        ({**STDIO, "args": "-y x"}, HOME, "does not say how it is reached"),
        ({**STDIO, "args": ["a\0b"]}, HOME, "does not say how it is reached"),
        ({"transport": "carrier-pigeon"}, HOME, "does not say how it is reached"),
        ({"transport": "http", "url": "http://[::1"}, HOME, "does not say how it is reached"),
        (
            {"transport": "http", "url": "http://127.0.0.1/", "headers": {"a": "b\nc"}},
            HOME,
            "does not say how it is reached",
        ),
        (None, HOME, "does not say how it is reached"),
    ],
)
def test_a_row_of_the_registry_that_is_not_used(config: Any, origin: str, told: str) -> None:
    """A server of another machine, and an unreadable row, are left out with the reason."""
    names, notices = listed(row("x\x1b[2J", config), origin=origin)
    assert names == []
    assert told in notices
    assert notices.startswith("The MCP server x\\x1b[2J of the daemon's registry is not used: ")
    assert "sesame" not in notices


def test_a_registry_without_end_is_cut() -> None:
    """A registry gives a limited number of servers."""
    names, notices = listed(*(row(f"s{number}", STDIO) for number in range(40)))
    assert (len(names), notices) == (32, "8 further MCP servers of the daemon's registry are not used.")


@pytest.mark.parametrize("body", [{}, {"servers": None}, {"servers": [1, None, "x"]}])
def test_an_answer_that_lists_nothing(body: Any) -> None:
    """Whatever a daemon answers, nothing is raised."""
    assert read_registry(Reply("marketplace-servers", status=200, body=body), HOME).servers == ()
