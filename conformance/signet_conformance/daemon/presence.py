"""Which agents are at work, and the messages they leave each other."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from signet_conformance.daemon.agents import resolve_agent
from signet_conformance.daemon.timestamps import iso, read_moment
from signet_conformance.daemon.values import flag, positive_integer, text_or_none, trimmed
from signet_conformance.daemon.wire import Answer, Call, present, refusal

if TYPE_CHECKING:
    from signet_conformance.daemon.agents import resolve_agent
    from signet_conformance.daemon.state import Daemon
from signet_conformance.daemon.timestamps import Clock

_STALE_SECONDS: Final = 4 * 3600
_KEPT_SECONDS: Final = 7 * 24 * 3600
_MOST_MESSAGES: Final = 1000
_MOST_CHARACTERS: Final = 65_536
_TYPES: Final = ("assist_request", "decision_update", "info", "question")


class Presence:
    """The sessions seen in the last four hours and the messages of the last seven days, in memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sessions: dict[str, dict[str, Any]] = {}
        self._messages: list[dict[str, Any]] = []

    def _prune(self) -> None:
        now = self._clock()
        self._sessions = {
            slot: entry for slot, entry in self._sessions.items() if now - entry["seen"] <= _STALE_SECONDS
        }
        self._messages = [message for message in self._messages if now - message["sent"] <= _KEPT_SECONDS][
            -_MOST_MESSAGES:
        ]

    def meet(
        self, *, session: str | None, agent: str, harness: Any, project: str | None, path: str | None
    ) -> dict[str, Any]:
        """Note that `agent` is at work; `harness` must be a string (`ScriptError`). Returns the public entry."""
        self._prune()
        name = trimmed(harness) or "unknown"
        slot = (
            f"session:{session}"
            if session
            else "ephemeral:" + ":".join(quote(part, safe="!'()*~") for part in (agent, name, project or "*"))
        )
        entry = self._sessions.setdefault(slot, {"since": self._clock()})
        entry |= {"key": slot, "session": session, "agent": agent, "harness": name, "project": project, "path": path}
        entry["seen"] = self._clock()
        return _public(entry)

    def touch(self, session: str, agent: str | None = None) -> bool:
        """Note that the session (of `agent`, when given) is still at work; False when it is not known."""
        self._prune()
        entry = self._sessions.get(f"session:{session}")
        if not entry or (agent and entry["agent"] != agent):
            return False
        entry["seen"] = self._clock()
        return True

    def leave(self, session: Any) -> bool:
        """Forget the session; False when it was not known."""
        return self._sessions.pop(f"session:{trimmed(session)}", None) is not None

    def agent_of(self, session: str) -> str | None:
        """The agent of a known session."""
        self._prune()
        entry = self._sessions.get(f"session:{session}")
        return entry["agent"] if entry else None

    def entries(self) -> list[dict[str, Any]]:
        """Every known session as kept (session, agent, path, since), the last seen first."""
        self._prune()
        return sorted(self._sessions.values(), key=lambda entry: -entry["seen"])

    def others(
        self, *, agent: str, session: str | None, project: str | None, everyone: bool, limit: int
    ) -> list[dict[str, Any]]:
        """The public entries of sessions other than the asking one, latest first."""
        self._prune()
        found = [
            entry
            for entry in self._sessions.values()
            if (not project or entry["project"] == project)
            and (everyone or entry["agent"] != agent or (session and entry["session"] and entry["session"] != session))
        ]
        found.sort(key=lambda entry: entry["seen"], reverse=True)
        return [_public(entry) for entry in found[:limit]]

    def post(self, message: dict[str, Any]) -> dict[str, Any]:
        """Keep `message` and return it with its id and moment."""
        self._prune()
        sent = self._clock()
        public = {"id": str(uuid.uuid4()), "createdAt": iso(sent), **message}
        self._messages.append({"sent": sent, "public": public})
        return public

    def inbox(
        self, *, agent: str, session: str | None, since: float | None, sent: bool, broadcast: bool, limit: int
    ) -> list[dict[str, Any]]:
        """The messages for `agent` or its session, latest first."""
        self._prune()

        def mine(public: dict[str, Any]) -> bool:
            return (
                (session is not None and public.get("toSessionKey") == session)
                or agent in (public.get("toAgentId"), public.get("toSessionAgentId"))
                or (broadcast and public["broadcast"])
                or (sent and public["fromAgentId"] == agent)
            )

        found = [
            message["public"]
            for message in self._messages
            if (since is None or message["sent"] >= since) and mine(message["public"])
        ]
        return found[::-1][:limit]


