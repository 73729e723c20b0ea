"""/mcp: enough of the Model Context Protocol over HTTP for a client to connect and list the memory tools."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signet_conformance.daemon import js
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest

if TYPE_CHECKING:
    from signet_conformance.daemon.state import Daemon


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
        return _error(405, -32000, "Method not allowed.")
    if call.method == "DELETE":
        return DaemonAnswer(None, text="")
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
    if message.get("id") is None:
        return DaemonAnswer(None, 202, text="")
    result = _result(message)
    if result is None:
        return DaemonAnswer(
            {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "Method not found"}}
        )
    return DaemonAnswer({"result": result, "jsonrpc": "2.0", "id": message["id"]})


def _result(message: dict[str, Any]) -> dict[str, Any] | None:
    if message.get("method") == "initialize":
        params = message.get("params")
        version = params.get("protocolVersion") if isinstance(params, dict) else None
        return {
            "protocolVersion": version or "2025-03-26",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "signet", "version": "0.1.0"},
        }
    if message.get("method") == "ping":
        return {}
    return {"tools": _tools()} if message.get("method") == "tools/list" else None


def _error(status: int, code: int, message: str) -> DaemonAnswer:
    return DaemonAnswer({"jsonrpc": "2.0", "error": {"code": code, "message": message}, "id": None}, status)
