"""The hooks of a session's life in 0.58. Only a start claims a session; an end needs no claim; the others check it."""

from __future__ import annotations

import json
import uuid
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from signet_conformance.daemon import js
from signet_conformance.daemon.handlers.early import AGENT, AcceptedRequest, Gate
from signet_conformance.daemon.handlers.early.memories import any_of, search_rows
from signet_conformance.daemon.handlers.hooks import read_fields
from signet_conformance.daemon.handlers.hooks.compaction import save_summary, summary_request
from signet_conformance.daemon.handlers.hooks.session import dated, fitting, full_answer, memories_for, stub_of
from signet_conformance.daemon.state import Daemon
from signet_conformance.daemon.state.texts import subject_words, without_envelope
from signet_conformance.daemon.state.transcripts import flat_lines, read_file
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest

#: Characters of memories in the answer to a start, and to a prompt.
_START_ROOM: Final = 2000
_PROMPT_ROOM: Final = 500
_MOST_ROWS: Final = 5
_REMEMBERED_PROMPTS: Final = 5
_MOST_TERMS: Final = 12
_LEAST_TRANSCRIPT: Final = 500


_START: Final = Gate(("harness",), {"inject": "", "memories": []}, claims=True, shows_session=True)
_PROMPT: Final = Gate(("harness", "userMessage or userPrompt"), {"inject": "", "memoryCount": 0}, shows_session=True)
_BEFORE: Final = Gate(("harness",), {"instructions": ""}, heeds_no_hooks=False)
_AFTER: Final = Gate(("harness", "summary"), {"success": True}, heeds_no_hooks=False)
_NOTHING_SAVED: Final = {"memoriesSaved": 0}


def session_start(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST hooks/session-start: the context of a session; a stub for a key that was started and has not ended."""
    request = _START.admit(daemon, call)
    today = f"# Current Date & Time\n{js.date_line(daemon.clock())}"
    dedupe_key = (daemon.sessions.normal(request.key),) if request.key is not None else None
    if dedupe_key and daemon.started.contains(dedupe_key):
        return DaemonAnswer(stub_of(today))
    # The start fails when a name is not a string. The session key is checked only when a project is given.
    for name in ("agentId", "project", "sessionKey") if js.truthy(request.fields.get("project")) else ("agentId",):
        js.trimmed(request.fields.get(name))
    memories = memories_for(daemon, AGENT, request.fields.get("project"), _START_ROOM)
    _, answer = full_answer(daemon, memories, today)
    if dedupe_key:
        daemon.started.remember(dedupe_key)
    return DaemonAnswer(answer)


def prompt_submit(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST hooks/user-prompt-submit: rows that the prompt's words find and that the last prompts did not show."""
    request = _PROMPT.admit(daemon, call)
    today = f"# Current Date & Time\n{js.date_line(daemon.clock())}\n"
    terms = _terms(request.fields)
    rows = _fresh(daemon, request, search_rows(daemon, any_of(terms), {"importance_min": 0.3})) if terms else []
    if not rows:
        return DaemonAnswer({"inject": today, "memoryCount": 0})
    daemon.count_reads([row["id"] for row in rows])
    query = " ".join(terms)
    lines = [
        today,
        f'[signet:recall | query="{query}" | results={len(rows)} | engine=hybrid]',
        *map(dated, rows),
        f"<memory-feedback>\nIDs: {', '.join(row['id'] for row in rows)}\n</memory-feedback>",
    ]
    return DaemonAnswer({"inject": "\n".join(lines), "memoryCount": len(rows), "queryTerms": query, "engine": "hybrid"})


def _terms(fields: Mapping[str, Any]) -> list[str]:
    """The subject words of the prompt, then as many of the answer before it, but two at least."""
    sent = (fields.get(name) for name in ("userMessage", "userPrompt"))
    own = subject_words(
        next((clean for text in sent if isinstance(text, str) and (clean := without_envelope(text))), "")
    )
    last = fields.get("lastAssistantMessage")
    if js.truthy(last) and not isinstance(last, str):
        raise js.ScriptError("the last answer is no text")
    more = [word for word in subject_words(last or "") if word not in own]
    return [*own, *more[: max(len(own), 2)]][:_MOST_TERMS]


def _fresh(daemon: Daemon, request: AcceptedRequest, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first few of `rows` that fit, without those in the answers to the session's last prompts."""
    taken = fitting(rows[:_MOST_ROWS], _PROMPT_ROOM)
    if request.key is None:
        return taken
    shown = daemon.prompted.setdefault(daemon.sessions.normal(request.key), deque(maxlen=_REMEMBERED_PROMPTS))
    fresh = [row for row in taken if all(row["id"] not in earlier for earlier in shown)]
    if fresh:
        shown.append({row["id"] for row in fresh})
    return fresh


def session_end(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST hooks/session-end: releases the session for either path; a transcript of 500 characters is queued."""
    fields = read_fields(call, _NOTHING_SAVED, "harness")
    key = next((fields[name] for name in ("sessionKey", "sessionId") if js.truthy(fields.get(name))), None)
    if key is None:
        return DaemonAnswer(_end_answer(fields))
    bypassed = daemon.sessions.bypassed(key)
    try:
        return DaemonAnswer({**_NOTHING_SAVED, "bypassed": True} if bypassed else _end_answer(fields))
    finally:
        if not bypassed:
            name = daemon.sessions.normal(key)
            daemon.started.forget((name,))
            daemon.prompted.pop(name, None)
        daemon.sessions.release(key, AGENT)
        daemon.presence.leave(key)


def _end_answer(fields: Mapping[str, Any]) -> dict[str, Any]:
    text = None if fields.get("reason") == "clear" else read_file(fields.get("transcriptPath"))
    harness = fields["harness"]
    turns = flat_lines(harness, text) if text and isinstance(harness, str) else ""
    if len(turns) < _LEAST_TRANSCRIPT:
        return dict(_NOTHING_SAVED)
    if isinstance(fields.get("cwd"), dict | list):
        raise js.ScriptError("a project that cannot be stored")
    return {**_NOTHING_SAVED, "queued": True, "jobId": str(uuid.uuid4())}


def pre_compaction(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST hooks/pre-compaction: how the host should sum up the session."""
    _BEFORE.admit(daemon, call)
    return DaemonAnswer(summary_request(daemon, AGENT))


def compaction_complete(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST hooks/compaction-complete: the summary becomes a memory; the next prompt may show all rows again."""
    request = _AFTER.admit(daemon, call)
    tags = json.dumps(["session", "summary", request.fields["harness"]], separators=(",", ":"))
    memory = save_summary(daemon, request.fields, tags=tags)
    if request.key is not None:
        daemon.prompted.pop(daemon.sessions.normal(request.key), None)
    return DaemonAnswer({"success": True, "memoryId": memory})
