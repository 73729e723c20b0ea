"""Saving in 0.58: a text is a duplicate whoever sent it; the hook writes a row of its own each time."""

from __future__ import annotations

import re
import sqlite3
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from signet_conformance.daemon.handlers.early.gate import AGENT, Gate, Visit, has
from signet_conformance.daemon.handlers.memories.saving import (
    FROZEN,
    Draft,
    Place,
    chunk_answer,
    fresh_chunks,
    insert,
    read_body,
    save_one,
)
from signet_conformance.daemon.state.content import CRITICAL, chunks_of, infer_type, normalise, read_marks
from signet_conformance.daemon.values import BLANKS, UnreadableJsonError, fields_of, trimmed, truthy
from signet_conformance.daemon.wire import Answer, Call, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from signet_conformance.daemon.state.daemon import Daemon

_LONGEST: Final = 500
_CHUNK: Final = 300
_NOTHING: Final = {"success": True, "memories": []}
_HOOK: Final = Gate(has("harness", "content"), "harness and content are required", _NOTHING, _NOTHING)


def hook_remember(daemon: Daemon, call: Call) -> Answer:
    """POST hooks/remember: a new row but for a known idempotency key; what cannot be stored is said with 200."""
    visit = _HOOK.admit(daemon, call)
    if isinstance(visit, Answer):
        return visit
    text = trimmed(visit.fields["content"]) or ""
    try:
        return Answer({"saved": True, "id": _hook_row(daemon, visit, text)})
    except sqlite3.Error:
        return Answer({"saved": False, "id": ""})


def _hook_row(daemon: Daemon, visit: Visit, text: str) -> str:
    pinned = text.lower().startswith(CRITICAL)
    tags, text = _heading(text[len(CRITICAL) :].strip(BLANKS) if pinned else text)
    given = {
        name: visit.fields[name] for name in ("idempotencyKey", "who", "project") if truthy(visit.fields.get(name))
    }
    key = given.get("idempotencyKey")
    known = daemon.store.row("SELECT id FROM memories WHERE idempotency_key = ?", key) if key is not None else None
    if known:
        return str(known["id"])
    draft = _draft(
        daemon,
        text,
        who=given.get("who", visit.fields["harness"]),
        project=given.get("project"),
        importance=1 if pinned else 0.8,
        pinned=pinned,
        tags=tags,
        source_type="explicit",
        runtime_path=visit.path or visit.fields.get("runtimePath"),
        key=key,
    )
    # Without a hash: no later save counts as a duplicate of this row.
    unhashed = {"normalized_content": None, "content_hash": None, "extraction_status": "none", "why": None}
    return insert(daemon, draft, replace(normalise(text), stored=text), infer_type(text), **unhashed)


def _heading(text: str) -> tuple[str | None, str]:
    """The tags in ``[…]:`` at the beginning of `text`, as they stand there, and what follows."""
    tags, closed, rest = text[1:].partition("]:")
    return (tags, rest.lstrip(BLANKS)) if text[:1] == "[" and closed and tags and "]" not in tags else (None, text)


def remember_alias(daemon: Daemon, call: Call) -> Answer:
    """POST memory/save and hook/remember: memory/remember, asked over HTTP without the caller's token."""
    if daemon.auth.mode == "team":
        return Answer({"error": "authentication required"}, 401, {"www-authenticate": "Bearer"})
    try:
        return _save(daemon, fields_of(call.json()))
    except UnreadableJsonError:
        return _save(daemon, {})


def remember(daemon: Daemon, call: Call) -> Answer:
    """POST memory/remember."""
    fields = read_body(call)
    return fields if isinstance(fields, Answer) else _save(daemon, fields)


def _save(daemon: Daemon, fields: Mapping[str, Any]) -> Answer:
    raw = trimmed(fields.get("content"))
    if not raw:
        return refusal(400, "content is required")
    if daemon.settings.frozen:
        return refusal(503, FROZEN)
    marks = read_marks(raw)
    said = {"who": "daemon", "importance": marks.importance, "pinned": marks.pinned, "tags": marks.tags}
    said |= {name: fields[name] for name in said if fields.get(name) is not None}
    draft = _draft(
        daemon,
        raw,
        **{**said, "pinned": truthy(said["pinned"])},
        project=fields.get("project"),
        source_type=trimmed(fields.get("sourceType")) or "manual",
        source_id=trimmed(fields.get("sourceId")) or None,
    )
    if len(raw) > _LONGEST:
        return _chunked(daemon, draft)
    return save_one(daemon, replace(draft, raw=_flat(raw)), {}, links=False)


def _flat(text: str) -> str:
    """`text` as memory/remember stores it: each run of blanks is one."""
    return re.sub(rf"[{BLANKS}]+", " ", text)


def _draft(daemon: Daemon, raw: str, *, project: Any, **said: Any) -> Draft:
    now = daemon.now()
    return Draft(raw=raw, place=Place(AGENT, "global", project, None), created=now, now=now, **said)


def _chunked(daemon: Daemon, draft: Draft) -> Answer:
    """Each piece that is new, under a group of its own; a piece that cannot be stored is left out."""
    group, ids = str(uuid.uuid4()), []
    for piece in fresh_chunks(daemon, draft, list(map(_flat, chunks_of(draft.raw, _CHUNK, plain=True)))):
        try:
            ids.append(insert(daemon, draft, piece, infer_type(piece.stored), source_type="chunk", source_id=group))
        except sqlite3.Error:
            continue
    return chunk_answer(ids, group)
