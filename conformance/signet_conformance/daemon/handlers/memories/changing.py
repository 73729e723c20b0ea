"""Changing and forgetting memories. No agent is checked: a caller that knows an id may change its row."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from signet_conformance.daemon import js
from signet_conformance.daemon.handlers.memories.saving import demand_thawed
from signet_conformance.daemon.handlers.memories.search import conjunction, given_filters
from signet_conformance.daemon.state import Daemon
from signet_conformance.daemon.state.texts import NO_TAGS, normalise, read_tags
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest, RefusedError, demand, plain, present, refusal

MOST_ITEMS: Final = 200
_KEPT_DAYS: Final = 30
_ACTOR_TYPES: Final = ("operator", "pipeline", "harness", "sdk", "daemon")
_ERRORS: Final = {
    "not_found": (404, "Not found"),
    "deleted": (409, "Cannot modify deleted memory"),
    "version_conflict": (409, "Version conflict"),
    "duplicate_content_hash": (409, "Duplicate content hash"),
    "already_deleted": (409, None),
    "pinned_requires_force": (409, "Pinned memories require force=true"),
    "autonomous_force_denied": (403, "Autonomous agents cannot force-delete pinned memories"),
    "not_deleted": (409, "Memory is not deleted"),
    "retention_expired": (409, f"Recover window expired ({_KEPT_DAYS} days)"),
}


@dataclass(frozen=True)
class Actor:
    """Who changes a memory, as written to its history."""

    name: str
    kind: str
    session: str | None
    request: str | None


#: Finds another row of the same agent, project and scope with the same content.
_TWIN: Final = """id <> ? AND content_hash = ? AND agent_id = ? AND is_deleted = 0 AND visibility = ?
    AND COALESCE(project, '') = COALESCE(?, '') AND COALESCE(scope, '__NULL__') = COALESCE(?, '__NULL__')"""


def _twin_values(row: sqlite3.Row, digest: str) -> tuple[Any, ...]:
    return row["id"], digest, row["agent_id"], row["visibility"], row["project"], row["scope"]


def actor_of(call: DaemonRequest, named: str | None) -> Actor:
    """Who requests a change: the bearer, else the header's actor, else the body's (`named`), else "daemon"."""
    session, request = (js.text_or_none(call.header(f"x-signet-{name}-id")) for name in ("session", "request"))
    if call.claims:
        return Actor(call.claims.subject, call.claims.role, session, request)
    kind = js.text_or_none(call.header("x-signet-actor-type"))
    name = js.text_or_none(call.header("x-signet-actor")) or named or "daemon"
    return Actor(name, kind if kind in _ACTOR_TYPES else "operator", session, request)


def _record_event(
    daemon: Daemon, memory: str, event: str, actor: Actor, reason: str, *, old: Any, new: Any, **facts: Any
) -> None:
    daemon.store.run(
        "INSERT INTO memory_history VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        str(uuid.uuid4()), memory, event, old, new, actor.name, reason, json.dumps(facts), daemon.now(), actor.kind,
        actor.session, actor.request,
    )  # fmt: skip


def _read_content(value: Any) -> dict[str, Any]:
    demand(isinstance(value, str), "content must be a string")
    content = normalise(value)
    demand(content.stored, "content must not be empty")
    return {"content": content.stored, "normalized_content": content.normal, "content_hash": content.digest}


def _read_type(value: Any) -> dict[str, Any]:
    text = js.text_or_none(value)
    demand(text, "type must be a non-empty string")
    return {"type": text}


def _read_tag_list(value: Any) -> dict[str, Any]:
    tags = read_tags(value)
    demand(tags is not NO_TAGS, "tags must be a string, string array, or null")
    return {"tags": tags}


def _read_importance(value: Any) -> dict[str, Any]:
    number = js.number_or_none(value)
    demand(number is not None and 0 <= number <= 1, "importance must be a finite number between 0 and 1")
    return {"importance": number}


def _read_pinned(value: Any) -> dict[str, Any]:
    pinned = js.flag(value)
    demand(pinned is not None, "pinned must be a boolean")
    return {"pinned": int(bool(pinned))}


#: The members that a patch may change, in the order in which they are checked.
_READERS: Final = {
    "content": _read_content,
    "type": _read_type,
    "tags": _read_tag_list,
    "importance": _read_importance,
    "pinned": _read_pinned,
}


def _changes_in(patch: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that `patch` changes. Raises `RefusedError` for the first wrong member."""
    changes: dict[str, Any] = {}
    for name, read in _READERS.items():
        if name in patch:
            changes |= read(patch[name])
    demand(changes, "at least one of content, type, tags, importance, pinned is required")
    return changes


