"""The older hooks that save and recall memories, and the aliases of memory/remember."""

from __future__ import annotations

import dataclasses
import json
import re
import sqlite3
from typing import Any, Final

from signet_conformance.daemon import js
from signet_conformance.daemon.handlers import hooks
from signet_conformance.daemon.handlers.memories.reading import demand_recall, demand_saving, run_recall
from signet_conformance.daemon.handlers.memories.recall import RecallRequest
from signet_conformance.daemon.handlers.memories.saving import remember
from signet_conformance.daemon.state import Daemon
from signet_conformance.daemon.state.agents import plain_agent, resolve_agent
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest, RefusedError

#: What the daemon can put into a header of the request it makes to itself.
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_NOTHING_FOUND: Final = "No matching memories found."


def hook_remember(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST hooks/remember: the answer of memory/remember, once the claim of the session allows it."""
    fields = hooks.read_fields(call, {"success": True, "memories": []}, "harness", "content")
    path, key = hooks.runtime_path(call, fields), fields.get("sessionKey")
    hooks.demand_unclaimed(daemon, key, path, plain_agent(fields))
    if hooks.is_bypassed(daemon, fields):
        return DaemonAnswer({"success": True, "memories": [], "bypassed": True})
    key = key if (given := call.header("x-signet-session-key")) is None else given
    body = {**fields, "runtimePath": path} if path else fields
    return _forward(daemon, call, body, key)


def _forward(daemon: Daemon, call: DaemonRequest, body: Any, key: Any) -> DaemonAnswer:
    """The answer of memory/remember to a request of the daemon itself, which passes on only the session key."""
    if js.truthy(key) and not _HEADER_VALUE.fullmatch(str(key)):
        return DaemonAnswer(None, 500, text="Internal Server Error")
    headers = {"x-signet-session-key": str(key)} if js.truthy(key) else {}
    inner = dataclasses.replace(call, headers=headers, body=json.dumps(body, default=str).encode("utf-8", "replace"))
    try:
        answer = daemon.auth.permission_problem(inner, "remember") or remember(daemon, inner)
    except RefusedError as refused:
        answer = refused.answer
    except (js.ScriptError, sqlite3.Error):
        answer = DaemonAnswer(None, 500, text="Internal Server Error")
    return dataclasses.replace(answer, headers={"vary": "Origin, Origin"})


def remember_alias(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST memory/save and hook/remember: memory/remember under another name; an unreadable body counts as empty."""
    return _forward(daemon, call, call.json_or_empty(), call.header("x-signet-session-key"))


def hook_recall(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST hooks/recall: the answer of memory/recall with the fields of the older hook added."""
    fields = hooks.read_fields(call, _no_recall("", internal=True), "harness", "query")
    demand_recall(fields)
    key = fields.get("sessionKey")
    hooks.demand_unclaimed(daemon, key, hooks.runtime_path(call, fields), plain_agent(fields))
    if hooks.is_bypassed(daemon, fields):
        return DaemonAnswer(_no_recall(fields["query"], bypassed=True))
    given = fields.get("agentId")
    agent = resolve_agent(call.header("x-signet-agent-id") if given is None else given, key)
    demand_saving(daemon, call, fields, agent)
    project = daemon.auth.scoped_project(call.claims, js.text_or_none(fields.get("project")))
    if not isinstance(fields["query"], str):
        raise js.ScriptError("a query is not a text")
    read = {
        name: value for name, value in fields.items() if name not in ("scope", "pinned", "importance_min", "sourceOnly")
    }
    answer = run_recall(daemon, RecallRequest(fields["query"], agent, {**read, "project": project}, key))
    rows = answer["results"]
    found = f"Found {len(rows)} {'memory' if len(rows) == 1 else 'memories'} ({answer['method']})."
    lines = [found if rows else _NOTHING_FOUND, *(f"- {row['content']}" for row in rows)]
    return DaemonAnswer({**answer, "memories": rows, "count": len(rows), "message": "\n".join(lines)})


def _no_recall(query: Any, **more: Any) -> dict[str, Any]:
    return {
        "results": [], "memories": [], "count": 0, "query": query, "method": "hybrid",
        "meta": {"totalReturned": 0, "hasSupplementary": False, "noHits": True}, "message": _NOTHING_FOUND, **more,
    }  # fmt: skip
