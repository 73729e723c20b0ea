"""Handlers that change nothing in the daemon. Answers that are always the same are in the table of routes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from signet_conformance.daemon import js
from signet_conformance.daemon.handlers import hooks
from signet_conformance.daemon.handlers.memories.saving import read_body
from signet_conformance.daemon.state import Daemon
from signet_conformance.daemon.state.agents import plain_agent, resolve_agent
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest, demand, refusal


@dataclass(frozen=True)
class CannedHandler:
    """A handler that gives every request the same answer."""

    answer: DaemonAnswer
    scoped: bool = False
    """The query names an agent, which the bearer's credential has to cover."""

    def __call__(self, daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
        """The answer to a request."""
        if self.scoped:
            daemon.auth.scoped_agent(call.claims, call.query.get("agent_id"))
        return self.answer


def call_marketplace(_daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST marketplace/mcp/call: no server is registered here."""
    fields = read_body(call)
    demand(
        js.truthy(fields.get("serverId")) and js.truthy(fields.get("toolName")), "serverId and toolName are required"
    )
    return refusal(404, "Server not found, disabled, or out of scope")


def heartbeat(_daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST diagnostics/openclaw/heartbeat: accept the heartbeat."""
    try:
        body = call.json()
    except js.UnreadableJsonError:
        return refusal(400, "Invalid JSON")
    demand(isinstance(body, dict | list), "Body must be an object")
    demand(isinstance(js.fields_of(body).get("pluginVersion"), str), "pluginVersion (string) is required")
    return DaemonAnswer({"ok": True})


def complete_synthesis(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST hooks/synthesis/complete: no synthesis worker runs here."""
    if daemon.behaviour.synthesis_is_gone:
        return refusal(410, "Synthesis is done by the daemon", code="gone")
    demand(js.truthy(js.fields_of(call.json()).get("content")), "content is required")
    return refusal(503, "Synthesis worker not running")


def notifications(_daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST hooks/notifications: there are never any. An agent that is not a string crashes it, as in the daemon."""
    fields = hooks.read_fields(call, {"inject": ""}, "harness", "hook")
    resolve_agent(fields.get("agentId"), fields.get("sessionKey"))
    return DaemonAnswer({"inject": "", "notifications": []})


def search_marketplace(_daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """GET marketplace/mcp/search: nothing is found."""
    query = call.query.get("q", "").strip()
    empty = {"query": query, "count": 0, "results": []}
    if len(query) < 2:
        return DaemonAnswer({**empty, "error": "query must be at least 2 characters"}, 400)
    return DaemonAnswer({**empty, "context": {}})


def hygiene(_daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """GET knowledge/hygiene: always an empty report, for the agent of the query."""
    return DaemonAnswer(
        {
            "agentId": js.text_or_none(call.query.get("agent_id")) or "default",
            "suspiciousEntities": [],
            "duplicateEntities": [],
            "attributeSummary": {"missingGroupKey": 0, "missingClaimKey": 0, "missingSourceMemory": 0},
            "safeMentionCandidates": [],
        }
    )


def skill_invocation(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST hooks/skill-invocation: accept the report of a skill's use."""
    if hooks.is_internal(call):
        return DaemonAnswer({"recorded": False})
    body = call.json()
    fields = body if isinstance(body, dict) else {}
    demand(js.text_or_none(fields.get("harness")), "harness is required")
    skill = fields.get("skillName")
    demand(js.text_or_none(fields.get("skill") if skill is None else skill), "skillName is required")
    if daemon.behaviour.skill_conflict_is_409:
        key = js.text_or_none(fields.get("sessionKey"))
        hooks.demand_unclaimed(daemon, key, hooks.runtime_path(call, fields), plain_agent(fields))
    return DaemonAnswer({"recorded": True})


def health(daemon: Daemon, _call: DaemonRequest) -> DaemonAnswer:
    """GET /health: the daemon's status; further members depend on the version."""
    stopping = daemon.settings.shutting_down
    body: dict[str, Any] = {
        "status": "shutting_down" if stopping else "healthy",
        "uptime": daemon.clock() - daemon.started_at, "pid": os.getpid(),
        "version": daemon.behaviour.reported, "port": daemon.port, "agentsDir": str(daemon.workspace), "db": True,
    }  # fmt: skip
    kind = daemon.behaviour.health
    if kind == "small":
        return DaemonAnswer({**body, "updateAvailable": False, "pendingRestart": False})
    body |= {"shuttingDown": stopping, "updateAvailable": False, "pendingRestart": False}
    if kind == "pipeline":
        body["pipeline"] = {
            "extractionRunning": False, "extractionStalled": False, "extractionPending": 0, "extractionBackoffMs": 0,
        }  # fmt: skip
    else:
        body |= {name: {"status": "healthy"} for name in ("dbWriter", "dbReader", "dbRuntime")}
    counts = dict.fromkeys(("total", "memoryMd", "sockets", "inotify", "pipes", "db", "other", "rss", "heapUsed"), 0)
    return DaemonAnswer({**body, "resources": counts})


def status(daemon: Daemon, _call: DaemonRequest) -> DaemonAnswer:
    """GET status: the daemon's process and addresses."""
    body = {
        "status": "running", "version": daemon.behaviour.reported, "pid": os.getpid(),
        "uptime": daemon.clock() - daemon.started_at,
        "startedAt": js.iso(daemon.started_at), "port": daemon.port, "host": "127.0.0.1", "bindHost": "127.0.0.1",
        "networkMode": "localhost", "agentId": "default", "agentsDir": str(daemon.workspace), "memoryDb": True,
    }  # fmt: skip
    return DaemonAnswer(body)
