"""The hooks of a session's life in 0.58. Only a start claims a session; the others check who holds it."""

from __future__ import annotations

import json
import math
import uuid
from collections import deque
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from signet_conformance.daemon.handlers.early.keys import bound, conflict, is_bypassed, key_of, path_of
from signet_conformance.daemon.handlers.early.recall import search
from signet_conformance.daemon.state.identity import identity_of, instructions, working_memory
from signet_conformance.daemon.state.terms import subject_words, without_envelope
from signet_conformance.daemon.state.transcripts import flat_lines, read_file
from signet_conformance.daemon.timestamps import read_moment, spoken
from signet_conformance.daemon.values import ScriptError, fields_of, text_or_none, trimmed, truthy
from signet_conformance.daemon.wire import Answer, Call, present, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from signet_conformance.daemon.state.daemon import Daemon

_MARKER: Final = "[memory active | /remember | /recall]"
_CANDIDATES: Final = 50
_POOL: Final = 100
_START_CHARACTERS: Final = 2000
_INJECT_CHARACTERS: Final = 24_000
_LEAST_WEIGHT: Final = 0.2
_DAY_SECONDS: Final = 86_400
_PROMPT_CHARACTERS: Final = 500
_PROMPT_ROWS: Final = 5
_PROMPT_WINDOW: Final = 5
_MOST_TERMS: Final = 12
_LONGEST_QUERY: Final = 200
_LEAST_SCORE: Final = 0.4
_LEAST_TRANSCRIPT: Final = 500
_GUIDELINES: Final = "Keep what later sessions need: decisions and their reasons, preferences, open work, names."


def _is_internal(call: Call) -> bool:
    return call.header("x-signet-no-hooks") == "1"


def session_start(daemon: Daemon, call: Call) -> Answer:
    """POST hooks/session-start: claims the session; full context, or a stub until the session has ended."""
    if _is_internal(call):
        return Answer({"inject": "", "memories": []})
    fields = fields_of(call.json())
    if not truthy(fields.get("harness")):
        return refusal(400, "harness is required")
    path, key = path_of(call, fields), key_of(fields.get("sessionKey"))
    if key and path:
        holder = daemon.sessions.claim(key, path, "default")
        if holder:
            return refusal(409, f"session claimed by {holder} path")
    _meet(daemon, fields, path)
    if is_bypassed(daemon, fields):
        return Answer({"inject": "", "memories": [], "bypassed": True})
    today = f"# Current Date & Time\n{spoken(daemon.clock())}"
    if key and daemon.started.seen((key,)):
        return Answer({"identity": {"name": "Agent"}, "memories": [], "inject": f"{_MARKER}\n{today}"})
    # The order in which the release reads these fields: each of them throws when it is no text.
    trimmed(fields.get("agentId"))
    project = fields.get("project")
    if truthy(project):
        trimmed(project)
        trimmed(fields.get("sessionKey"))
    memories = _memories_for(daemon, project)
    daemon.store.run_many(
        "UPDATE memories SET access_count = access_count + 1, last_accessed = datetime(?, 'unixepoch') WHERE id = ?",
        [(int(daemon.clock()), row["id"]) for row in memories],
    )
    recent = working_memory(daemon.workspace)
    if key:
        daemon.started.remember((key,))
    shown = [{name: row[name] for name in ("id", "content", "type", "importance", "created_at")} for row in memories]
    return Answer(
        present(
            identity=identity_of(daemon.workspace),
            memories=shown,
            recentContext=recent,
            inject=_inject(daemon, memories, recent, today),
        )
    )


def _meet(daemon: Daemon, fields: Mapping[str, Any], path: str | None) -> None:
    daemon.presence.meet(
        session=text_or_none(fields.get("sessionKey")),
        agent=text_or_none(fields.get("agentId")) or "default",
        harness=fields["harness"],
        project=text_or_none(fields.get("project")),
        path=path,
    )


