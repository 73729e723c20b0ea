"""/mcp: enough of the Model Context Protocol over HTTP for a client to connect and list the memory tools."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from signet_conformance.daemon import js
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest

if TYPE_CHECKING:
    from signet_conformance.daemon.state import Daemon


_VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07")
"""The versions of the protocol that the SDK of a real daemon speaks, the newest first."""


@cache
def _tools() -> list[dict[str, Any]]:
    """The tools on memories and secrets, with names and schemas as a real 0.145.7 lists them."""
    listed: list[dict[str, Any]] = json.loads(Path(__file__).with_name("mcp_tools.json").read_bytes())
    return listed


def mcp(_daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """Answer a request; POST brings one JSON-RPC message: initialize, ping or tools/list, no other method is found."""
    accept = call.header("accept") or ""
    if call.method in ("GET", "HEAD"):
        if "text/event-stream" not in accept:
            return _error(406, -32000, "Not Acceptable: Client must accept text/event-stream")
        return _version_problem(call) or _error(405, -32000, "Method not allowed.")
    if call.method == "DELETE":
        return _version_problem(call) or DaemonAnswer(None, text="")
    if call.method != "POST":
        return _error(405, -32000, "Method not allowed.")
    if "application/json" not in accept or "text/event-stream" not in accept:
        return _error(406, -32000, "Not Acceptable: Client must accept both application/json and text/event-stream")
    if not (call.header("content-type") or "").startswith("application/json"):
        return _error(415, -32000, "Unsupported Media Type: Content-Type must be application/json")
    return _post(call)


def _post(call: DaemonRequest) -> DaemonAnswer:
    try:
        message = call.json()
    except js.UnreadableJsonError:
        return _error(400, -32700, "Parse error: Invalid JSON")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return _error(400, -32700, "Parse error: Invalid JSON-RPC message")
    if message.get("method") != "initialize" and (problem := _version_problem(call)) is not None:
        return problem
    if message.get("id") is None:
        return DaemonAnswer(None, 202, text="")
    return DaemonAnswer({**_outcome(message), "jsonrpc": "2.0", "id": message["id"]})


def _version_problem(call: DaemonRequest) -> DaemonAnswer | None:
    """The refusal of a request whose header names a version of the protocol that is not spoken here, else None."""
    version = call.header("mcp-protocol-version")
    if version is None or version in _VERSIONS:
        return None
    words = f"Unsupported protocol version: {version} (supported versions: {', '.join(_VERSIONS)})"
    return _error(400, -32000, f"Bad Request: {words}")


def _outcome(message: dict[str, Any]) -> dict[str, Any]:
    """The result of a request, or its error."""
    match message.get("method"):
        case "initialize":
            return _initialized(message.get("params"))
        case "ping":
            return {"result": {}}
        case "tools/list":
            return {"result": {"tools": _tools()}}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


def _initialized(params: object) -> dict[str, Any]:
    """The version that the client asks for, or the newest where that is not spoken here."""
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


def _error(status: int, code: int, message: str) -> DaemonAnswer:
    return DaemonAnswer({"jsonrpc": "2.0", "error": {"code": code, "message": message}, "id": None}, status)
