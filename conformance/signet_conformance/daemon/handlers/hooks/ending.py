"""The end of a session: its release, the transcript that is queued, and how far its capture is."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

from signet_conformance.daemon.handlers.hooks import is_internal, is_noise, runtime_path, same_marks, start_marks
from signet_conformance.daemon.handlers.hooks.prompting import sent_transcript
from signet_conformance.daemon.state.agents import named_agent, plain_agent
from signet_conformance.daemon.values import BLANKS, ScriptError, fields_of, read_moment, trimmed, truthy
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest, present, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from signet_conformance.daemon.state import Daemon

_LEAST_TRANSCRIPT: Final = 500


def session_end(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST hooks/session-end: the session is released; a transcript of 500 characters or more is queued."""
    if is_internal(call):
        return DaemonAnswer({"memoriesSaved": 0})
    fields = fields_of(call.json())
    if not truthy(fields.get("harness")):
        return refusal(400, "harness is required")
    if daemon.behaviour.end_has_capture_job and "capturedAt" in fields and read_moment(fields["capturedAt"]) is None:
        return refusal(400, "capturedAt must be an ISO timestamp")
    path = runtime_path(call, fields)
    key = fields.get("sessionKey") if truthy(fields.get("sessionKey")) else fields.get("sessionId")
    agent = plain_agent(fields)
    skipped = _dropped_end(daemon, key, path, agent)
    if skipped:
        return skipped
    if truthy(key) and path:
        daemon.sessions.claim(key, path, agent)
    if not truthy(key):
        return _end(daemon, fields, key)
    if daemon.sessions.bypassed(key):
        _close(daemon, key, agent, path)
        return DaemonAnswer({"memoriesSaved": 0, "bypassed": True})
    try:
        answer = _end(daemon, fields, key)
    except Exception:
        daemon.sessions.release(key, agent)
        daemon.presence.leave(key)
        raise
    _close(daemon, key, agent, path)
    return answer


def _close(daemon: Daemon, key: Any, agent: str, path: str | None) -> None:
    daemon.sessions.end(key, agent, path)
    daemon.presence.leave(key)


def _dropped_end(daemon: Daemon, key: Any, path: str | None, agent: str) -> DaemonAnswer | None:
    """The answer to an end that counts for nothing: a repeat within 30 minutes, or one from the other path."""
    if not truthy(key) or not (path or daemon.behaviour.tombstone_takes_claim_path):
        return None
    stone = daemon.sessions.tombstone_of(key, agent)
    if stone:
        if not stone.path:
            return None
        return DaemonAnswer({"memoriesSaved": 0, "skipped": True, "duplicateSessionEnd": True, "endedBy": stone.path})
    owner = daemon.sessions.owner(key, agent)
    if not path or not owner or owner == path:
        return None
    return DaemonAnswer({"memoriesSaved": 0, "skipped": True, "duplicateRuntimePath": True, "claimedBy": owner})


def _end(daemon: Daemon, fields: Mapping[str, Any], key: Any) -> DaemonAnswer:
    agent = named_agent(fields.get("agentId"), key, any_value=daemon.behaviour.agents_are_strangers)
    daemon.agents.register(agent)
    project = fields.get("project") if fields.get("project") is not None else fields.get("cwd")
    marks = start_marks(agent, fields, project, key_only=daemon.behaviour.start_marks_are_key_only)
    if daemon.behaviour.start_marks_are_key_only:
        daemon.started.forget(same_marks(marks))
    if fields.get("reason") == "clear":
        daemon.started.forget(same_marks(marks))
        if marks:
            daemon.epochs.advance("\0".join(marks[1:] or marks), agent)
        return DaemonAnswer({"memoriesSaved": 0})
    transcript = sent_transcript(fields)
    stored = daemon.transcripts.get(str(key), agent) if truthy(key) else ""
    transcript = max(transcript, stored, key=len)
    trimmed(fields.get("sessionId"))
    trimmed(fields.get("transcriptPath"))
    if transcript and truthy(key):
        daemon.transcripts.store(
            str(key), agent, transcript, harness=fields["harness"], project=fields.get("cwd"), now=daemon.now()
        )
    daemon.graph.drop_facts_of_deleted(agent)
    noise = is_noise(project=fields.get("cwd"), key=key, harness=fields["harness"])
    queued = len(transcript) >= _LEAST_TRANSCRIPT and not noise
    if queued and isinstance(fields.get("cwd"), dict | list):
        raise ScriptError("a project that cannot be stored")
    job = str(uuid.uuid4()) if queued else None
    if not daemon.behaviour.end_has_capture_job:
        said = queued if len(transcript) >= _LEAST_TRANSCRIPT or daemon.behaviour.end_says_queued else None
        return DaemonAnswer(present(memoriesSaved=0, queued=said, jobId=job))
    captured = daemon.captures.add(transcript, agent) if transcript.strip(BLANKS) else None
    return DaemonAnswer(present(memoriesSaved=0, queued=queued, transcriptCaptureJobId=captured))


def capture_status(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """GET hooks/transcript-capture/:jobId."""
    status = daemon.captures.status(call.params["jobId"], call.query.get("agentId") or "default")
    return DaemonAnswer(status) if status else refusal(404, "transcript capture job not found")
