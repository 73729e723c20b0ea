"""Forgetting many memories at once: by their ids, or by what a query and filters find."""

from __future__ import annotations

import hashlib
import sqlite3
from typing import TYPE_CHECKING, Any, Final

from signet_conformance.daemon.handlers.memories.changing import MOST_ITEMS, actor_of, forget
from signet_conformance.daemon.handlers.memories.saving import demand_thawed
from signet_conformance.daemon.values import flag, positive_integer, text_or_none
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest, demand, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from signet_conformance.daemon.state import Daemon

_CONFIRM_ABOVE: Final = 25
_NO_IF_VERSION: Final = (
    "if_version is not supported for batch forget; use DELETE /api/memory/:id for version-guarded deletes"
)
_NO_CHOICE: Final = "query, ids, or at least one filter (type/tags/who/source_type/since/until) is required"
_FILTERS: Final = ("query", "type", "tags", "who", "source_type", "since", "until", "scope")


def forget_memories(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST memory/forget: a preview of what would go, or with mode execute its deletion."""
    body = call.json_record()
    mode = text_or_none(body.get("mode")) or "preview"
    demand(mode in ("preview", "execute"), "mode must be preview or execute")
    limit = positive_integer(body.get("limit"))
    demand("limit" not in body or limit is not None, "limit must be a positive integer")
    ids = _ids_in(body)
    filters = {name: text_or_none(body.get(name)) for name in _FILTERS}
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
        return DaemonAnswer(
            {
                "mode": mode,
                "count": len(rows),
                "requiresConfirm": confirm,
                "confirmToken": token,
                "candidates": candidates,
            }
        )
    return _execute(daemon, call, body, [row["id"] for row in rows], token if confirm else None)


def _execute(
    daemon: Daemon, call: DaemonRequest, body: Mapping[str, Any], ids: list[str], token: str | None
) -> DaemonAnswer:
    """Forget `ids`; when they are many only with the `token` of their preview."""
    reason, force = text_or_none(body.get("reason")) or "", flag(body.get("force"))
    demand(reason, "reason is required for execute mode")
    demand("force" not in body or force is not None, "force must be a boolean")
    demand("if_version" not in body, _NO_IF_VERSION)
    if token and text_or_none(body.get("confirm_token")) != token:
        error = "confirm_token is required for large forget operations; run preview first"
        return refusal(400, error, requiresConfirm=True, confirmToken=token, count=len(ids))
    demand_thawed(daemon)
    actor = actor_of(call, text_or_none(body.get("changed_by")))
    results = [forget(daemon, memory, actor, reason, force=bool(force)) for memory in ids]
    deleted = sum(result["status"] == "deleted" for result in results)
    return DaemonAnswer({"mode": "execute", "requested": len(ids), "deleted": deleted, "results": results})


def _ids_in(body: Mapping[str, Any]) -> list[str]:
    given = body.get("ids", [])
    demand(isinstance(given, list), "ids must be an array of strings")
    ids = [text_or_none(item) for item in given]
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
    where, values = "m.is_deleted = 0", []
    for name, clause in (
        ("type", "m.type = ?"), ("who", "m.who = ?"), ("source_type", "m.source_type = ?"),
        ("since", "m.created_at >= ?"), ("until", "m.created_at <= ?"),
    ):  # fmt: skip
        if filters[name]:
            where += f" AND {clause}"
            values.append(filters[name])
    for tag in (part.strip() for part in (filters["tags"] or "").split(",")):
        if tag:
            where += " AND m.tags LIKE ?"
            values.append(f"%{tag}%")
    where += " AND m.scope = ?" if filters["scope"] else " AND m.scope IS NULL"
    values += [filters["scope"]] if filters["scope"] else []
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