def _memories_for(daemon: Daemon, project: Any) -> list[dict[str, Any]]:
    """The rows worth showing, of all agents: those of the project first, then by weight, up to 2000 characters."""
    rows = daemon.store.rows(
        "SELECT * FROM memories WHERE is_deleted = 0 ORDER BY created_at DESC LIMIT ?", _CANDIDATES * 3
    )
    weighed = [(weight, dict(row)) for row in rows if (weight := _weight(row, daemon.clock())) > _LEAST_WEIGHT]
    weighed.sort(key=lambda pair: (truthy(project) and pair[1]["project"] == project, pair[0]), reverse=True)
    return _within([row for _, row in weighed[:_POOL]], _START_CHARACTERS)


def _within(rows: list[dict[str, Any]], room: int) -> list[dict[str, Any]]:
    kept = []
    for row in rows:
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
    age = (now - (read_moment(row["created_at"]) or now)) / _DAY_SECONDS
    return float(row["importance"]) * math.pow(0.95, age)


def _inject(daemon: Daemon, memories: list[dict[str, Any]], recent: str | None, today: str) -> str:
    parts = [_MARKER, f"\n{today}\n"]
    rules = instructions(daemon.workspace)
    if rules:
        parts.append(f"## Agent Instructions\n\n{rules}")
    if recent:
        parts.append(f"## Working Memory\n\n{recent}")
    if memories:
        parts.append("\n".join(["## Relevant Memories\n", *map(_line, memories)]))
    names = daemon.secrets.names()
    if names:
        parts.append("\n".join(["## Available Secrets\n", *(f"- {name}" for name in names)]))
    return "\n".join(parts)[:_INJECT_CHARACTERS]


def _line(row: dict[str, Any]) -> str:
    day = datetime.fromisoformat(row["created_at"])
    return f"- {row['content']} ({day:%b} {day.day}, {day.year})"


def prompt_submit(daemon: Daemon, call: Call) -> Answer:
    """POST hooks/user-prompt-submit: what the words of the prompt find, but for what the last five prompts showed."""
    if _is_internal(call):
        return Answer({"inject": "", "memoryCount": 0})
    fields = fields_of(call.json())
    texts = [fields.get(name) for name in ("userMessage", "userPrompt")]
    if not truthy(fields.get("harness")) or not any(text_or_none(text) for text in texts):
        return refusal(400, "harness and userMessage or userPrompt are required")
    path = path_of(call, fields)
    refused = conflict(daemon, fields, path)
    if refused:
        return refused
    session = text_or_none(fields.get("sessionKey"))
    if not session or not daemon.presence.touch(session):
        _meet(daemon, fields, path)
    if is_bypassed(daemon, fields):
        return Answer({"inject": "", "memoryCount": 0, "bypassed": True})
    return Answer(_prompt(daemon, fields))


def _prompt(daemon: Daemon, fields: Mapping[str, Any]) -> dict[str, Any]:
    message = _message(fields)
    terms = _terms(message, fields.get("lastAssistantMessage"))
    header = f"# Current Date & Time\n{spoken(daemon.clock())}\n"
    nothing = {"inject": header, "memoryCount": 0}
    query = message[:_LONGEST_QUERY]
    if not terms or not query:
        return nothing
    rows = search(daemon, query, {"importance_min": 0.3}, words=" OR ".join(terms), limit=10)
    if not rows or rows[0]["score"] < _LEAST_SCORE:
        return nothing
    key = key_of(fields.get("sessionKey"))
    chosen = _within(rows, _PROMPT_CHARACTERS)[:_PROMPT_ROWS]
    shown = daemon.prompted.setdefault(key, deque(maxlen=_PROMPT_WINDOW)) if key else deque()
    chosen = [row for row in chosen if not any(row["id"] in turn for turn in shown)]
    if not chosen:
        return nothing
    shown.appendleft({row["id"] for row in chosen})
    said = " ".join(terms)
    head = f'[signet:recall | query="{said}" | results={len(chosen)} | engine=hybrid]'
    inject = "\n".join([header, head, *map(_line, chosen)])
    return {"inject": inject, "memoryCount": len(chosen), "queryTerms": said, "engine": "hybrid"}


def _message(fields: Mapping[str, Any]) -> str:
    sent = fields.get("userMessage")
    cleaned = without_envelope(sent) if isinstance(sent, str) else ""
    if cleaned:
        return cleaned
    prompt = fields.get("userPrompt")
    return without_envelope(prompt) if isinstance(prompt, str) else ""


