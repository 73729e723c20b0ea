"""POST /mcp: enough of the Model Context Protocol over HTTP for a client to connect and list the memory tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from signet_conformance.daemon.values import UnreadableJsonError
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest

if TYPE_CHECKING:
    from signet_conformance.daemon.state import Daemon

_FACETS: Final = ("captured", "session", "source", "observed", "occurred", "valid")
_MODES: Final = ("auto", "timeline", "filter")
_STATED: Final = {"confidence": "number", "importance": "number"}


def _object(fields: dict[str, Any], *required: str) -> dict[str, Any]:
    """An object of these fields; each is a type, a choice (tuple), or a schema."""
    properties = {name: _field(kind) for name, kind in fields.items()}
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def _field(kind: Any) -> dict[str, Any]:
    if isinstance(kind, tuple):
        return {"type": "string", "enum": list(kind)}
    return {"type": kind} if isinstance(kind, str) else kind


def _list(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": _field(items), **more}


def _texts(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, "string")


_MEMORY: Final = {**_texts("content", "type", "tags"), "importance": "number", "pinned": "boolean"}
_RELATION: Final = _object(
    {**_texts("source", "sourceType", "relationship", "target", "targetType"), "confidence": "number"},
    "source", "relationship", "target",
)  # fmt: skip
_ATTRIBUTE: Final = _object({**_texts("groupKey", "claimKey", "content"), **_STATED}, "content")
_ASPECTS: Final = _list(
    {
        "anyOf": [
            _object(
                {**_texts("entityName", "entityType", "aspect"), "attributes": _list(_ATTRIBUTE)},
                "entityName", "aspect", "attributes",
            ),
            _object(
                {**_texts("entity", "aspect", "value", "groupKey", "claimKey"), **_STATED},
                "entity", "aspect", "value",
            ),
        ]
    }
)  # fmt: skip

_TOOLS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "memory_search": (
        "Search memories",
        _object(
            {
                **_texts("query", "project", "type", "tags", "who", "since", "until", "keyword_query"),
                **_texts("session_key", "agent_id"),
                **dict.fromkeys(("limit", "importance_min", "min_score", "score_min"), "number"),
                **dict.fromkeys(("pinned", "aggregate", "save_aggregate", "include_recalled"), "boolean"),
                "time": _object({**_texts("start", "end"), "facets": _list(_FACETS), "mode": _MODES}),
                "aggregate_budget": ("small", "medium", "large"),
            },
            "query",
        ),
    ),
    "memory_store": (
        "Save a memory",
        _object(
            {
                **_MEMORY,
                "hints": _list({"type": "string", "minLength": 1}, minItems=1),
                **_texts("createdAt", "occurredAt", "observedAt", "sourceCreatedAt", "validFrom", "validUntil"),
                "transcript": "string",
                "structured": _object({"entities": _list(_RELATION), "aspects": _ASPECTS, "hints": _list("string")}),
            },
            "content", "hints",
        ),
    ),
    "memory_get": ("Get a memory by its id", _object({"id": "string"}, "id")),
    "memory_list": ("List memories", _object({"limit": "number", "offset": "number", "type": "string"})),
    "memory_modify": ("Change a memory", _object({"id": "string", **_MEMORY, "reason": "string"}, "id", "reason")),
    "memory_forget": ("Forget a memory", _object(_texts("id", "reason"), "id", "reason")),
    "secret_list": ("List the names of secrets", _object({})),
    "secret_exec": (
        "Run a command with secrets in its environment",
        _object(
            {
                "command": "string",
                "secrets": {**_object({}), "additionalProperties": {"type": "string"}},
                "timeoutSeconds": {"type": "integer", "exclusiveMinimum": 0, "maximum": 1800},
            },
            "command", "secrets",
        ),
    ),
    "secret_exec_status": (
        "See how a command with secrets stands",
        _object({"jobId": {"type": "string", "minLength": 1}}, "jobId"),
    ),
}  # fmt: skip
"""Names and schemas as a real 0.145.7 lists them, of the tools on memories and secrets."""


def mcp(_daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """Answer one JSON-RPC message: initialize, ping, tools/list; other methods are not found."""
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
    except UnreadableJsonError:
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
    return {"tools": [_tool(name) for name in _TOOLS]} if message.get("method") == "tools/list" else None


def _tool(name: str) -> dict[str, Any]:
    description, schema = _TOOLS[name]
    return {"name": name, "title": description, "description": description, "inputSchema": schema}


def _error(status: int, code: int, message: str) -> DaemonAnswer:
    return DaemonAnswer({"jsonrpc": "2.0", "error": {"code": code, "message": message}, "id": None}, status)
