"""The hooks of a session's life: start, prompt and end."""

from __future__ import annotations

import hashlib
import math
import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from signet_conformance.daemon.agents import resolve_agent
from signet_conformance.daemon.hook_calls import (
    claim,
    conflict,
    is_bypassed,
    is_internal,
    is_noise,
    plain_agent,
    runtime_path,
    same_marks,
    start_marks,
)
from signet_conformance.daemon.identity import identity_of, instructions, working_memory
from signet_conformance.daemon.prompt_context import context_for
from signet_conformance.daemon.terms import subject_words, without_envelope
from signet_conformance.daemon.timestamps import read_moment, spoken
from signet_conformance.daemon.transcripts import plain_lines, read_file
from signet_conformance.daemon.values import BLANKS, ScriptError, fields_of, text_or_none, trimmed, truthy
from signet_conformance.daemon.wire import Answer, Call, present, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from signet_conformance.daemon.state import Daemon

_MOST_MEMORIES: Final = 50
_INJECT_CHARACTERS: Final = 48_000
_LEAST_WEIGHT: Final = 0.2
_LEAST_TRANSCRIPT: Final = 500
_DAY_SECONDS: Final = 86_400
_MARKER: Final = "[memory active | /remember | /recall]"
_INTRODUCTION: Final = "[signet active]\nAn embedded Signet daemon for tests keeps the memory of this session."
_CONTEXT_VERSION: Final = 1


def session_start(daemon: Daemon, call: Call) -> Answer:
    """POST hooks/session-start: the context of a new session, or a stub when it was handed out before."""
    if is_internal(call):
        return Answer({"inject": "", "memories": []})
    fields = fields_of(call.json())
    if not truthy(fields.get("harness")):
        return refusal(400, "harness is required")
    path = runtime_path(call, fields)
    key = fields.get("sessionKey")
    claim_only = daemon.behaviour.claim_only and fields.get("claimOnly") is True
    if claim_only and not path:
        return refusal(400, "claimOnly requires a runtime path")
    if truthy(key) and path:
        holder = daemon.sessions.claim(key, path, resolve_agent(fields.get("agentId"), key))
        if holder:
            return conflict(holder)
    daemon.presence.meet(
        session=text_or_none(key), agent=plain_agent(fields), harness=fields["harness"],
        project=text_or_none(fields.get("project")), path=path,
    )  # fmt: skip
    if is_bypassed(daemon, fields):
        return Answer({"inject": "", "memories": [], "bypassed": True})
    if claim_only:
        return Answer({"sessionKnown": True})
    return _start(daemon, fields, key)


def _start(daemon: Daemon, fields: Mapping[str, Any], key: Any) -> Answer:
    agent = resolve_agent(fields.get("agentId"), key)
    daemon.agents.register(agent)
    trimmed(fields["harness"])
    project = fields.get("project") if fields.get("project") is not None else fields.get("cwd")
    marks = start_marks(agent, fields, project, key_only=daemon.behaviour.start_marks_are_key_only)
    shown_as = None if marks is None else "\0".join(marks[1:] or marks)
    if daemon.behaviour.context_epochs and (trimmed(fields.get("source")) or "").lower() == "clear":
        daemon.started.forget(same_marks(marks))
        if text_or_none(key):
            daemon.epochs.advance(shown_as, agent)
            daemon.transcripts.drop(str(key), agent)
    if truthy(fields.get("project")) and not isinstance(fields["project"], str):
        raise ScriptError("a project is no path")
    warnings = daemon.sessions.warnings(key, agent) if truthy(key) else None
    today = f"# Current Date & Time\n{spoken(daemon.clock())}"
    if marks is not None and daemon.started.seen(marks):
        stub = present(identity={"name": "Agent"}, memories=[], inject=f"{_MARKER}\n{today}", warnings=warnings)
        return Answer(_with_envelope(daemon, stub, "", today))
    memories = _memories_for(daemon, agent, fields.get("project"))
    if shown_as is not None and memories:
        ids = [memory["id"] for memory in memories]
        shown = daemon.epochs.shown(shown_as, agent, ids)
        memories = [memory for memory in memories if memory["id"] not in shown]
        daemon.epochs.show(shown_as, agent, ids)
    if truthy(key):
        daemon.store.run_many(
            "INSERT OR IGNORE INTO shown_memories VALUES (?, ?, ?)",
            [(str(key), agent, memory["id"]) for memory in memories],
        )
    daemon.store.run_many(
        "UPDATE memories SET access_count = access_count + 1, last_accessed = datetime(?, 'unixepoch') WHERE id = ?",
        [(int(daemon.clock()), memory["id"]) for memory in memories],
    )
    recent = working_memory(daemon.workspace)
    stable, inject = _inject(daemon, memories, recent, today)
    if marks is not None:
        daemon.started.remember(marks)
    answer = present(
        identity=identity_of(daemon.workspace),
        memories=[
            {name: memory[name] for name in ("id", "content", "type", "importance", "created_at")}
            for memory in memories
        ],
        recentContext=recent,
        inject=inject,
        warnings=warnings,
    )
    return Answer(_with_envelope(daemon, answer, stable, inject.removeprefix(stable)))


