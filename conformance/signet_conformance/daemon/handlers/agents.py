"""Handlers for agents: the known ones, the presence of their sessions, and the messages between them."""

from __future__ import annotations

import uuid
from typing import Final

from signet_conformance.daemon import js
from signet_conformance.daemon.state import Daemon
from signet_conformance.daemon.state.agents import resolve_agent
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest, demand, present, refusal

_MOST_CHARACTERS: Final = 65_536
_TYPES: Final = ("assist_request", "decision_update", "info", "question")


def post_presence(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST cross-agent/presence: register a session as present."""
    body = call.json_record("invalid request body", optional=True)
    harness = js.text_or_none(body.get("harness"))
    demand(harness, "harness is required")
    session = js.text_or_none(body.get("sessionKey"))
    agent = daemon.auth.scoped_agent(call.claims, resolve_agent(js.text_or_none(body.get("agentId")), session))
    path = js.text_or_none(body.get("runtimePath"))
    entry = daemon.presence.register(
        session=session, agent=agent, harness=harness, project=js.text_or_none(body.get("project")),
        path=path if path in ("plugin", "legacy") else None,
    )  # fmt: skip
    return DaemonAnswer({"presence": {**entry, "provider": js.text_or_none(body.get("provider")) or harness}})


def delete_presence(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """DELETE cross-agent/presence/:sessionKey: remove a session."""
    return DaemonAnswer({"removed": daemon.presence.leave(call.params["sessionKey"])})


def post_message(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST cross-agent/messages: accept a message without storing it: inboxes are empty here. Relays are refused."""
    body = call.json_record("invalid request body", optional=True)
    content, kind = js.text_or_none(body.get("content")) or "", js.text_or_none(body.get("type"))
    demand(content, "content is required")
    demand(len(content) <= _MOST_CHARACTERS, f"content too large (max {_MOST_CHARACTERS} chars)")
    demand(not kind or kind in _TYPES, f"unsupported message type '{kind}'")
    sender = daemon.auth.scoped_agent(call.claims, js.text_or_none(body.get("fromAgentId")))
    to_agent, to_session = js.text_or_none(body.get("toAgentId")), js.text_or_none(body.get("toSessionKey"))
    broadcast = js.flag(body.get("broadcast")) or False
    by_relay = js.text_or_none(body.get("via")) == "acp"
    demand(not by_relay, "acp.baseUrl and acp.targetAgentName are required when via='acp'")
    local = broadcast or to_agent or to_session
    demand(local, "local target required (toAgentId, toSessionKey, or broadcast=true)")
    message = present(
        id=str(uuid.uuid4()),
        createdAt=daemon.now(),
        fromAgentId=sender,
        fromSessionKey=js.text_or_none(body.get("fromSessionKey")),
        toAgentId=to_agent,
        toSessionKey=to_session,
        toSessionAgentId=to_agent if to_session else None,
        content=content,
        type=kind or "info",
        broadcast=broadcast,
        deliveryPath="local",
        deliveryStatus="delivered",
    )
    return DaemonAnswer({"message": message})


def get_agent(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """GET agents/:name."""
    agent = next((row for row in daemon.agents.rows() if call.params["name"] in (row["id"], row["name"])), None)
    return DaemonAnswer(agent) if agent else refusal(404, "Agent not found")


def list_agents(daemon: Daemon, _call: DaemonRequest) -> DaemonAnswer:
    """GET agents: those seen so far."""
    return DaemonAnswer({"agents": daemon.agents.rows()})
