"""The hooks at the start and the end of a session: claim, injected context, release, transcript."""

from __future__ import annotations

import hashlib
import math
import uuid
from collections.abc import Mapping
from datetime import datetime
from itertools import accumulate
from typing import Any, Final

from signet_conformance.daemon import js
from signet_conformance.daemon.handlers import hooks
from signet_conformance.daemon.handlers.hooks.prompting import CONTEXT_VERSION, sent_transcript
from signet_conformance.daemon.state import Daemon, agents
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest, demand, present, refusal

_MOST_MEMORIES: Final = 50
_INJECT_CHARACTERS: Final = 48_000
_LEAST_WEIGHT: Final = 0.2
_DAY_SECONDS: Final = 86_400
#: The fields of each memory in the answer to a start.
_START_FIELDS: Final = ("id", "content", "type", "importance", "created_at")
_MARKER: Final = "[memory active | /remember | /recall]"
_INTRODUCTION: Final = "[signet active]\nAn embedded Signet daemon for tests keeps the memory of this session."


def session_start(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST hooks/session-start: return the context of a new session, or a stub if it was returned before."""
    fields = hooks.read_fields(call, {"inject": "", "memories": []}, "harness")
    path = hooks.runtime_path(call, fields)
    key = fields.get("sessionKey")
    claim_only = daemon.behaviour.claim_only and fields.get("claimOnly") is True
    demand(path or not claim_only, "claimOnly requires a runtime path")
    if js.truthy(key) and path:
        hooks.claim(daemon, key, path, agents.resolve_agent(fields.get("agentId"), key))
    hooks.register_session(daemon, fields, path)
    if hooks.is_bypassed(daemon, fields):
        return DaemonAnswer({"inject": "", "memories": [], "bypassed": True})
    if claim_only:
        return DaemonAnswer({"sessionKnown": True})
    return _start(daemon, fields, key)


def _agent_of(daemon: Daemon, fields: Mapping[str, Any], key: Any) -> str:
    """The agent of a start; a name that is not a text makes the start fail in every version."""
    given = fields.get("agentId")
    return agents.named_agent(given, key, any_value=daemon.behaviour.agents_are_strangers and isinstance(given, str))


def _start(daemon: Daemon, fields: Mapping[str, Any], key: Any) -> DaemonAnswer:
    agent = _agent_of(daemon, fields, key)
    daemon.agents.register(agent)
    js.trimmed(fields["harness"])
    project = fields.get("project") if fields.get("project") is not None else fields.get("cwd")
    dedupe_key = hooks.dedupe_key_of(daemon, agent, fields, project)
    epoch_key = None if dedupe_key is None else "\0".join(dedupe_key[1:] or dedupe_key)
    if daemon.behaviour.context_epochs and (js.trimmed(fields.get("source")) or "").lower() == "clear":
        daemon.started.forget(dedupe_key)
        if js.text_or_none(key):
            daemon.epochs.advance(epoch_key, agent)
            daemon.transcripts.drop(str(key), agent)
    if js.truthy(fields.get("project")) and not isinstance(fields["project"], str):
        raise js.ScriptError("a project is not a path")
    warnings = daemon.sessions.warnings(key, agent) if js.truthy(key) else None
    today = f"# Current Date & Time\n{js.date_line(daemon.clock())}"
    if dedupe_key is not None and daemon.started.contains(dedupe_key):
        stub = present(**stub_of(today), warnings=warnings)
        return DaemonAnswer(_with_envelope(daemon, stub, "", today))
    memories = memories_for(daemon, agent, fields.get("project"))
    if epoch_key is not None and memories and daemon.behaviour.context_epochs:
        ids = [memory["id"] for memory in memories]
        shown = daemon.epochs.already_shown(epoch_key, agent, ids)
        memories = [memory for memory in memories if memory["id"] not in shown]
        daemon.epochs.note_shown(epoch_key, agent, ids)
    if js.truthy(key):
        daemon.store.run_many(
            "INSERT OR IGNORE INTO shown_memories VALUES (?, ?, ?)",
            [(str(key), agent, memory["id"]) for memory in memories],
        )
    stable, answer = full_answer(daemon, memories, today, warnings)
    if dedupe_key is not None:
        daemon.started.remember(dedupe_key)
    return DaemonAnswer(_with_envelope(daemon, answer, stable, answer["inject"].removeprefix(stable)))


def full_answer(
    daemon: Daemon, memories: list[dict[str, Any]], today: str, warnings: list[str] | None = None
) -> tuple[str, dict[str, Any]]:
    """The part of the injected text that does not change within a session, and the whole answer to a start."""
    daemon.count_reads([memory["id"] for memory in memories])
    recent = agents.working_memory(daemon.workspace)
    stable, inject = _context_of(daemon, memories, recent, today)
    answer = present(
        identity=agents.identity_of(daemon.workspace),
        memories=[{name: memory[name] for name in _START_FIELDS} for memory in memories],
        recentContext=recent,
        inject=inject,
        warnings=warnings,
    )
    return stable, answer


def stub_of(today: str) -> dict[str, Any]:
    """The short answer to a start that was answered in full before."""
    return {"identity": {"name": "Agent"}, "memories": [], "inject": f"{_MARKER}\n{today}"}


def _with_envelope(daemon: Daemon, answer: dict[str, Any], stable: str, dynamic: str) -> dict[str, Any]:
    if not daemon.behaviour.start_has_envelope:
        return answer
    return {
        **answer,
        "stableSystemPrompt": stable,
        "dynamicContext": dynamic,
        "contextHash": hashlib.sha256(answer["inject"].encode()).hexdigest(),
        "contextVersion": CONTEXT_VERSION,
    }


def memories_for(daemon: Daemon, agent: str, project: Any, room: int = _INJECT_CHARACTERS) -> list[dict[str, Any]]:
    """The memories worth showing at a start: those of the project first, then by importance and age.

    They hold `room` characters at most.
    """
    visible, values = daemon.agents.visible(agent)
    rows = daemon.store.rows(
        f"SELECT m.* FROM memories m WHERE m.is_deleted = 0{visible} ORDER BY m.created_at DESC LIMIT 300", *values
    )
    weighed = [(weight, dict(row)) for row in rows if (weight := _weight(row, daemon.clock())) > _LEAST_WEIGHT]
    weighed.sort(key=lambda pair: (bool(project) and pair[1]["project"] == project, pair[0]), reverse=True)
    return fitting([row for _, row in weighed[:_MOST_MEMORIES]], room)


def fitting(memories: list[dict[str, Any]], room: int) -> list[dict[str, Any]]:
    """The first of the memories, as many as hold `room` characters at most."""
    sizes = accumulate(len(memory["content"]) for memory in memories)
    return [memory for memory, size in zip(memories, sizes, strict=True) if size <= room]


def _weight(row: Any, now: float) -> float:
    if row["pinned"]:
        return 1.0
    if not isinstance(row["importance"], int | float):
        return 0.0
    age = max(0.0, now - (js.read_moment(row["created_at"]) or now)) / _DAY_SECONDS
    return float(row["importance"]) * math.pow(0.95, age)


def dated(memory: Mapping[str, Any]) -> str:
    """The line of a memory in an injected text of 0.58."""
    day = datetime.fromisoformat(memory["created_at"])
    tags = f" [{memory['tags']}]" if memory["tags"] else ""
    return f"- {memory['content']}{tags} ({day:%b} {day.day}, {day.year})"


def _context_of(daemon: Daemon, memories: list[dict[str, Any]], recent: str | None, today: str) -> tuple[str, str]:
    """The part of the injected text that does not change within a session, and the whole of it."""
    early = daemon.behaviour.early
    stable = [_MARKER] if early else [_INTRODUCTION, _MARKER]
    rules = agents.instructions(daemon.workspace)
    if rules:
        stable.append(f"## Agent Instructions\n\n{rules}")
    parts = [f"\n{today}\n"]
    if recent:
        parts.append(f"## Working Memory\n\n{recent}")
    if memories:
        lines = [
            dated(memory) if early else f"- {memory['content']} ({datetime.fromisoformat(memory['created_at']):%b %d})"
            for memory in memories
        ]
        parts.append("\n".join(["## Relevant Memories\n", *lines]))
    names = daemon.secrets.names()
    if names:
        parts.append("\n".join(["## Available Secrets\n", *(f"- {name}" for name in names)]))
    head = "\n".join(stable)
    return head, "\n".join([head, *parts])[:_INJECT_CHARACTERS]


_LEAST_TRANSCRIPT: Final = 500


def session_end(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST hooks/session-end: release the session, and queue a transcript of 500 characters or more."""
    fields = hooks.read_fields(call, {"memoriesSaved": 0}, "harness")
    if daemon.behaviour.end_has_capture_job and "capturedAt" in fields:
        demand(js.read_moment(fields["capturedAt"]) is not None, "capturedAt must be an ISO timestamp")
    path = hooks.runtime_path(call, fields)
    key = fields.get("sessionKey") if js.truthy(fields.get("sessionKey")) else fields.get("sessionId")
    agent = agents.plain_agent(fields)
    skipped = _dropped_end(daemon, key, path, agent)
    if skipped:
        return skipped
    if js.truthy(key) and path:
        daemon.sessions.claim(key, path, agent)
    if not js.truthy(key):
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
    """The answer to an end that has no effect: a repeat within 30 minutes, or one from the other path."""
    if not js.truthy(key) or not (path or daemon.behaviour.tombstone_takes_claim_path):
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
    agent = agents.named_agent(fields.get("agentId"), key, any_value=daemon.behaviour.agents_are_strangers)
    daemon.agents.register(agent)
    project = fields.get("project") if fields.get("project") is not None else fields.get("cwd")
    dedupe_key = hooks.dedupe_key_of(daemon, agent, fields, project)
    if daemon.behaviour.dedupe_key_is_session_key or fields.get("reason") == "clear":
        daemon.started.forget(dedupe_key)
    if fields.get("reason") == "clear":
        if dedupe_key:
            daemon.epochs.advance("\0".join(dedupe_key[1:] or dedupe_key), agent)
        return DaemonAnswer({"memoriesSaved": 0})
    transcript = sent_transcript(fields)
    stored = daemon.transcripts.get(str(key), agent) if js.truthy(key) else ""
    transcript = max(transcript, stored, key=len)
    js.trimmed(fields.get("sessionId"))
    js.trimmed(fields.get("transcriptPath"))
    if transcript and js.truthy(key):
        daemon.transcripts.store(str(key), agent, transcript, harness=fields["harness"], project=fields.get("cwd"))
    daemon.graph.drop_facts_of_deleted(agent)
    noise = hooks.is_noise(project=fields.get("cwd"), key=key, harness=fields["harness"])
    queued = len(transcript) >= _LEAST_TRANSCRIPT and not noise
    if queued and isinstance(fields.get("cwd"), dict | list):
        raise js.ScriptError("a project that cannot be stored")
    job = str(uuid.uuid4()) if queued else None
    if not daemon.behaviour.end_has_capture_job:
        said = queued if len(transcript) >= _LEAST_TRANSCRIPT or daemon.behaviour.end_says_queued else None
        return DaemonAnswer(present(memoriesSaved=0, queued=said, jobId=job))
    captured = daemon.captures.add(agent) if transcript.strip(js.BLANKS) else None
    return DaemonAnswer(present(memoriesSaved=0, queued=queued, transcriptCaptureJobId=captured))


def capture_status(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """GET hooks/transcript-capture/:jobId."""
    status = daemon.captures.status(call.params["jobId"], call.query.get("agentId") or "default")
    return DaemonAnswer(status) if status else refusal(404, "transcript capture job not found")
