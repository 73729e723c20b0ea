"""The embedded daemon's MCP endpoint."""

from __future__ import annotations

from typing import Any

from tests.support.evidence import MCP_TOOLS, json_lines

HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


def test_tools_are_listed_as_a_real_daemon_lists_them(kit: Any) -> None:
    """Each tool on memories and secrets has the name and the input schema that a real 0.145.7 gives it."""
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    listed = kit.post("/mcp", asked, headers=HEADERS).json()["result"]["tools"]
    told = {tool["name"]: tool["inputSchema"] for tool in listed}
    assert told == {row["name"]: row["inputSchema"] for row in json_lines(MCP_TOOLS)}
