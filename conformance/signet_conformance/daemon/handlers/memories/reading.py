"""The operations that read memories: by id, as a list, by search and recall; also feedback and notes."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from typing import Any, Final

from signet_conformance.daemon import js
from signet_conformance.daemon.handlers.memories.recall import RecallRequest, aggregate, plain, recall
from signet_conformance.daemon.handlers.memories.saving import demand_thawed, read_body
from signet_conformance.daemon.handlers.memories.search import conjunction, demand_time, given_filters
from signet_conformance.daemon.state import Daemon
from signet_conformance.daemon.state.agents import named_agent, plain_agent, resolve_agent
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest, RefusedError, demand, refusal

_ROW: Final = (
    "id", "content", "type", "importance", "tags", "pinned", "who", "source_id", "source_type", "source_path",
    "runtime_path", "idempotency_key", "project", "session_id", "confidence", "access_count", "last_accessed",
    "is_deleted", "deleted_at", "extraction_status", "embedding_model", "version", "created_at", "updated_at",
    "updated_by",
)  # fmt: skip


_LATER: Final = {"sourcePath": "source_path", "runtimePath": "runtime_path", "idempotencyKey": "idempotency_key"}
"""Members that later releases add, each with the column that it repeats."""


def get_memory(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """GET memory/:id: the row, when the agent of the request may see it."""
    memory = call.params["id"].strip(js.BLANKS)
    demand(memory, "memory id is required")
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
    fields = {name: row[name] for name in _ROW}
    if daemon.behaviour.row_is_short:
        fields = {name: fields[name] for name in fields if name not in _LATER.values()}
    else:
        fields |= {name: row[column] for name, column in _LATER.items()}
    if str(row["source_type"] or "").startswith("session") and row["source_id"]:
        fields["sessionId"] = row["source_id"]
    return DaemonAnswer(fields)


def list_memories(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """GET memories: the newest rows of all agents, with counts."""
    limit, offset = js.leading_integer(call.query.get("limit"), 100), js.leading_integer(call.query.get("offset"), 0)
    total = daemon.store.number("SELECT COUNT(*) FROM memories WHERE is_deleted = 0")
    critical = daemon.store.number("SELECT COUNT(*) FROM memories WHERE is_deleted = 0 AND importance >= 0.9")
    if limit is None or offset is None:
        empty = {"total": 0, "withEmbeddings": 0, "critical": 0}
        return DaemonAnswer({"memories": [], "stats": empty, "error": "Failed to load memories"})
    rows = daemon.store.rows(
        """SELECT id, content, created_at, who, importance, tags, source_type, pinned, type FROM memories
           WHERE is_deleted = 0 ORDER BY created_at DESC LIMIT ? OFFSET ?""",
        limit, offset,
    )  # fmt: skip
    stats = {"total": total, "withEmbeddings": 0, "critical": critical}
    return DaemonAnswer({"memories": [dict(row) for row in rows], "stats": stats})


def search_rows(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """GET /memory/search: the rows that words or filters of the query string find."""
    query = call.query
    if query.get("distinct") == "who":
        rows = daemon.store.rows("SELECT DISTINCT who FROM memories WHERE who IS NOT NULL ORDER BY who")
        return DaemonAnswer({"values": [row["who"] for row in rows]})
    # Deleted rows are found too, as by the real daemon's older search.
    where, values = conjunction(given_filters(query, "type", "who", "since"), "1 = 1")
    columns = "m.id, m.content, m.created_at, m.who, m.importance, m.tags, m.type, m.pinned"
    limit = js.leading_integer(query.get("limit"), 20) or 20
    text = query.get("q", "").strip()
    if not text and not values:
        return DaemonAnswer({"results": []})
    if text:
        sql = f"""SELECT {columns}, bm25(memories_fts) AS score FROM memories_fts
                  JOIN memories m ON memories_fts.rowid = m.rowid
                  WHERE memories_fts MATCH ? AND {where} ORDER BY score LIMIT ?"""
        values.insert(0, text)
    else:
        sql = f"SELECT {columns}, m.importance AS score FROM memories m WHERE {where} ORDER BY score DESC LIMIT ?"
    try:
        return DaemonAnswer({"results": [dict(row) for row in daemon.store.rows(sql, *values, limit)]})
    except sqlite3.Error:
        return DaemonAnswer({"results": []})


_BUDGETS: Final = ("small", "medium", "large")


def demand_recall(fields: Mapping[str, Any]) -> None:
    """Raise `RefusedError` for a wrong budget or time of a recall."""
    budget = next((fields[name] for name in ("aggregateBudget", "aggregate_budget") if name in fields), "small")
    demand(budget in _BUDGETS, "Invalid aggregateBudget. Expected one of: small, medium, large.")
    if "time" in fields:
        demand_time(fields["time"])


def demand_saving(daemon: Daemon, call: DaemonRequest, fields: Mapping[str, Any], agent: str) -> None:
    """Raise `RefusedError` for an aggregate recall that would be saved for a caller without the right to save."""
    declined = any(fields.get(name) is False for name in ("saveAggregate", "save_aggregate"))
    if fields.get("aggregate") is not True or declined:
        return
    denied = daemon.auth.permission_problem(call, "remember")
    if denied:
        raise RefusedError(denied)
    daemon.auth.demand_write(call.claims, agent, fields.get("project"))


def run_recall(daemon: Daemon, request: RecallRequest) -> dict[str, Any]:
    """The answer to a recall, aggregated if it requests that."""
    if daemon.behaviour.recall_is_plain:
        return plain(daemon, request)
    return aggregate(daemon, request) if request.fields.get("aggregate") is True else recall(daemon, request)


def read_query(call: DaemonRequest) -> tuple[str, Mapping[str, Any]]:
    """The query and the fields of a recall. Raises `RefusedError` for a body without a query."""
    fields = read_body(call)
    query = js.trimmed(fields.get("query")) or ""
    demand(query, "query is required")
    return query, fields


def memory_recall(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST memory/recall: the memories that a query finds for an agent."""
    query, fields = read_query(call)
    takes_any_agent = daemon.behaviour.recall_is_plain
    key = call.header("x-signet-session-key")
    if not takes_any_agent:
        demand_recall(fields)
        key = key if (given := fields.get("sessionKey")) is None else given
    owned = call.claims.scope.get("project") if call.claims else None
    try:
        agent = named_agent(fields.get("agentId"), key, any_value=takes_any_agent)
        if not takes_any_agent:
            demand_saving(daemon, call, fields, agent)
            js.trimmed(owned or fields.get("project"))
        request = RecallRequest(query, agent, {**fields, **({"project": owned} if owned else {})}, key)
        return DaemonAnswer(run_recall(daemon, request))
    except (js.ScriptError, sqlite3.Error):
        return refusal(500, "Recall failed", results=[])