def _version_in(fields: Mapping[str, Any]) -> int | None:
    version = js.positive_integer(fields.get("if_version"))
    demand("if_version" not in fields or version is not None, "if_version must be a positive integer")
    return version


def _current(
    daemon: Daemon, memory: str, version: int | None, *, if_deleted: str
) -> tuple[sqlite3.Row | None, dict[str, Any]]:
    """A row that may be changed, or None, and the members of the answer; without a row their `status` says why."""
    row = daemon.store.row("SELECT * FROM memories WHERE id = ?", memory)
    if not row:
        return None, {"id": memory, "status": "not_found"}
    result = {"id": memory, "status": "", "currentVersion": row["version"]}
    if row["is_deleted"]:
        return None, {**result, "status": if_deleted}
    if version is not None and version != row["version"]:
        return None, {**result, "status": "version_conflict"}
    return row, result


def _modify(
    daemon: Daemon, memory: str, changes: dict[str, Any], actor: Actor, reason: str, *, version: int | None
) -> dict[str, Any]:
    row, result = _current(daemon, memory, version, if_deleted="deleted")
    if row is None:
        return result
    rewritten = "content" in changes and changes["content"] != row["content"]
    if rewritten:
        twin = daemon.store.row(f"SELECT id FROM memories WHERE {_TWIN}", *_twin_values(row, changes["content_hash"]))
        if twin:
            return {**result, "status": "duplicate_content_hash", "duplicateMemoryId": twin["id"]}
    names = {"content"} if rewritten else set()
    names |= {
        name for name in ("type", "tags", "importance", "pinned") if name in changes and changes[name] != row[name]
    }
    if not names:
        return {**result, "status": "no_changes"}
    written = {name: changes[name] for name in names}
    if rewritten:
        written |= {name: changes[name] for name in ("normalized_content", "content_hash")} | {
            "extraction_status": "none"
        }
    written |= {"updated_at": daemon.now(), "updated_by": actor.name}
    with daemon.store.transaction():
        daemon.store.run(
            f"UPDATE memories SET {', '.join(f'{name} = ?' for name in written)}, version = version + 1 WHERE id = ?",
            *written.values(), memory,
        )  # fmt: skip
        _record_event(
            daemon, memory, "updated", actor, reason, old=row["content"], new=changes.get("content", row["content"]),
            changedFields=sorted(names), ifVersion=version, contentChanged=rewritten,
        )  # fmt: skip
    return {**result, "status": "updated", "newVersion": row["version"] + 1, "contentChanged": rewritten}


def forget(
    daemon: Daemon, memory: str, actor: Actor, reason: str, *, force: bool, version: int | None = None
) -> dict[str, Any]:
    """Mark a row as deleted; return its id, status and versions."""
    row, result = _current(daemon, memory, version, if_deleted="already_deleted")
    if row is None:
        return result
    if row["pinned"] and not force:
        return {**result, "status": "pinned_requires_force"}
    if row["pinned"] and actor.kind == "pipeline":
        return {**result, "status": "autonomous_force_denied"}
    now = daemon.now()
    with daemon.store.transaction():
        daemon.store.run(
            "UPDATE memories SET is_deleted = 1, deleted_at = ?, updated_at = ?, updated_by = ?, version = version + 1"
            " WHERE id = ?",
            now, now, actor.name, memory,
        )  # fmt: skip
        _record_event(
            daemon, memory, "deleted", actor, reason, old=row["content"], new=None, force=force, ifVersion=version
        )
    return {**result, "status": "deleted", "newVersion": row["version"] + 1}


