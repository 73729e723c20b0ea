"""The sessions of 0.58: those that a start claimed, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from signet_conformance.daemon.timestamps import iso
from signet_conformance.daemon.wire import Answer, Call, refusal

if TYPE_CHECKING:
    from signet_conformance.daemon.state.daemon import Daemon

_UNKNOWN = "Session not found"


def _live(daemon: Daemon) -> list[dict[str, Any]]:
    return [
        {
            "key": claim.key, "runtimePath": claim.path, "claimedAt": iso(claim.since),
            "bypassed": daemon.sessions.bypassed(claim.key),
        }
        for claim in daemon.sessions.active()
    ]  # fmt: skip


def list_sessions(daemon: Daemon, _call: Call) -> Answer:
    """GET sessions."""
    sessions = _live(daemon)
    return Answer({"sessions": sessions, "count": len(sessions)})


def get_session(daemon: Daemon, call: Call) -> Answer:
    """GET sessions/:key, which hides sessions/summaries."""
    session = next((session for session in _live(daemon) if session["key"] == call.params["key"]), None)
    return Answer(session) if session else refusal(404, _UNKNOWN)


def bypass_session(daemon: Daemon, call: Call) -> Answer:
    """POST sessions/:key/bypass: hooks of the session answer with nothing, or again as usual."""
    key = call.params["key"]
    if not any(session["key"] == key for session in _live(daemon)):
        return refusal(404, _UNKNOWN)
    body = call.optional_record()
    enabled = body.get("enabled") if body else None
    if not isinstance(enabled, bool):
        return refusal(400, "enabled (boolean) is required")
    daemon.sessions.bypass(key, on=enabled)
    return Answer({"key": key, "bypassed": enabled})