def _with_envelope(daemon: Daemon, answer: dict[str, Any], stable: str, dynamic: str) -> dict[str, Any]:
    if not daemon.behaviour.start_has_envelope:
        return answer
    return {
        **answer,
        "stableSystemPrompt": stable,
        "dynamicContext": dynamic,
        "contextHash": hashlib.sha256(answer["inject"].encode()).hexdigest(),
        "contextVersion": _CONTEXT_VERSION,
    }


def _memories_for(daemon: Daemon, agent: str, project: Any) -> list[dict[str, Any]]:
    """The memories worth showing at a start: those of the project first, then by importance and age."""
    visible, values = daemon.agents.visible(agent)
    rows = daemon.store.rows(
        f"SELECT m.* FROM memories m WHERE m.is_deleted = 0{visible} ORDER BY m.created_at DESC LIMIT 300", *values
    )
    weighed = [(weight, dict(row)) for row in rows if (weight := _weight(row, daemon.clock())) > _LEAST_WEIGHT]
    weighed.sort(key=lambda pair: (bool(project) and pair[1]["project"] == project, pair[0]), reverse=True)
    kept: list[dict[str, Any]] = []
    room = _INJECT_CHARACTERS
    for _, row in weighed[:_MOST_MEMORIES]:
        room -= len(row["content"])
        if room < 0:
            break
        kept.append(row)
    return kept


def _weight(row: Any, now: float) -> float:
    if row["pinned"]:
        return 1.0
    if not isinstance(row["importance"], int | float):
        return 0.0
    age = max(0.0, now - (read_moment(row["created_at"]) or now)) / _DAY_SECONDS
    return float(row["importance"]) * math.pow(0.95, age)


def _inject(daemon: Daemon, memories: list[dict[str, Any]], recent: str | None, today: str) -> tuple[str, str]:
    """The part of the injected text that does not change within a session, and the whole of it."""
    stable = [_INTRODUCTION, _MARKER]
    rules = instructions(daemon.workspace)
    if rules:
        stable.append(f"## Agent Instructions\n\n{rules}")
    parts = [f"\n{today}\n"]
    if recent:
        parts.append(f"## Working Memory\n\n{recent}")
    if memories:
        lines = [f"- {memory['content']} ({datetime.fromisoformat(memory['created_at']):%b %d})" for memory in memories]
        parts.append("\n".join(["## Relevant Memories\n", *lines]))
    names = daemon.secrets.names()
    if names:
        parts.append("\n".join(["## Available Secrets\n", *(f"- {name}" for name in names)]))
    head = "\n".join(stable)
    return head, "\n".join([head, *parts])[:_INJECT_CHARACTERS]


def prompt_submit(daemon: Daemon, call: Call) -> Answer:
    """POST hooks/user-prompt-submit: what is known about the entities that the prompt names."""
    if is_internal(call):
        return Answer({"inject": "", "memoryCount": 0})
    fields = fields_of(call.json())
    texts = [text for name in ("userMessage", "userPrompt") if (text := text_or_none(fields.get(name)))]
    if not truthy(fields.get("harness")) or not texts:
        return refusal(400, "harness and userMessage or userPrompt are required")
    path = runtime_path(call, fields)
    session, agent = text_or_none(fields.get("sessionKey")), plain_agent(fields)
    known = bool(session and daemon.sessions.owner(session, agent))
    said = {"sessionKnown": known} if daemon.behaviour.session_known else {}
    duplicate = claim(daemon, session, path, agent, {"inject": "", "memoryCount": 0, **said})
    if duplicate:
        return duplicate
    if not session or not daemon.presence.touch(session):
        daemon.presence.meet(
            session=session,
            agent=agent,
            harness=fields["harness"],
            project=text_or_none(fields.get("project")),
            path=path,
        )
    if is_bypassed(daemon, fields):
        return Answer({"inject": "", "memoryCount": 0, "bypassed": True})
    prompt = next((text for sent in texts if (text := without_envelope(sent))), "")
    return Answer({**_prompt(daemon, fields, prompt), **said})


