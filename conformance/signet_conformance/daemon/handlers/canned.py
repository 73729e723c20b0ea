"""Answers that need no memory of earlier requests: most as data, with what a route demands of the body."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from signet_conformance.daemon.handlers.hooks import demand_unclaimed, is_internal, runtime_path
from signet_conformance.daemon.state.agents import plain_agent, resolve_agent
from signet_conformance.daemon.values import UnreadableJsonError, fields_of, iso, text_or_none, truthy
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest, demand, refusal

if TYPE_CHECKING:
    from signet_conformance.daemon.state import Daemon

Demand: TypeAlias = "tuple[Callable[[Any], bool], str]"
"""A test of the body's JSON value, and the error of the 400 where it fails."""


@dataclass(frozen=True)
class CannedHandler:
    """A handler that says the same to every request. Its 400s come in the order of `demands`.

    With `unreadable` a body that is no JSON is refused with this text; without it the route crashes over one.
    """

    body: Any
    status: int = 200
    demands: tuple[Demand, ...] = ()
    unreadable: str | None = None
    internal: Mapping[str, Any] | None = None
    """The answer to a request from inside a hook, where the route asks for that."""
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    scoped: bool = False
    """The query names an agent, which the bearer's credential has to cover."""

    def __call__(self, daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
        """The answer to a request."""
        if self.internal is not None and is_internal(call):
            return DaemonAnswer(self.internal)
        if self.demands:
            try:
                body = call.json()
            except UnreadableJsonError:
                if self.unreadable is None:
                    raise
                return refusal(400, self.unreadable)
            for meets, error in self.demands:
                demand(meets(body), error)
        if self.scoped:
            daemon.auth.scoped_agent(call.claims, call.query.get("agent_id"))
        return DaemonAnswer(self.body, self.status, self.headers, self.text)


def _gives(*names: str) -> Callable[[Any], bool]:
    """A test for members that are all given. It raises for null, as the daemon does."""
    return lambda body: all(truthy(fields_of(body).get(name)) for name in names)


def _names_an_agent(body: Any) -> bool:
    """Whether an agent is named, if only by default. It raises for an agent that is no string, as the daemon does."""
    return bool(resolve_agent(body.get("agentId"), body.get("sessionKey")))


_BODIES: Final = json.loads(Path(__file__).with_suffix(".json").read_bytes())

HOME: Final = CannedHandler(
    None,
    headers={"content-type": "text/html; charset=UTF-8"},
    text="<!DOCTYPE html><title>Embedded Signet daemon</title>",
)
READY: Final = CannedHandler({"status": "ok"})

# No server is registered here.
MARKETPLACE: Final = CannedHandler(_BODIES["marketplace"])
MARKETPLACE_POLICY: Final = CannedHandler(_BODIES["marketplace_policy"])
MARKETPLACE_TOOLS: Final = CannedHandler(_BODIES["marketplace_tools"])
MARKETPLACE_SERVER: Final = CannedHandler({"error": "Server not found"}, 404)
MARKETPLACE_CALL: Final = CannedHandler(
    {"error": "Server not found, disabled, or out of scope"},
    404,
    demands=((_gives("serverId", "toolName"), "serverId and toolName are required"),),
    unreadable="Invalid JSON body",
)

HEARTBEAT: Final = CannedHandler(
    {"ok": True},
    demands=(
        (lambda body: isinstance(body, dict | list), "Body must be an object"),
        (
            lambda body: isinstance(body, dict) and isinstance(body.get("pluginVersion"), str),
            "pluginVersion (string) is required",
        ),
    ),
    unreadable="Invalid JSON",
)

# No synthesis worker runs here.
SYNTHESIS_CONFIG: Final = CannedHandler(_BODIES["synthesis_config"])
SYNTHESIS_GONE: Final = CannedHandler({"error": "Synthesis is done by the daemon", "code": "gone"}, 410)
SYNTHESIS_COMPLETE: Final = CannedHandler(
    {"error": "Synthesis worker not running"}, 503, demands=((_gives("content"), "content is required"),)
)
NOTIFICATIONS: Final = CannedHandler(
    {"inject": "", "notifications": []},
    demands=((_gives("harness", "hook"), "harness and hook are required"), (_names_an_agent, "")),
    internal={"inject": ""},
)

# Nothing is known of entities outside the memories that name them, and no agent has met or written to another.
COMMUNITIES: Final = CannedHandler({"items": [], "count": 0})
ENTITIES: Final = CannedHandler({"items": [], "limit": 50, "offset": 0})
KNOWLEDGE: Final = CannedHandler(_BODIES["knowledge"])
PRESENCE: Final = CannedHandler({"sessions": [], "count": 0}, scoped=True)
INBOX: Final = CannedHandler({"items": [], "count": 0}, scoped=True)


def search_marketplace(_daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """GET marketplace/mcp/search: nothing is found."""
    query = call.query.get("q", "").strip()
    nothing = {"query": query, "count": 0, "results": []}
    if len(query) < 2:
        return DaemonAnswer({**nothing, "error": "query must be at least 2 characters"}, 400)
    return DaemonAnswer({**nothing, "context": {}})


def hygiene(_daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """GET knowledge/hygiene: nothing to tidy up for the agent that is named."""
    return DaemonAnswer(
        {
            "agentId": text_or_none(call.query.get("agent_id")) or "default",
            "suspiciousEntities": [],
            "duplicateEntities": [],
            "attributeSummary": {"missingGroupKey": 0, "missingClaimKey": 0, "missingSourceMemory": 0},
            "safeMentionCandidates": [],
        }
    )


def skill_invocation(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST hooks/skill-invocation: noted."""
    if is_internal(call):
        return DaemonAnswer({"recorded": False})
    body = call.json()
    fields = body if isinstance(body, dict) else {}
    demand(text_or_none(fields.get("harness")), "harness is required")
    skill = fields.get("skillName")
    demand(text_or_none(fields.get("skill") if skill is None else skill), "skillName is required")
    if daemon.behaviour.skill_conflict_is_409:
        key = text_or_none(fields.get("sessionKey"))
        demand_unclaimed(daemon, key, runtime_path(call, fields), plain_agent(fields))
    return DaemonAnswer({"recorded": True})


def health(daemon: Daemon, _call: DaemonRequest) -> DaemonAnswer:
    """GET /health: whether the daemon is well; what stands beside it depends on the version."""
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
    """GET status: what runs where."""
    body = {
        "status": "running", "version": daemon.behaviour.reported, "pid": os.getpid(),
        "uptime": daemon.clock() - daemon.started_at,
        "startedAt": iso(daemon.started_at), "port": daemon.port, "host": "127.0.0.1", "bindHost": "127.0.0.1",
        "networkMode": "localhost", "agentId": "default", "agentsDir": str(daemon.workspace), "memoryDb": True,
    }  # fmt: skip
    return DaemonAnswer(body)