def feedback(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST memory/feedback: ratings of memories; those shown to the session at its start are accepted."""
    body = call.json_record()
    key, given = js.text_or_none(body.get("sessionKey")), body.get("feedback")
    demand(key and js.truthy(given), "sessionKey and feedback required")
    ratings = {name: value for name, value in (js.record(given) or {}).items() if name and js.is_number(value)}
    demand(ratings, "Invalid feedback format — expected map of ID to number (-1 to 1)")
    shown = daemon.store.rows(
        "SELECT memory_id FROM shown_memories WHERE session_key = ? AND agent_id = ?", key, plain_agent(body)
    )
    accepted = len({row["memory_id"] for row in shown} & set(ratings))
    return DaemonAnswer(
        {
            "ok": True, "recorded": len(ratings), "accepted": accepted, "rejected": len(ratings) - accepted,
            "propagated": 0, "cooccurrenceUpdated": 0, "dependenciesUpdated": 0,
            "acceptanceRule": "accepted means the memory id was recorded for this session and agent",
        }
    )  # fmt: skip


def codex_note(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST memory/codex-native-note: a note, written into the workspace and never into a user's home."""
    body = js.fields_of(call.json_or_empty())
    content = js.text_or_none(body.get("content")) or ""
    demand(content, "content is required")
    demand(len(content) <= 8000, "content must be at most 8000 characters")
    demand_thawed(daemon)
    folder = daemon.workspace / "codex-notes"
    folder.mkdir(exist_ok=True)
    slug = re.sub(r"[^a-z0-9]+", "-", (js.text_or_none(body.get("title")) or content[:80]).lower()).strip("-")[:48]
    path = folder / f"{re.sub('[:.]', '-', daemon.now())}-{slug or 'note'}.md"
    path.write_text(f"{content}\n", "utf-8")
    return DaemonAnswer({"ok": True, "path": str(path)})