def _terms(message: str, last: Any) -> list[str]:
    """The words of the prompt, and some of the answer before it: as many as the prompt has, two at least."""
    own = subject_words(message)
    if truthy(last) and not isinstance(last, str):
        raise ScriptError("the last message of the assistant is no text")
    others = [word for word in subject_words(last) if word not in own] if last else []
    return [*own, *others[: max(2, len(own))]][:_MOST_TERMS]


def session_end(daemon: Daemon, call: Call) -> Answer:
    """POST hooks/session-end: releases the session, whoever holds it; a file of 500 characters or more is queued."""
    if _is_internal(call):
        return Answer({"memoriesSaved": 0})
    fields = fields_of(call.json())
    if not truthy(fields.get("harness")):
        return refusal(400, "harness is required")
    given = fields.get("sessionKey")
    given = given if truthy(given) else fields.get("sessionId")
    key = key_of(given)
    if key and daemon.sessions.bypassed(key):
        _release(daemon, key, given)
        return Answer({"memoriesSaved": 0, "bypassed": True})
    try:
        return _end(daemon, fields, key)
    finally:
        if key:
            _release(daemon, key, given)


def _release(daemon: Daemon, key: str, given: Any) -> None:
    """Forget the claim. Raises `ScriptError` for a key that is no text, once that is done."""
    daemon.sessions.release(key, "default")
    daemon.presence.leave(given)


def _end(daemon: Daemon, fields: Mapping[str, Any], key: str | None) -> Answer:
    if key:
        daemon.started.forget(lambda marks: marks == (key,))
        daemon.prompted.pop(key, None)
    if fields.get("reason") == "clear":
        return Answer({"memoriesSaved": 0})
    raw = read_file(fields.get("transcriptPath"))
    harness = fields["harness"]
    transcript = flat_lines(harness, raw) if raw is not None and isinstance(harness, str) else ""
    if len(transcript) < _LEAST_TRANSCRIPT:
        return Answer({"memoriesSaved": 0})
    bound(fields.get("cwd"))
    return Answer({"memoriesSaved": 0, "queued": True, "jobId": str(uuid.uuid4())})


def pre_compaction(daemon: Daemon, call: Call) -> Answer:
    """POST hooks/pre-compaction: how the host should sum up the session."""
    fields = fields_of(call.json())
    if not truthy(fields.get("harness")):
        return refusal(400, "harness is required")
    refused = conflict(daemon, fields, path_of(call, fields))
    if refused:
        return refused
    if is_bypassed(daemon, fields):
        return Answer({"instructions": "", "bypassed": True})
    rows = daemon.store.rows("SELECT content FROM memories WHERE is_deleted = 0 ORDER BY created_at DESC LIMIT 5")
    recent = "".join(f"- {row['content']}\n" for row in rows)
    prompt = f"Before the context is compacted, write a summary of what must not be lost.\n\n{_GUIDELINES}\n\n"
    prompt += f"\nRecent memories for reference:\n{recent}" if recent else ""
    return Answer({"summaryPrompt": prompt, "guidelines": _GUIDELINES})


def compaction_complete(daemon: Daemon, call: Call) -> Answer:
    """POST hooks/compaction-complete: the summary becomes a memory of the agent `default`."""
    fields = fields_of(call.json())
    if not truthy(fields.get("harness")) or not truthy(fields.get("summary")):
        return refusal(400, "harness and summary are required")
    refused = conflict(daemon, fields, path_of(call, fields))
    if refused:
        return refused
    if is_bypassed(daemon, fields):
        return Answer({"success": True, "bypassed": True})
    new, now = str(uuid.uuid4()), daemon.now()
    daemon.store.run(
        """INSERT INTO memories (id, content, type, importance, source_type, who, tags, created_at, updated_at,
           updated_by) VALUES (?, ?, 'session_summary', 0.8, ?, 'system', ?, ?, ?, 'system')""",
        new, bound(fields["summary"]), bound(fields["harness"]),
        json.dumps(["session", "summary", fields["harness"]]), now, now,
    )  # fmt: skip
    key = key_of(fields.get("sessionKey"))
    if key:
        daemon.prompted.pop(key, None)
    return Answer({"success": True, "memoryId": new})
