"""How far a transcript capture is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from signet_conformance.daemon.wire import Answer, Call, refusal

if TYPE_CHECKING:
    from signet_conformance.daemon.state.daemon import Daemon


def capture_status(daemon: Daemon, call: Call) -> Answer:
    """GET hooks/transcript-capture/:jobId."""
    status = daemon.captures.status(call.params["jobId"], call.query.get("agentId") or "default")
    return Answer(status) if status else refusal(404, "transcript capture job not found")
