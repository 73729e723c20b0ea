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


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
NOTE = {"jsonrpc": "2.0", "method": "notifications/initialized"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "acme", "version": "1"}},
}
PONG = {"result": {}, "jsonrpc": "2.0", "id": 1}


@pytest.mark.parametrize(
    ("body", "answered"),
    [
        ([PING], PONG),
        ([PING, {**PING, "id": 2}], [PONG, {**PONG, "id": 2}]),
        ([NOTE, PING], PONG),
        ([PING, PING], PONG),
        ([NOTE], None),
        ([], None),
        (NOTE, None),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, None),
        ({"jsonrpc": "2.0", "error": {"code": 1, "message": "lost"}}, None),
        ({**PING, "id": 1.0}, PONG),
        ({**PING, "id": "a"}, {**PONG, "id": "a"}),
    ],
)
def test_every_request_of_a_batch_is_answered(kit: Any, body: Any, answered: Any) -> None:
    """As the SDK 1.30.0 answered the same bodies: a single answer stands alone, no request is accepted with 202."""
    answer = kit.post("/mcp", body, headers=HEADERS)
    assert (answer.status_code, answer.json() if answer.text else None) == (200 if answered else 202, answered)


@pytest.mark.parametrize(
    "body",
    [
        *({**PING, "id": other} for other in (None, True, 1.5, {}, 2**53)),
        {"jsonrpc": "2.0", "id": 1},
        {**PING, "extra": 1},
        {**NOTE, "extra": 1},
        {**PING, "method": 7},
        {**PING, "params": [1]},
        {**PING, "params": None},
        {"jsonrpc": "2.0", "id": 1, "result": 7},
        {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "lost"}},
        [PING, 7],
        7,
    ],
)
def test_what_is_no_message_of_json_rpc_is_refused(kit: Any, body: Any) -> None:
    """As the SDK 1.30.0 refused the same bodies: an id is a text or an integer, and no member is unknown."""
    answer = kit.post("/mcp", body, headers=HEADERS)
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, "Parse error: Invalid JSON-RPC message")


def test_a_handshake_stands_alone(kit: Any) -> None:
    """A batch of one may be a handshake; beside another message it is refused."""
    assert kit.post("/mcp", [INITIALIZE], headers=HEADERS).status_code == 200
    refused = kit.post("/mcp", [INITIALIZE, {**PING, "id": 2}], headers=HEADERS)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32600)


def test_the_stream_of_events_ends_at_once(kit: Any) -> None:
    """A real daemon makes a server for each request and closes it after the answer, the stream of GET too."""
    answer = kit.send("GET", "/mcp", None, headers={"accept": "text/event-stream"})
    assert (answer.status_code, answer.headers["content-type"], answer.text) == (200, "text/event-stream", "")
    assert kit.send("GET", "/mcp", None, headers={"accept": "*/*"}).status_code == 406


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD"])
def test_another_method_is_told_which_are_allowed(kit: Any, method: str) -> None:
    """HEAD is no GET here, though any other route answers it as one."""
    answer = kit.send(method, "/mcp", PING if method != "HEAD" else None, headers=HEADERS)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST, DELETE")
