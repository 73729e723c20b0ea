"""The routes that connectors poll or ask in passing: health, marketplace, heartbeat, knowledge, agents, credentials."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from signet_conformance.daemon.agents import resolve_agent
from signet_conformance.daemon.auth import ROLES
from signet_conformance.daemon.hook_calls import held_by_other, is_internal, plain_agent, runtime_path
from signet_conformance.daemon.timestamps import iso
from signet_conformance.daemon.values import UnreadableJsonError, fields_of, leading_integer, text_or_none, truthy
from signet_conformance.daemon.wire import Answer, Call, refusal

if TYPE_CHECKING:
    import sqlite3

    from signet_conformance.daemon.state import Daemon

_POLICY: Final = {
    "mode": "hybrid",
    "maxExpandedTools": 12,
    "maxSearchResults": 8,
    "updatedAt": "1970-01-01T00:00:00.000Z",
}
_SYNTHESIS: Final = {
    "enabled": True, "provider": "none", "model": "none", "timeout": 120_000, "maxTokens": 8000, "idleGapMinutes": 15,
}  # fmt: skip
_TOKEN_SECONDS: Final = 7 * 24 * 3600


def health(daemon: Daemon, _call: Call) -> Answer:
    """GET /health: whether the daemon is well; what stands beside it depends on the version."""
    stopping = daemon.settings.shutting_down
    body: dict[str, Any] = {
        "status": "shutting_down" if stopping else "healthy",
        "uptime": daemon.clock() - daemon.started_at, "pid": os.getpid(),
        "version": daemon.behaviour.reported, "port": daemon.port, "agentsDir": str(daemon.workspace), "db": True,
    }  # fmt: skip
    kind = daemon.behaviour.health
    if kind == "small":
        return Answer({**body, "updateAvailable": False, "pendingRestart": False})
    body |= {"shuttingDown": stopping, "updateAvailable": False, "pendingRestart": False}
    if kind == "pipeline":
        body["pipeline"] = {
            "extractionRunning": False, "extractionStalled": False, "extractionPending": 0, "extractionBackoffMs": 0,
        }  # fmt: skip
    else:
        body |= {name: {"status": "healthy"} for name in ("dbWriter", "dbReader", "dbRuntime")}
    counts = dict.fromkeys(("total", "memoryMd", "sockets", "inotify", "pipes", "db", "other", "rss", "heapUsed"), 0)
    return Answer({**body, "resources": counts})


def ready(daemon: Daemon, _call: Call) -> Answer:
    """GET /health/live and /health/ready."""
    return Answer({"status": "ok"}, 503 if daemon.settings.shutting_down else 200)


def home(_daemon: Daemon, _call: Call) -> Answer:
    """GET /: a page for people."""
    return Answer(
        None,
        headers={"content-type": "text/html; charset=UTF-8"},
        text="<!DOCTYPE html><title>Embedded Signet daemon</title>",
    )


def status(daemon: Daemon, _call: Call) -> Answer:
    """GET status: what runs where."""
    body = {
        "status": "running", "version": daemon.behaviour.reported, "pid": os.getpid(),
        "uptime": daemon.clock() - daemon.started_at,
        "startedAt": iso(daemon.started_at), "port": daemon.port, "host": "127.0.0.1", "bindHost": "127.0.0.1",
        "networkMode": "localhost", "agentId": "default", "agentsDir": str(daemon.workspace), "memoryDb": True,
    }  # fmt: skip
    return Answer(body)


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
    """GET marketplace/mcp/:id: there is none."""
    return refusal(404, "Server not found")


def marketplace_call(_daemon: Daemon, call: Call) -> Answer:
    """POST marketplace/mcp/call: no server, no tool."""
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


def skill_invocation(daemon: Daemon, call: Call) -> Answer:
    """POST hooks/skill-invocation: noted."""
    if is_internal(call):
        return Answer({"recorded": False})
    body = call.json()
    fields = body if isinstance(body, dict) else {}
    if not text_or_none(fields.get("harness")):
        return refusal(400, "harness is required")
    skill = fields.get("skillName")
    if not text_or_none(fields.get("skill") if skill is None else skill):
        return refusal(400, "skillName is required")
    if daemon.behaviour.skill_conflict_is_409:
        refused = held_by_other(
            daemon, text_or_none(fields.get("sessionKey")), runtime_path(call, fields), plain_agent(fields)
        )
        if refused:
            return refused
    return Answer({"recorded": True})


def notifications(_daemon: Daemon, call: Call) -> Answer:
    """POST hooks/notifications: there are none."""
    if is_internal(call):
        return Answer({"inject": ""})
    fields = fields_of(call.json())
    if not truthy(fields.get("harness")) or not truthy(fields.get("hook")):
        return refusal(400, "harness and hook are required")
    resolve_agent(fields.get("agentId"), fields.get("sessionKey"))
    return Answer({"inject": "", "notifications": []})


def synthesis_config(_daemon: Daemon, _call: Call) -> Answer:
    """GET hooks/synthesis/config."""
    return Answer(_SYNTHESIS)


def synthesis_complete(_daemon: Daemon, call: Call) -> Answer:
    """POST hooks/synthesis/complete: there is no worker that could write."""
    if not truthy(fields_of(call.json()).get("content")):
        return refusal(400, "content is required")
    return refusal(503, "Synthesis worker not running")


def _entity_item(daemon: Daemon, row: sqlite3.Row, agent: str) -> dict[str, Any]:
    """One entity with how much is known of it."""
    aspects = daemon.store.number("SELECT COUNT(*) FROM entity_aspects WHERE entity_id = ?", row["id"])
    facts = """SELECT COUNT(*) FROM entity_attributes a JOIN entity_aspects s ON s.id = a.aspect_id
               WHERE s.entity_id = ? AND a.agent_id = ? AND a.status = 'active' AND a.kind = ?"""
    depends = "SELECT COUNT(*) FROM entity_dependencies WHERE source_entity_id = ? AND agent_id = ?"
    entity = {
        "id": row["id"], "name": row["name"], "canonicalName": row["canonical_name"], "entityType": row["entity_type"],
        "agentId": row["agent_id"], "mentions": row["mentions"], "pinned": bool(row["pinned"]), "status": "active",
        "pinnedAt": row["pinned_at"], "archivedAt": None, "archivedBy": None, "archiveReason": None,
        "proposalId": None, "proposalEvidence": [], "createdAt": row["created_at"], "updatedAt": row["updated_at"],
    }  # fmt: skip
    return {
        "entity": entity,
        "aspectCount": aspects,
        "attributeCount": daemon.store.number(facts, row["id"], agent, "attribute"),
        "constraintCount": daemon.store.number(facts, row["id"], agent, "constraint"),
        "dependencyCount": daemon.store.number(depends, row["id"], agent),
    }


def get_agent(daemon: Daemon, call: Call) -> Answer:
    """GET agents/:name."""
    found = next((row for row in daemon.agents.rows() if call.params["name"] in (row["id"], row["name"])), None)
    return Answer(found) if found else refusal(404, "Agent not found")


def list_agents(daemon: Daemon, _call: Call) -> Answer:
    """GET agents: those seen so far."""
    return Answer({"agents": daemon.agents.rows()})


def knowledge(daemon: Daemon, call: Call) -> Answer:
    """GET knowledge/stats, /communities, /hygiene, /entities and /navigation/:what."""
    agent = text_or_none(call.query.get("agent_id")) or "default"
    last = call.path.rsplit("/", 1)[-1]
    if last == "stats":
        return Answer(_knowledge_counts(daemon, agent))
    if last == "communities":
        return Answer({"items": [], "count": 0})
    if last == "hygiene":
        summary = {"missingGroupKey": 0, "missingClaimKey": 0, "missingSourceMemory": 0}
        return Answer(
            {
                "agentId": agent, "suspiciousEntities": [], "duplicateEntities": [], "attributeSummary": summary,
                "safeMentionCandidates": [],
            }
        )  # fmt: skip
    limit = leading_integer(call.query.get("limit"), 50)
    limit = 50 if limit is None else min(max(limit, 1), 200)
    offset = max(leading_integer(call.query.get("offset"), 0) or 0, 0)
    rows = daemon.store.rows(
        "SELECT * FROM entities WHERE agent_id = ? ORDER BY mentions DESC LIMIT ? OFFSET ?", agent, limit, offset
    )
    return Answer({"items": [_entity_item(daemon, row, agent) for row in rows], "limit": limit, "offset": offset})


def _knowledge_counts(daemon: Daemon, agent: str) -> dict[str, int]:
    def count(table: str, more: str = "") -> int:
        return daemon.store.number(f"SELECT COUNT(*) FROM {table} WHERE agent_id = ?{more}", agent)

    return {
        "entityCount": count("entities"), "aspectCount": count("entity_aspects"),
        "attributeCount": count("entity_attributes", " AND kind = 'attribute'"),
        "constraintCount": count("entity_attributes", " AND kind = 'constraint'"),
        "dependencyCount": count("entity_dependencies"), "unassignedMemoryCount": 0, "coveragePercent": 0,
        "feedbackUpdatedAspectCount": 0, "averageAspectWeight": 0, "maxWeightAspectCount": 0, "minWeightAspectCount": 0,
    }  # fmt: skip


def _providers() -> list[dict[str, Any]]:
    other = (("sso", "oidc"), ("saml", "saml"))
    return [
        {"id": "password", "type": "password", "enabled": False, "username": "admin"},
        *({"id": name, "type": kind, "enabled": False, "startPath": f"/api/auth/{name}/start"} for name, kind in other),
    ]


def whoami(daemon: Daemon, call: Call) -> Answer:
    """GET auth/whoami: what the daemon makes of the bearer's token. An API key counts for nothing here."""
    near = daemon.auth.mode == "hybrid" and call.claims is None
    return Answer(
        {
            "authenticated": call.claims is not None, "trustedLocal": near,
            "effectiveAccess": daemon.auth.mode == "local" or call.claims is not None or near,
            "claims": call.claims.shown() if call.claims else None, "mode": daemon.auth.mode, "providers": _providers(),
        }
    )  # fmt: skip


