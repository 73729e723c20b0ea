"""Saving in 0.58: a text is a duplicate whoever sent it; the hook inserts, come what may."""

from __future__ import annotations

import re
import sqlite3
import uuid
from typing import TYPE_CHECKING, Any, Final

from signet_conformance.daemon.handlers.early.keys import bound, conflict, is_bypassed, path_of
from signet_conformance.daemon.state.content import infer_type, normalise, read_marks, short_chunks_of
from signet_conformance.daemon.values import BLANKS, ScriptError, UnreadableJsonError, fields_of, trimmed, truthy
from signet_conformance.daemon.wire import Answer, Call, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from signet_conformance.daemon.state.daemon import Daemon

_LONGEST: Final = 500
_CRITICAL: Final = "critical:"
_TAGGED: Final = re.compile(r"\[([^\]]+)\]:\s*")
_COLUMNS: Final = "id, type, tags, pinned, importance, content"


def hook_remember(daemon: Daemon, call: Call) -> Answer:
    """POST hooks/remember: always a new row, but for a known idempotency key; says only its id."""
    if call.header("x-signet-no-hooks") == "1":
        return Answer({"success": True, "memories": []})
    fields = fields_of(call.json())
    if not truthy(fields.get("harness")) or not truthy(fields.get("content")):
        return refusal(400, "harness and content are required")
    path = path_of(call, fields)
    refused = conflict(daemon, fields, path)
    if refused:
        return refused
    if is_bypassed(daemon, fields):
        return Answer({"success": True, "memories": [], "bypassed": True})
    content = trimmed(fields["content"]) or ""
    try:
        return Answer({"saved": True, "id": _insert_hook(daemon, fields, content, path)})
    except (ScriptError, sqlite3.Error):
        return Answer({"saved": False, "id": ""})


def _insert_hook(daemon: Daemon, fields: Mapping[str, Any], content: str, path: str | None) -> str:
    pinned = content.lower().startswith(_CRITICAL)
    if pinned:
        content = content[len(_CRITICAL) :].strip(BLANKS)
    tagged = _TAGGED.match(content)
    if tagged:
        content = content[tagged.end() :]
    key = fields.get("idempotencyKey")
    if truthy(key) and not isinstance(key, dict | list):
        known = daemon.store.row("SELECT id FROM memories WHERE idempotency_key = ?", bound(key))
        if known:
            return str(known["id"])
    who = fields["who"] if truthy(fields.get("who")) else fields["harness"]
    given = path or fields.get("runtimePath")
    new, now = str(uuid.uuid4()), daemon.now()
    daemon.store.run(
        """INSERT INTO memories (id, content, type, importance, source_type, who, tags, pinned, project,
           idempotency_key, runtime_path, created_at, updated_at, updated_by)
           VALUES (?, ?, ?, ?, 'explicit', ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        new, content, infer_type(content), 1.0 if pinned else 0.8, bound(who), tagged[1] if tagged else None,
        int(pinned), _given(fields.get("project")), _given(key), _given(given), now, now, bound(who),
    )  # fmt: skip
    return new


def _given(value: Any) -> Any:
    return bound(value) if truthy(value) else None


def remember_alias(daemon: Daemon, call: Call) -> Answer:
    """POST memory/save and hook/remember: memory/remember, asked over HTTP without the caller's token."""
    try:
        body = call.json()
    except UnreadableJsonError:
        body = {}
    if daemon.auth.mode == "team":
        return Answer({"error": "authentication required"}, 401, {"www-authenticate": "Bearer"})
    return _remembered(daemon, fields_of(body))


def remember(daemon: Daemon, call: Call) -> Answer:
    """POST memory/remember."""
    try:
        body = call.json()
    except UnreadableJsonError:
        return refusal(400, "Invalid JSON body")
    return _remembered(daemon, fields_of(body))


def _remembered(daemon: Daemon, fields: Mapping[str, Any]) -> Answer:
    raw = trimmed(fields.get("content"))
    if not raw:
        return refusal(400, "content is required")
    if daemon.settings.frozen:
        return refusal(503, "Mutations are frozen (kill switch active)")
    marks = read_marks(raw)
    said: dict[str, Any] = {
        "who": _or(fields.get("who"), "daemon"),
        "project": fields.get("project"),
        "importance": _or(fields.get("importance"), marks.importance),
        "tags": _or(fields.get("tags"), marks.tags),
        "pinned": truthy(_or(fields.get("pinned"), marks.pinned)),
        "source_type": trimmed(fields.get("sourceType")) or "manual",
        "source_id": trimmed(fields.get("sourceId")) or None,
    }
    if len(raw) > _LONGEST:
        return Answer(_save_chunks(daemon, said, raw))
    content = normalise(marks.rest)
    if not content.stored:
        return refusal(400, "content is required")
    known = None
    try:
        if said["source_id"]:
            known = daemon.store.row(
                f"SELECT {_COLUMNS} FROM memories WHERE source_type = ? AND source_id = ? AND is_deleted = 0",
                said["source_type"], said["source_id"],
            )  # fmt: skip
        known = known or _twin(daemon, content.digest)
        if known:
            return Answer(
                {
                    "id": known["id"], "type": known["type"], "tags": known["tags"] or "",
                    "pinned": bool(known["pinned"]), "importance": known["importance"], "content": known["content"],
                    "embedded": True, "deduped": True,
                }
            )  # fmt: skip
        kind = infer_type(marks.rest)
        new = _insert(daemon, said, content, kind)
    except (ScriptError, sqlite3.Error):
        return refusal(500, "Failed to save memory")
    return Answer(
        {
            "id": new, "type": kind, "tags": said["tags"], "pinned": said["pinned"], "importance": said["importance"],
            "content": content.stored, "embedded": False,
        }
    )  # fmt: skip


def _or(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def _twin(daemon: Daemon, digest: str) -> sqlite3.Row | None:
    return daemon.store.row(f"SELECT {_COLUMNS} FROM memories WHERE content_hash = ? AND is_deleted = 0", digest)


def _insert(daemon: Daemon, said: Mapping[str, Any], content: Any, kind: str) -> str:
    new, now = str(uuid.uuid4()), daemon.now()
    daemon.store.run(
        """INSERT INTO memories (id, content, normalized_content, content_hash, who, why, project, importance, type,
           tags, pinned, extraction_status, source_type, source_id, created_at, updated_at, updated_by)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?)""",
        new, content.stored, content.normal, content.digest, bound(said["who"]),
        "explicit-critical" if said["pinned"] else "explicit", bound(said["project"]), bound(said["importance"]), kind,
        bound(said["tags"]), int(said["pinned"]), said["source_type"], said["source_id"], now, now, bound(said["who"]),
    )  # fmt: skip
    return new


def _save_chunks(daemon: Daemon, said: Mapping[str, Any], raw: str) -> dict[str, Any]:
    """Every piece that is no duplicate, under a group of its own; a piece that cannot be stored is left out."""
    group = str(uuid.uuid4())
    ids = []
    for chunk in short_chunks_of(raw):
        content = normalise(chunk)
        if not content.stored or _twin(daemon, content.digest):
            continue
        try:
            ids.append(
                _insert(daemon, {**said, "source_type": "chunk", "source_id": group}, content, infer_type(chunk))
            )
        except (ScriptError, sqlite3.Error):
            continue
    return {"chunked": True, "chunk_count": len(ids), "ids": ids, "group_id": group}