def _public(entry: dict[str, Any]) -> dict[str, Any]:
    return present(
        key=entry["key"], sessionKey=entry["session"], agentId=entry["agent"], harness=entry["harness"],
        project=entry["project"], runtimePath=entry["path"], provider=entry["harness"],
        startedAt=iso(entry["since"]), lastSeenAt=iso(entry["seen"]),
    )  # fmt: skip


def list_presence(daemon: Daemon, call: Call) -> Answer:
    """GET cross-agent/presence: the other sessions at work."""
    agent, problem = daemon.auth.scoped_agent(call.claims, text_or_none(call.query.get("agent_id")))
    if problem:
        return refusal(403, problem)
    found = daemon.presence.others(
        agent=agent,
        session=text_or_none(call.query.get("session_key")),
        project=text_or_none(call.query.get("project")),
        everyone=flag(call.query.get("include_self")) or False,
        limit=positive_integer(call.query.get("limit")) or 50,
    )
    return Answer({"sessions": found, "count": len(found)})


def post_presence(daemon: Daemon, call: Call) -> Answer:
    """POST cross-agent/presence: a session says that it is at work."""
    body = call.optional_record()
    if body is None:
        return refusal(400, "invalid request body")
    harness = text_or_none(body.get("harness"))
    if not harness:
        return refusal(400, "harness is required")
    session = text_or_none(body.get("sessionKey"))
    agent, problem = daemon.auth.scoped_agent(call.claims, resolve_agent(text_or_none(body.get("agentId")), session))
    if problem:
        return refusal(403, problem)
    path = text_or_none(body.get("runtimePath"))
    entry = daemon.presence.meet(
        session=session, agent=agent, harness=harness, project=text_or_none(body.get("project")),
        path=path if path in ("plugin", "legacy") else None,
    )  # fmt: skip
    return Answer({"presence": {**entry, "provider": text_or_none(body.get("provider")) or harness}})


def delete_presence(daemon: Daemon, call: Call) -> Answer:
    """DELETE cross-agent/presence/:sessionKey: a session has gone."""
    return Answer({"removed": daemon.presence.leave(call.params["sessionKey"])})


def list_messages(daemon: Daemon, call: Call) -> Answer:
    """GET cross-agent/messages: the inbox of an agent."""
    agent, problem = daemon.auth.scoped_agent(call.claims, text_or_none(call.query.get("agent_id")))
    if problem:
        return refusal(403, problem)
    broadcast = flag(call.query.get("include_broadcast"))
    items = daemon.presence.inbox(
        agent=agent,
        session=text_or_none(call.query.get("session_key")),
        since=read_moment(call.query.get("since")),
        sent=flag(call.query.get("include_sent")) or False,
        broadcast=True if broadcast is None else broadcast,
        limit=positive_integer(call.query.get("limit")) or 100,
    )
    return Answer({"items": items, "count": len(items)})


def post_message(daemon: Daemon, call: Call) -> Answer:
    """POST cross-agent/messages: a message to an agent, a session or everyone. Relays to other servers are refused."""
    body = call.optional_record()
    if body is None:
        return refusal(400, "invalid request body")
    content = text_or_none(body.get("content"))
    if not content:
        return refusal(400, "content is required")
    if len(content) > _MOST_CHARACTERS:
        return refusal(400, f"content too large (max {_MOST_CHARACTERS} chars)")
    kind = text_or_none(body.get("type"))
    if kind and kind not in _TYPES:
        return refusal(400, f"unsupported message type '{kind}'")
    sender, problem = daemon.auth.scoped_agent(call.claims, text_or_none(body.get("fromAgentId")))
    if problem:
        return refusal(403, problem)
    to_agent, to_session = text_or_none(body.get("toAgentId")), text_or_none(body.get("toSessionKey"))
    broadcast = flag(body.get("broadcast")) or False
    if text_or_none(body.get("via")) == "acp":
        return refusal(400, "acp.baseUrl and acp.targetAgentName are required when via='acp'")
    if not (broadcast or to_agent or to_session):
        return refusal(400, "local target required (toAgentId, toSessionKey, or broadcast=true)")
    message = present(
        fromAgentId=sender,
        fromSessionKey=text_or_none(body.get("fromSessionKey")),
        toAgentId=to_agent,
        toSessionKey=to_session,
        toSessionAgentId=(to_agent or daemon.presence.agent_of(to_session)) if to_session else None,
        content=content,
        type=kind or "info",
        broadcast=broadcast,
        deliveryPath="local",
        deliveryStatus="delivered",
    )
    return Answer({"message": daemon.presence.post(message)})
