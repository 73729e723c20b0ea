"""/mcp: enough of the Model Context Protocol over HTTP for a client to connect and list the memory tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from signet_conformance.daemon import js
from signet_conformance.daemon.state import Daemon
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest

_VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07")
"""The versions of the protocol that the SDK of a real daemon speaks, the newest first."""
_EXACT: Final = 2**53
"""From here on, JavaScript's numbers do not represent every integer."""


_TOOLS: Final = json.loads(Path(__file__).with_name("mcp_tools.json").read_bytes())
"""The tools on memories and secrets, with names and schemas as a real 0.145.7 lists them."""


def mcp(_daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """Answer a request. Of the JSON-RPC methods in a POST, only initialize, ping and tools/list exist."""
    match call.method:
        case "GET":
            return _stream(call)
        case "DELETE":
            return _version_problem(call) or DaemonAnswer(None, text="")
        case "POST":
            return _post(call)
        case _:
            return _error(405, -32000, "Method not allowed.", {"allow": "GET, POST, DELETE"})


def _stream(call: DaemonRequest) -> DaemonAnswer:
    """The answer to a request for a stream of events: it ends at once, as with a real daemon."""
    if "text/event-stream" not in (call.header("accept") or ""):
        return _error(406, -32000, "Not Acceptable: Client must accept text/event-stream")
    headers = {"content-type": "text/event-stream", "cache-control": "no-cache, no-transform"}
    return _version_problem(call) or DaemonAnswer(None, headers=headers, text="")


def _post(call: DaemonRequest) -> DaemonAnswer:
    accept = call.header("accept") or ""
    if "application/json" not in accept or "text/event-stream" not in accept:
        return _error(406, -32000, "Not Acceptable: Client must accept both application/json and text/event-stream")
    if not (call.header("content-type") or "").startswith("application/json"):
        return _error(415, -32000, "Unsupported Media Type: Content-Type must be application/json")
    try:
        body = call.json()
    except js.UnreadableJsonError:
        return _error(400, -32700, "Parse error: Invalid JSON")
    messages = body if isinstance(body, list) else [body]
    if not all(map(_is_message, messages)):
        return _error(400, -32700, "Parse error: Invalid JSON-RPC message")
    requests = [message for message in messages if "method" in message and "id" in message]
    if not any(message["method"] == "initialize" for message in requests):
        if (problem := _version_problem(call)) is not None:
            return problem
    elif len(messages) > 1:
        return _error(400, -32600, "Invalid Request: Only one initialization request is allowed")
    if not requests:
        return DaemonAnswer(None, 202, text="")
    # Of two requests with one id, only one is answered.
    answers = {message["id"]: {**_outcome(message), "jsonrpc": "2.0", "id": message["id"]} for message in requests}
    return DaemonAnswer(list(answers.values()) if len(answers) > 1 else next(iter(answers.values())))


def _is_message(value: object) -> bool:
    """Whether a value is a request, a notification or an answer of JSON-RPC, without any other member."""
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0" or not _is_id(value.get("id", "")):
        return False
    match value:
        case {"method": str()}:
            params = value.get("params", {})
            return isinstance(params, dict) and value.keys() <= {"jsonrpc", "id", "method", "params"}
        case {"id": _, "result": dict()}:
            return value.keys() == {"jsonrpc", "id", "result"}
        case {"error": {"code": int() | float(), "message": str()}}:
            return value.keys() <= {"jsonrpc", "id", "error"}
        case _:
            return False


def _is_id(value: object) -> bool:
    """Whether a value can be the id of a request: a text or a whole number, not null."""
    if isinstance(value, str):
        return True
    return js.is_number(value) and float(value).is_integer() and abs(value) < _EXACT


def _version_problem(call: DaemonRequest) -> DaemonAnswer | None:
    """The refusal of a request whose header names an unsupported version of the protocol, else None."""
    version = call.header("mcp-protocol-version")
    if version is None or version in _VERSIONS:
        return None
    words = f"Unsupported protocol version: {version} (supported versions: {', '.join(_VERSIONS)})"
    return _error(400, -32000, f"Bad Request: {words}")


def _outcome(message: dict[str, Any]) -> dict[str, Any]:
    """The result of a request, or its error."""
    match message.get("method"):
        case "initialize":
            return _initialize(message.get("params"))
        case "ping":
            return {"result": {}}
        case "tools/list":
            return {"result": {"tools": _TOOLS}}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


def _initialize(params: object) -> dict[str, Any]:
    """The outcome of initialize: the version that the client requests, or the newest if that is not supported."""
    version = params.get("protocolVersion") if isinstance(params, dict) else None
    if not isinstance(version, str):
        return {"error": {"code": -32603, "message": "params.protocolVersion: Invalid input: expected string"}}
    return {
        "result": {
            "protocolVersion": version if version in _VERSIONS else _VERSIONS[0],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "signet", "version": "0.1.0"},
        }
    }


def _error(status: int, code: int, message: str, headers: Mapping[str, str] | None = None) -> DaemonAnswer:
    body = {"jsonrpc": "2.0", "error": {"code": code, "message": message}, "id": None}
    return DaemonAnswer(body, status, headers or {})