def _single(result: dict[str, Any], done: str, **more: Any) -> DaemonAnswer:
    """The answer of an operation on one row: 200 if its status is `done`, or if nothing had to change."""
    if result["status"] in (done, "no_changes"):
        return DaemonAnswer({**result, **(more if result["status"] == done else {})})
    status, error = _ERRORS[result["status"]]
    return DaemonAnswer({**result, **({"error": error} if error else {})}, status)


def patch_memory(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """PATCH memory/:id."""
    body = call.json_record()
    memory, reason = _memory_id(call), js.text_or_none(body.get("reason")) or ""
    demand(reason, "reason is required")
    version, changes = _version_in(body), _changes_in(body)
    demand_thawed(daemon)
    actor = actor_of(call, js.text_or_none(body.get("changed_by")))
    return _single(_modify(daemon, memory, changes, actor, reason, version=version), "updated")


def _memory_id(call: DaemonRequest) -> str:
    memory = call.params["id"].strip(js.BLANKS)
    demand(memory, "memory id is required")
    return memory


def _with_reason(daemon: Daemon, call: DaemonRequest, *, takes_force: bool) -> tuple[str, str, bool, int | None, Actor]:
    """The members that DELETE and recover read from body and query: id, reason, force, version and actor."""
    body = call.json_record(optional=True)
    memory = _memory_id(call)
    reason = js.text_or_none(body.get("reason")) or js.text_or_none(call.query.get("reason")) or ""
    demand(reason, "reason is required")
    force = js.flag(body.get("force"))
    demand(not takes_force or "force" not in body or force is not None, "force must be a boolean")
    force = js.flag(call.query.get("force")) if force is None else force
    version, query_version = _version_in(body), _version_in(call.query)
    demand_thawed(daemon)
    actor = actor_of(call, js.text_or_none(body.get("changed_by")))
    return memory, reason, bool(force), query_version if version is None else version, actor


def delete_memory(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """DELETE memory/:id."""
    memory, reason, force, version, actor = _with_reason(daemon, call, takes_force=True)
    return _single(forget(daemon, memory, actor, reason, force=force, version=version), "deleted")


def recover_memory(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST memory/:id/recover: restore a row that was deleted within 30 days."""
    memory, reason, _, version, actor = _with_reason(daemon, call, takes_force=False)
    row = daemon.store.row("SELECT * FROM memories WHERE id = ?", memory)
    result = {"id": memory, "status": "not_found"} | ({"currentVersion": row["version"]} if row else {})
    if not row:
        return _single(result, "recovered")
    deleted = js.read_moment(row["deleted_at"])
    if not row["is_deleted"]:
        result["status"] = "not_deleted"
    elif version is not None and version != row["version"]:
        result["status"] = "version_conflict"
    elif deleted is None or daemon.clock() - deleted > _KEPT_DAYS * 86_400:
        result["status"] = "retention_expired"
    elif daemon.store.row(f"SELECT 1 FROM memories WHERE {_TWIN}", *_twin_values(row, row["content_hash"])):
        return plain(500, "Internal Server Error")
    else:
        with daemon.store.transaction():
            daemon.store.run(
                "UPDATE memories SET is_deleted = 0, deleted_at = NULL, updated_at = ?, version = version + 1"
                " WHERE id = ?",
                daemon.now(), memory,
            )  # fmt: skip
            _record_event(daemon, memory, "recovered", actor, reason, old=None, new=row["content"], ifVersion=version)
        result |= {"status": "recovered", "newVersion": row["version"] + 1}
    return _single(result, "recovered", retentionDays=_KEPT_DAYS)


def modify_memories(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST memory/modify: up to 200 patches, each with a status of its own."""
    body = call.json_record()
    given = body.get("patches")
    patches = given if isinstance(given, list) else []
    demand(patches, "patches[] is required")
    demand(len(patches) <= MOST_ITEMS, f"patches[] exceeds maximum batch size ({MOST_ITEMS})")
    demand_thawed(daemon)
    actor = actor_of(call, js.text_or_none(body.get("changed_by")))
    results = [_one_patch(daemon, js.record(patch), js.text_or_none(body.get("reason")), actor) for patch in patches]
    updated = sum(result["status"] == "updated" for result in results)
    return DaemonAnswer({"total": len(results), "updated": updated, "results": results})


def _one_patch(daemon: Daemon, patch: dict[str, Any] | None, reason: str | None, actor: Actor) -> dict[str, Any]:
    def invalid(memory: str | None, error: str) -> dict[str, Any]:
        return {"id": memory, "status": "invalid_request", "error": error}

    if patch is None:
        return invalid(None, "Each patch must be an object")
    memory = js.text_or_none(patch.get("id"))
    if not memory:
        return invalid(None, "Patch id is required")
    reason = js.text_or_none(patch.get("reason")) or reason
    if not reason:
        return invalid(memory, "reason is required")
    try:
        version, changes = _version_in(patch), _changes_in(patch)
    except RefusedError as refused:
        return invalid(memory, refused.answer.body["error"])
    return _modify(daemon, memory, changes, actor, reason, version=version)


def history(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """GET memory/:id/history: the changes of a row, oldest first."""
    memory = _memory_id(call)
    if not daemon.store.row("SELECT 1 FROM memories WHERE id = ?", memory):
        return refusal(404, "Not found", memoryId=memory)
    limit = min(js.positive_integer(call.query.get("limit")) or 200, 1000)
    rows = daemon.store.rows(
        "SELECT * FROM memory_history WHERE memory_id = ? ORDER BY created_at LIMIT ?", memory, limit
    )
    events = [
        {
            "id": row["id"], "event": row["event"], "oldContent": row["old_content"], "newContent": row["new_content"],
            "changedBy": row["changed_by"], "reason": row["reason"],
            "metadata": json.loads(row["metadata"]) if row["metadata"] else None, "createdAt": row["created_at"],
            **present(actorType=row["actor_type"], sessionId=row["session_id"], requestId=row["request_id"]),
        }
        for row in rows
    ]  # fmt: skip
    return DaemonAnswer({"memoryId": memory, "count": len(events), "history": events})


_CONFIRM_ABOVE: Final = 25
_NO_IF_VERSION: Final = (
    "if_version is not supported for batch forget; use DELETE /api/memory/:id for version-guarded deletes"
)
_NO_CHOICE: Final = "query, ids, or at least one filter (type/tags/who/source_type/since/until) is required"
_FILTERS: Final = ("query", "type", "tags", "who", "source_type", "since", "until", "scope")


def forget_memories(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST memory/forget: preview a deletion, or with the mode `execute` delete."""
    body = call.json_record()
    mode = js.text_or_none(body.get("mode")) or "preview"
    demand(mode in ("preview", "execute"), "mode must be preview or execute")
    limit = js.positive_integer(body.get("limit"))
    demand("limit" not in body or limit is not None, "limit must be a positive integer")
    ids = _ids_in(body)
    filters = {name: js.text_or_none(body.get(name)) for name in _FILTERS}
    demand(ids or any(filters.values()), _NO_CHOICE)
    wanted = min(limit or 20, MOST_ITEMS)
    rows = _by_ids(daemon, ids[:wanted]) if ids else _by_filters(daemon, filters, wanted)
    token = hashlib.sha256("|".join(sorted({row["id"] for row in rows})).encode()).hexdigest()[:32]
    confirm = len(rows) > _CONFIRM_ABOVE
    if mode == "preview":
        candidates = [
            {"id": row["id"], "score": round(row["score"], 3), "pinned": row["pinned"] == 1, "version": row["version"]}
            for row in rows
        ]
        preview = {"mode": mode, "count": len(rows), "requiresConfirm": confirm, "confirmToken": token}
        return DaemonAnswer({**preview, "candidates": candidates})
    return _execute(daemon, call, body, [row["id"] for row in rows], token if confirm else None)


def _execute(
    daemon: Daemon, call: DaemonRequest, body: Mapping[str, Any], ids: list[str], token: str | None
) -> DaemonAnswer:
    """Forget `ids`. Many of them need the `token` of their preview."""
    reason, force = js.text_or_none(body.get("reason")) or "", js.flag(body.get("force"))
    demand(reason, "reason is required for execute mode")
    demand("force" not in body or force is not None, "force must be a boolean")
    demand("if_version" not in body, _NO_IF_VERSION)
    if token and js.text_or_none(body.get("confirm_token")) != token:
        error = "confirm_token is required for large forget operations; run preview first"
        return refusal(400, error, requiresConfirm=True, confirmToken=token, count=len(ids))
    demand_thawed(daemon)
    actor = actor_of(call, js.text_or_none(body.get("changed_by")))
    results = [forget(daemon, memory, actor, reason, force=bool(force)) for memory in ids]
    deleted = sum(result["status"] == "deleted" for result in results)
    return DaemonAnswer({"mode": "execute", "requested": len(ids), "deleted": deleted, "results": results})


def _ids_in(body: Mapping[str, Any]) -> list[str]:
    given = body.get("ids", [])
    demand(isinstance(given, list), "ids must be an array of strings")
    ids = [js.text_or_none(item) for item in given]
    demand(all(ids), "ids must contain non-empty strings")
    return list(dict.fromkeys(str(item) for item in ids))


def _by_ids(daemon: Daemon, ids: list[str]) -> list[dict[str, Any]]:
    rows = daemon.store.rows(
        f"""SELECT id, pinned, version, 0 AS score FROM memories
            WHERE is_deleted = 0 AND id IN ({",".join("?" * len(ids))})""",
        *ids,
    )
    by_id = {row["id"]: dict(row) for row in rows}
    return [by_id[item] for item in ids if item in by_id]


def _by_filters(daemon: Daemon, filters: dict[str, str | None], limit: int) -> list[dict[str, Any]]:
    conditions = given_filters(filters, "type", "who", "source_type", "since", "until", "scope")
    tags = filter(None, map(str.strip, (filters["tags"] or "").split(",")))
    conditions += [("m.tags LIKE ?", f"%{tag}%") for tag in tags]
    where, values = conjunction(conditions, "m.is_deleted = 0", *([] if filters["scope"] else ["m.scope IS NULL"]))
    query = filters["query"]
    if not query:
        rows = daemon.store.rows(
            f"""SELECT m.id, m.pinned, m.version, 0 AS score FROM memories m WHERE {where}
                ORDER BY m.pinned DESC, m.importance DESC, m.updated_at DESC LIMIT ?""",
            *values, limit,
        )  # fmt: skip
        return [dict(row) for row in rows]
    try:
        rows = daemon.store.rows(
            f"""SELECT m.id, m.pinned, m.version, 1.0 / (1.0 + ABS(bm25(memories_fts))) AS score FROM memories_fts
                JOIN memories m ON memories_fts.rowid = m.rowid WHERE memories_fts MATCH ? AND {where}
                ORDER BY bm25(memories_fts) LIMIT ?""",
            query, *values, limit,
        )  # fmt: skip
    except sqlite3.OperationalError:
        rows = daemon.store.rows(
            f"""SELECT m.id, m.pinned, m.version, 0 AS score FROM memories m
                WHERE (m.content LIKE ? OR m.tags LIKE ?) AND {where} ORDER BY m.updated_at DESC LIMIT ?""",
            f"%{query}%", f"%{query}%", *values, limit,
        )  # fmt: skip
    return [dict(row) for row in rows]