def auth_methods(daemon: Daemon, _call: Call) -> Answer:
    """GET auth/methods."""
    return Answer({"mode": daemon.auth.mode, "providers": _providers()})


def login(daemon: Daemon, call: Call) -> Answer:
    """POST auth/login: there is no password."""
    limited = daemon.auth.rate_problem(call, "login")
    if limited:
        return limited
    body = call.json_record()
    if not body:
        return refusal(400, "auth secret not available" if daemon.auth.mode == "local" else "invalid request body")
    if daemon.auth.mode == "local":
        return refusal(400, "auth secret not available")
    for name, most in (("username", 128), ("password", 1024)):
        if not isinstance(body.get(name), str) or not 0 < len(body[name]) <= most:
            return refusal(400, f"{name} is required")
    return refusal(503, "password login is not configured")


def make_token(daemon: Daemon, call: Call) -> Answer:
    """POST auth/token: a signed token for a role."""
    if daemon.auth.mode == "local":
        return refusal(400, "auth secret not available (local mode?)")
    body = call.json_record()
    if body is None:
        return refusal(400, "invalid request body")
    role = body.get("role")
    if role not in ROLES:
        return refusal(400, f"role must be one of: {', '.join(ROLES)}")
    given = body.get("ttlSeconds")
    seconds = given if isinstance(given, int | float) and not isinstance(given, bool) and given > 0 else _TOKEN_SECONDS
    scope = body.get("scope")
    token = daemon.auth.make_token(f"token:{role}", role, scope if isinstance(scope, dict) else {}, seconds)
    return Answer({"token": token, "expiresAt": iso(daemon.clock() + seconds)})