def _prompt(daemon: Daemon, fields: Mapping[str, Any], prompt: str) -> dict[str, Any]:
    trimmed(fields["harness"])
    key = fields.get("sessionKey")
    agent = resolve_agent(fields.get("agentId"), key)
    if truthy(key):
        _keep_turn(daemon, fields, prompt, agent)
    found = context_for(daemon.store, prompt, agent)
    today = f"# Current Date & Time\n{spoken(daemon.clock())}"
    inject = "\n".join([today, "", "## Relevant Entity Context", "", *found.lines, ""]) if found.lines else ""
    answer = present(
        inject=inject,
        memoryCount=len(found.lines),
        queryTerms=" ".join(subject_words(prompt)) or None,
        engine=found.engine,
        warnings=daemon.sessions.warnings(key, agent) if truthy(key) else None,
    )
    if daemon.behaviour.prompt_has_envelope:
        answer |= {"dynamicContext": inject, "clockContext": today}
        if inject:
            answer |= {"contextHash": hashlib.sha256(inject.encode()).hexdigest(), "contextVersion": _CONTEXT_VERSION}
    return answer


def _keep_turn(daemon: Daemon, fields: Mapping[str, Any], prompt: str, agent: str) -> None:
    """Store the transcript that came with a prompt, or add the turn to the one stored."""
    key = str(fields["sessionKey"])
    stored = daemon.transcripts.get(key, agent)
    sent = _sent_transcript(fields)
    if sent:
        text = sent if len(sent) >= len(stored) else stored
    else:
        last = text_or_none(fields.get("lastAssistantMessage"))
        turn = "\n".join([*([f"Assistant: {last}"] if last else []), f"User: {prompt}"])
        text = f"{stored}\n{turn}" if stored else turn
    daemon.transcripts.put(key, agent, text, harness=fields["harness"], project=fields.get("project"), now=daemon.now())


def _sent_transcript(fields: Mapping[str, Any]) -> str:
    """The transcript of a request: that of a readable file, else the inline one.

    Raises `ScriptError` for a wrong type.
    """
    raw = read_file(fields.get("transcriptPath"))
    if raw is not None:
        return plain_lines(fields.get("harness"), raw)
    return plain_lines(fields.get("harness"), fields["transcript"]) if truthy(fields.get("transcript")) else ""


def session_end(daemon: Daemon, call: Call) -> Answer:
    """POST hooks/session-end: the session is released; a transcript of 500 characters or more is queued."""
    if is_internal(call):
        return Answer({"memoriesSaved": 0})
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
        return Answer({"memoriesSaved": 0, "bypassed": True})
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


def _dropped_end(daemon: Daemon, key: Any, path: str | None, agent: str) -> Answer | None:
    """The answer to an end that counts for nothing: a repeat within 30 minutes, or one from the other path."""
    if not truthy(key) or not (path or daemon.behaviour.tombstone_takes_claim_path):
        return None
    stone = daemon.sessions.ended(key, agent)
    if stone:
        if not stone.path:
            return None
        return Answer({"memoriesSaved": 0, "skipped": True, "duplicateSessionEnd": True, "endedBy": stone.path})
    owner = daemon.sessions.owner(key, agent)
    if not path or not owner or owner == path or daemon.behaviour.conflict_is_409:
        return None
    return Answer({"memoriesSaved": 0, "skipped": True, "duplicateRuntimePath": True, "claimedBy": owner})


def _end(daemon: Daemon, fields: Mapping[str, Any], key: Any) -> Answer:
    reads_inline = daemon.behaviour.end_reads_transcript
    agent = resolve_agent(fields.get("agentId"), key) if reads_inline else "default"
    daemon.agents.register(agent)
    project = fields.get("project") if fields.get("project") is not None else fields.get("cwd")
    marks = start_marks(agent, fields, project, key_only=daemon.behaviour.start_marks_are_key_only)
    if daemon.behaviour.start_marks_are_key_only:
        daemon.started.forget(same_marks(marks))
    if fields.get("reason") == "clear":
        daemon.started.forget(same_marks(marks))
        if marks:
            daemon.epochs.advance("\0".join(marks[1:] or marks), agent)
        return Answer({"memoriesSaved": 0})
    transcript = _sent_transcript(fields if reads_inline else {**fields, "transcript": None})
    stored = daemon.transcripts.get(str(key), agent) if truthy(key) else ""
    transcript = max(transcript, stored, key=len)
    trimmed(fields.get("sessionId"))
    trimmed(fields.get("transcriptPath"))
    if transcript and truthy(key):
        daemon.transcripts.put(
            str(key), agent, transcript, harness=fields["harness"], project=fields.get("cwd"), now=daemon.now()
        )
    daemon.graph.drop_facts_of_deleted(agent)
    noise = is_noise(project=fields.get("cwd"), key=key, harness=fields["harness"])
    queued = len(transcript) >= _LEAST_TRANSCRIPT and not noise
    if queued and isinstance(fields.get("cwd"), dict | list):
        raise ScriptError("a project that cannot be stored")
    job = str(uuid.uuid4()) if queued else None
    if not daemon.behaviour.end_has_capture_job:
        return Answer(present(memoriesSaved=0, queued=queued, jobId=job))
    captured = daemon.captures.add(transcript, agent) if transcript.strip(BLANKS) else None
    return Answer(present(memoriesSaved=0, queued=queued, transcriptCaptureJobId=captured))
