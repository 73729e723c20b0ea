"""The operations on sessions: listing, bypass, renewal, transcripts, summaries and the search over them."""

from __future__ import annotations

import math
from typing import Any

from signet_conformance.daemon import js
from signet_conformance.daemon.state import Daemon
from signet_conformance.daemon.state.agents import resolve_agent
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest, RefusedError, demand, refusal


def _session_entry(daemon: Daemon, key: str, path: str, since: float, **more: Any) -> dict[str, Any]:
    bypassed = daemon.sessions.bypassed(key)
    return {"key": key, "runtimePath": path, "claimedAt": js.iso(since), **more, "bypassed": bypassed}


def _live(daemon: Daemon, agent: str) -> list[dict[str, Any]]:
    """The sessions of `agent`: claimed ones, and those that are only present; the newest first.

    0.58 lists the claimed ones of all agents, without their agents and times of expiry.
    """
    claims = daemon.sessions.active()
    if daemon.behaviour.early:
        return [_session_entry(daemon, claim.key, claim.path, claim.since) for claim in claims]
    sessions = {
        claim.key: _session_entry(
            daemon, claim.key, claim.path, claim.since, agentId=claim.agent, expiresAt=js.iso(claim.expires)
        )
        for claim in claims
        if claim.agent == agent
    }
    for entry in daemon.presence.entries():
        if not entry["session"] or entry["agent"] != agent:
            continue
        key = daemon.sessions.normal(entry["session"])
        if key not in sessions:
            sessions[key] = _session_entry(daemon, key, entry["path"] or "unknown", entry["since"], expiresAt=None)
    return sorted(sessions.values(), key=lambda session: str(session["claimedAt"]), reverse=True)


def _asking_agent(daemon: Daemon, call: DaemonRequest) -> str:
    """The agent that the query names; 0.58 ignores it."""
    return "" if daemon.behaviour.early else daemon.auth.scoped_agent(call.claims, call.query.get("agent_id"))


def list_sessions(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """GET sessions: those of an agent."""
    sessions = _live(daemon, _asking_agent(daemon, call))
    return DaemonAnswer({"sessions": sessions, "count": len(sessions)})


def _named_session(daemon: Daemon, call: DaemonRequest) -> tuple[dict[str, Any], str]:
    agent = _asking_agent(daemon, call)
    key = daemon.sessions.normal(call.params["key"])
    session = next((session for session in _live(daemon, agent) if session["key"] == key), None)
    if session is None:
        raise RefusedError(refusal(404, "Session not found"))
    return session, agent


def get_session(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """GET sessions/:key."""
    return DaemonAnswer(_named_session(daemon, call)[0])


def bypass_session(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST sessions/:key/bypass: switch the bypass of a session, whose hooks then answer with nothing, on or off."""
    key = _named_session(daemon, call)[0]["key"]
    error = "enabled (boolean) is required"
    enabled = call.json_record(error, optional=True).get("enabled")
    demand(isinstance(enabled, bool), error)
    daemon.sessions.bypass(key, on=bool(enabled))
    return DaemonAnswer({"key": key, "bypassed": enabled})


def renew_session(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST sessions/:key/renew: the claim gets its full time again."""
    session, agent = _named_session(daemon, call)
    if session["expiresAt"] is None:
        daemon.presence.touch(session["key"], agent)
        return DaemonAnswer({"key": session["key"], "renewed": True})
    expires = daemon.sessions.renew(session["key"], agent)
    return DaemonAnswer({"key": session["key"], "renewed": True, "expiresAt": expires})


def get_transcript(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """GET sessions/:key/transcript: the stored transcript of a session."""
    key = daemon.sessions.normal(call.params["key"])
    named = call.query.get("agent_id")
    agent = daemon.auth.scoped_agent(
        call.claims, resolve_agent(call.header("x-signet-agent-id") if named is None else named, key)
    )
    content = daemon.transcripts.get(key, agent)
    demand(content, "Transcript not found", 404)
    return DaemonAnswer({"sessionKey": key, "agentId": agent, "content": content})


def search_sessions(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST sessions/search: the stored transcripts that a query finds."""
    body = call.json_record(optional=True)
    query = js.text_or_none(body.get("query")) or ""
    demand(query, "query is required")

    def first(*names: str) -> str | None:
        return next((body[name] for name in names if isinstance(body.get(name), str)), None)

    named, current = first("agentId", "agent_id"), first("currentSessionKey", "current_session_key")
    named = call.query.get("agent_id") if named is None else named
    resolved = resolve_agent(named, first("sessionKey") if current is None else current)
    agent = daemon.auth.scoped_agent(call.claims, resolved)
    project = daemon.auth.scoped_project(call.claims, first("project") or call.query.get("project"))
    sent = body.get("limit")
    wanted = js.number_or_none(sent if js.is_number(sent) else call.query.get("limit"))
    limit = 10 if wanted is None else max(1, min(20, math.trunc(wanted)))
    key = js.text_or_none(first("sessionKey", "session_key"))
    hits = daemon.transcripts.search(query, agent, key=key, current=current, project=project, limit=limit)
    return DaemonAnswer({"query": query, "hits": hits, "count": len(hits)})


def list_summaries(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """GET sessions/summaries: the summaries of compactions, newest first."""

    def first(header: str, *names: str) -> str | None:
        given = (*map(call.query.get, names), call.header(header))
        return next(filter(None, map(js.text_or_none, given)), None)

    named, key = (
        first("x-signet-agent-id", "agent_id", "agentId"),
        first("x-signet-session-key", "session_key", "sessionKey"),
    )
    agent = daemon.auth.scoped_agent(call.claims, resolve_agent(named, key))
    depth = call.query.get("depth")
    number = js.number_or_none(depth) if depth is not None else 0
    if number is None or number < 0 or not float(number).is_integer():
        raise RefusedError(refusal(400, "depth must be a non-negative integer"))
    where, values = "agent_id = ?", [agent]
    project = daemon.auth.scoped_project(call.claims, call.query.get("project"))
    if project:
        where, values = f"{where} AND project = ?", [*values, project]
    if depth is not None:
        where, values = f"{where} AND depth = ?", [*values, str(int(number))]
    limit, offset = js.leading_integer(call.query.get("limit"), 50), js.leading_integer(call.query.get("offset"), 0)
    rows = daemon.store.rows(
        f"SELECT * FROM session_summaries WHERE {where} ORDER BY latest_at DESC LIMIT ? OFFSET ?",
        *values, 50 if limit is None else min(max(limit, 0), 200), max(offset or 0, 0),
    )  # fmt: skip
    total = daemon.store.number(f"SELECT COUNT(*) FROM session_summaries WHERE {where}", *values)
    return DaemonAnswer({"summaries": [{**dict(row), "childCount": 0} for row in rows], "total": total})


def expand_summary(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST sessions/summaries/expand: one summary, without relatives: this daemon stores none."""
    fields = js.fields_of(call.json_or_empty())
    node = js.text_or_none(fields.get("id"))
    demand(node, "id is required")
    named = fields.get("agentId") if isinstance(fields.get("agentId"), str) else call.header("x-signet-agent-id")
    key = fields.get("sessionKey") if isinstance(fields.get("sessionKey"), str) else call.header("x-signet-session-key")
    agent = daemon.auth.scoped_agent(call.claims, resolve_agent(named, key))
    row = daemon.store.row("SELECT * FROM session_summaries WHERE id = ? AND agent_id = ?", node, agent)
    if not row:
        return refusal(404, "summary node not found")
    return DaemonAnswer({"node": dict(row), "parents": [], "children": [], "linkedMemories": []})
