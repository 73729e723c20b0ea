"""A marketplace without servers, and OpenClaw's heartbeat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from signet_conformance.daemon.values import UnreadableJsonError, fields_of, truthy
from signet_conformance.daemon.wire import Answer, Call, refusal

if TYPE_CHECKING:
    from signet_conformance.daemon.state.daemon import Daemon

_POLICY: Final = {
    "mode": "hybrid",
    "maxExpandedTools": 12,
    "maxSearchResults": 8,
    "updatedAt": "1970-01-01T00:00:00.000Z",
}


def marketplace(_daemon: Daemon, call: Call) -> Answer:
    """GET marketplace/mcp, /policy, /tools and /search: an empty marketplace."""
    last = call.path.rsplit("/", 1)[-1]
    if last == "policy":
        return Answer({"policy": _POLICY})
    if last == "tools":
        return Answer({"tools": [], "servers": [], "count": 0, "context": {}, "policy": _POLICY})
    if last == "search":
        query = call.query.get("q", "").strip()
        nothing = {"query": query, "count": 0, "results": []}
        if len(query) < 2:
            return Answer({**nothing, "error": "query must be at least 2 characters"}, 400)
        return Answer({**nothing, "context": {}})
    return Answer({"servers": [], "count": 0, "scoped": False, "context": {}})


def marketplace_server(_daemon: Daemon, _call: Call) -> Answer:
    """GET marketplace/mcp/:id: always 404, as no server is registered here."""
    return refusal(404, "Server not found")


def marketplace_call(_daemon: Daemon, call: Call) -> Answer:
    """POST marketplace/mcp/call: always refused, as no server is registered here."""
    try:
        body = fields_of(call.json())
    except UnreadableJsonError:
        return refusal(400, "Invalid JSON body")
    if not truthy(body.get("serverId")) or not truthy(body.get("toolName")):
        return refusal(400, "serverId and toolName are required")
    return refusal(404, "Server not found, disabled, or out of scope")


def heartbeat(_daemon: Daemon, call: Call) -> Answer:
    """POST diagnostics/openclaw/heartbeat."""
    try:
        body = call.json()
    except UnreadableJsonError:
        return refusal(400, "Invalid JSON")
    if not isinstance(body, dict | list):
        return refusal(400, "Body must be an object")
    if not isinstance(body, dict) or not isinstance(body.get("pluginVersion"), str):
        return refusal(400, "pluginVersion (string) is required")
    return Answer({"ok": True})