def list_keys(daemon: Daemon, _call: Call) -> Answer:
    """GET auth/api-keys."""
    return Answer({"apiKeys": daemon.auth.keys()})


def make_key(daemon: Daemon, call: Call) -> Answer:
    """POST auth/api-keys: 201 with the key, shown this once."""
    body = call.json_record()
    if body is None:
        return refusal(400, "invalid request body")
    name = text_or_none(body.get("name"))
    if not name:
        return refusal(400, "name is required")
    if isinstance(body.get("role"), str) and body["role"] not in ROLES:
        return refusal(400, f"role must be one of: {', '.join(ROLES)}")
    kinds = {
        "role": str,
        "scope": dict,
        "permissions": list,
        "connector": str,
        "harness": str,
        "agentId": str,
        "allowedProjects": list,
        "expiresAt": str,
    }
    traits = {key: body[key] for key, kind in kinds.items() if isinstance(body.get(key), kind)}
    try:
        return Answer({"apiKey": daemon.auth.make_key(name, **traits)}, 201)
    except ValueError as problem:
        return refusal(400, str(problem))


def revoke_key(daemon: Daemon, call: Call) -> Answer:
    """DELETE auth/api-keys/:id."""
    revoked = daemon.auth.revoke(call.params["id"])
    return Answer({"apiKey": revoked}) if revoked else refusal(404, "API key not found")
