"""Which agents are at work, and the messages they leave each other."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from signet_conformance.daemon.timestamps import iso
from signet_conformance.daemon.values import trimmed
from signet_conformance.daemon.wire import present

if TYPE_CHECKING:
    pass
from signet_conformance.daemon.timestamps import Clock

_STALE_SECONDS: Final = 4 * 3600
_KEPT_SECONDS: Final = 7 * 24 * 3600
_MOST_MESSAGES: Final = 1000


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
        entries = [
            entry
            for entry in self._sessions.values()
            if (not project or entry["project"] == project)
            and (everyone or entry["agent"] != agent or (session and entry["session"] and entry["session"] != session))
        ]
        entries.sort(key=lambda entry: entry["seen"], reverse=True)
        return [_public(entry) for entry in entries[:limit]]

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

        messages = [
            message["public"]
            for message in self._messages
            if (since is None or message["sent"] >= since) and mine(message["public"])
        ]
        return messages[::-1][:limit]


def _public(entry: dict[str, Any]) -> dict[str, Any]:
    return present(
        key=entry["key"], sessionKey=entry["session"], agentId=entry["agent"], harness=entry["harness"],
        project=entry["project"], runtimePath=entry["path"], provider=entry["harness"],
        startedAt=iso(entry["since"]), lastSeenAt=iso(entry["seen"]),
    )  # fmt: skip
