"""Memories by id, as a list, and by the words of a query string."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

from signet_conformance.daemon.state.agents import resolve_agent
from signet_conformance.daemon.values import (
    BLANKS,
    leading_integer,
)
from signet_conformance.daemon.wire import Answer, Call, refusal

if TYPE_CHECKING:
    from signet_conformance.daemon.state.daemon import Daemon

_ROW: Final = (
    "id", "content", "type", "importance", "tags", "pinned", "who", "source_id", "source_type", "source_path",
    "runtime_path", "idempotency_key", "project", "session_id", "confidence", "access_count", "last_accessed",
    "is_deleted", "deleted_at", "extraction_status", "embedding_model", "version", "created_at", "updated_at",
    "updated_by",
)  # fmt: skip


_LATER_COLUMNS: Final = ("source_path", "runtime_path", "idempotency_key")


def get_memory(daemon: Daemon, call: Call) -> Answer:
    """GET memory/:id: the row, when the agent of the request may see it."""
    memory = call.params["id"].strip(BLANKS)
    if not memory:
        return refusal(400, "memory id is required")
    named = next((call.query[name] for name in ("agentId", "agent_id") if name in call.query), None)
    agent = resolve_agent(
        call.header("x-signet-agent-id") if named is None else named, call.header("x-signet-session-key")
    )
    visible, values = daemon.agents.visible(agent)
    project = call.claims.scope.get("project") if call.claims else None
    row = daemon.store.row(
        f"""SELECT m.*, NULL AS session_id FROM memories m WHERE m.id = ? AND m.is_deleted = 0{visible}
            {"AND m.project = ?" if project else ""}""",
        memory, *values, *([project] if project else []),
    )  # fmt: skip
    if not row:
        return refusal(404, "not found")
    shown = {name: row[name] for name in _ROW}
    if daemon.behaviour.row_is_short:
        shown = {name: shown[name] for name in shown if name not in _LATER_COLUMNS}
    else:
        shown |= {
            "sourcePath": row["source_path"],
            "runtimePath": row["runtime_path"],
            "idempotencyKey": row["idempotency_key"],
        }
    if str(row["source_type"] or "").startswith("session") and row["source_id"]:
        shown["sessionId"] = row["source_id"]
    return Answer(shown)


def list_memories(daemon: Daemon, call: Call) -> Answer:
    """GET memories: the newest rows of all agents, with counts."""
    limit, offset = leading_integer(call.query.get("limit"), 100), leading_integer(call.query.get("offset"), 0)
    total = daemon.store.number("SELECT COUNT(*) FROM memories WHERE is_deleted = 0")
    critical = daemon.store.number("SELECT COUNT(*) FROM memories WHERE is_deleted = 0 AND importance >= 0.9")
    if limit is None or offset is None:
        empty = {"total": 0, "withEmbeddings": 0, "critical": 0}
        return Answer({"memories": [], "stats": empty, "error": "Failed to load memories"})
    rows = daemon.store.rows(
        """SELECT id, content, created_at, who, importance, tags, source_type, pinned, type FROM memories
           WHERE is_deleted = 0 ORDER BY created_at DESC LIMIT ? OFFSET ?""",
        limit, offset,
    )  # fmt: skip
    stats = {"total": total, "withEmbeddings": 0, "critical": critical}
    return Answer({"memories": [dict(row) for row in rows], "stats": stats})


def search_rows(daemon: Daemon, call: Call) -> Answer:
    """GET /memory/search: the rows that words or filters of the query string find."""
    query = call.query
    if query.get("distinct") == "who":
        rows = daemon.store.rows("SELECT DISTINCT who FROM memories WHERE who IS NOT NULL ORDER BY who")
        return Answer({"values": [row["who"] for row in rows]})
    # Deleted rows are found too: this older search never learnt to leave them out.
    where, values = "1 = 1", []
    for clause, name in (("m.type = ?", "type"), ("m.who = ?", "who"), ("m.created_at >= ?", "since")):
        if query.get(name):
            where += f" AND {clause}"
            values.append(query[name])
    columns = "m.id, m.content, m.created_at, m.who, m.importance, m.tags, m.type, m.pinned"
    limit = leading_integer(query.get("limit"), 20) or 20
    text = query.get("q", "").strip()
    if not text and not values:
        return Answer({"results": []})
    if text:
        sql = f"""SELECT {columns}, bm25(memories_fts) AS score FROM memories_fts
                  JOIN memories m ON memories_fts.rowid = m.rowid
                  WHERE memories_fts MATCH ? AND {where} ORDER BY score LIMIT ?"""
        values.insert(0, text)
    else:
        sql = f"SELECT {columns}, m.importance AS score FROM memories m WHERE {where} ORDER BY score DESC LIMIT ?"
    try:
        return Answer({"results": [dict(row) for row in daemon.store.rows(sql, *values, limit)]})
    except sqlite3.Error:
        return Answer({"results": []})
