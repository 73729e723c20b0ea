"""The embedded daemon's MCP endpoint."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.evidence import MCP_TOOLS, json_lines

HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


def test_tools_are_listed_as_a_real_daemon_lists_them(kit: Any) -> None:
    """Each tool on memories and secrets has the name and the input schema that a real 0.145.7 gives it."""
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    listed = kit.post("/mcp", asked, headers=HEADERS).json()["result"]["tools"]
    told = {tool["name"]: tool["inputSchema"] for tool in listed}
    assert told == {row["name"]: row["inputSchema"] for row in json_lines(MCP_TOOLS)}


@pytest.mark.parametrize(
    ("asked", "answered"),
    [("2025-06-18", "2025-06-18"), ("2024-10-07", "2024-10-07"), ("2030-01-01", "2025-11-25"), ("", "2025-11-25")],
)
def test_an_unknown_version_is_answered_with_the_newest(kit: Any, asked: str, answered: str) -> None:
    """As the SDK of a real daemon does: a version that it speaks is taken, in place of another it offers its own."""
    params = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "acme", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    assert kit.post("/mcp", message, headers=HEADERS).json()["result"]["protocolVersion"] == answered


@pytest.mark.parametrize("params", [{}, {"protocolVersion": 7}])
def test_a_client_has_to_name_a_version(kit: Any, params: Any) -> None:
    """The real daemon reports what is missing as an internal error."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    answer = kit.post("/mcp", message, headers=HEADERS)
    assert (answer.status_code, answer.json()["error"]["code"]) == (200, -32603)


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@pytest.mark.parametrize(("version", "refused"), [("2030-01-01", True), ("2025-06-18", False)])
def test_a_request_in_an_unknown_version_is_refused(kit: Any, method: str, version: str, refused: bool) -> None:
    """After the handshake the header names the version; only the handshake itself is answered whatever it names."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"} if method == "POST" else None
    answer = kit.send(method, "/mcp", body, headers={**HEADERS, "mcp-protocol-version": version})
    assert (answer.status_code == 400) is refused
    assert ("Unsupported protocol version: 2030-01-01 (supported versions: 2025-11-25, " in answer.text) is refused
