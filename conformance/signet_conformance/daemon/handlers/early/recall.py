"""Recall in 0.58: by words only, over the rows of every agent."""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING, Any, Final

from signet_conformance.daemon.handlers.early.finding import all_of, any_of, found
from signet_conformance.daemon.handlers.early.gate import Gate, has
from signet_conformance.daemon.handlers.memories.recall import shown_row
from signet_conformance.daemon.handlers.memories.recalling import read_query
from signet_conformance.daemon.values import ScriptError, slice_end, trimmed, truthy
from signet_conformance.daemon.wire import Answer, Call, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from signet_conformance.daemon.state.daemon import Daemon

_DEFAULT_LIMIT: Final = 10
_MOST_WORDS: Final = 10
_LATER: Final = ("source_id", "session_id", "visibility", "scope")
_HOOK_COLUMNS: Final = "m.id, m.content, m.type, m.importance, m.tags, m.created_at"
_HOOK: Final = Gate(
    has("harness", "query"),
    "harness and query are required",
    {"memories": [], "count": 0},
    {"memories": [], "count": 0},
)


def memory_recall(daemon: Daemon, call: Call) -> Answer:
    """POST memory/recall: results, query and method, nothing else."""
    asked = read_query(call)
    if isinstance(asked, Answer):
        return asked
    query, fields = asked
    try:
        words = trimmed(fields.get("keywordQuery"))
        rows = found(daemon, all_of(query if words is None else words), fields)
    except ScriptError:
        return refusal(500, "Recall failed", results=[])
    rows = rows[: slice_end(fields.get("limit"), _DEFAULT_LIMIT)]
    daemon.count_reads([row["id"] for row in rows])
    results = [
        {name: value for name, value in shown_row(row, row["score"], "keyword").items() if name not in _LATER}
        for row in rows
    ]
    return Answer({"results": results, "query": query, "method": "keyword" if rows else "hybrid"})


def hook_recall(daemon: Daemon, call: Call) -> Answer:
    """POST hooks/recall: rows with one of the query's words, else those whose text contains the query."""
    visit = _HOOK.admit(daemon, call)
    if isinstance(visit, Answer):
        return visit
    try:
        rows = _hook_rows(daemon, visit.fields)
    except sqlite3.Error:
        rows = []
    daemon.count_reads([row["id"] for row in rows])
    return Answer({"results": rows, "count": len(rows)})


def _hook_rows(daemon: Daemon, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    text = _as_text(fields["query"])
    words = [word for word in re.split(r"\W+", text.lower(), flags=re.ASCII) if len(word) >= 3]
    ways = [("m.content LIKE ?", f"%{text}%", "m.importance DESC")]
    if words and isinstance(fields["query"], str):
        by_words = "m.rowid IN (SELECT rowid FROM memories_fts WHERE memories_fts MATCH ?)"
        ways.insert(0, (by_words, any_of(words[:_MOST_WORDS]), "m.rowid"))
    of_project, project = ("m.project = ?", [fields["project"]]) if truthy(fields.get("project")) else ("1", [])
    limit = fields["limit"] if truthy(fields.get("limit")) else _DEFAULT_LIMIT
    for condition, value, order in ways:
        sql = f"""SELECT {_HOOK_COLUMNS} FROM memories m
                  WHERE m.is_deleted = 0 AND {of_project} AND {condition} ORDER BY {order} LIMIT ?"""
        rows = daemon.store.rows(sql, *project, value, limit)
        if rows:
            return [dict(row) for row in rows]
    return []


def _as_text(value: Any) -> str:
    if isinstance(value, dict):
        return "[object Object]"
    return ",".join(map(_as_text, value)) if isinstance(value, list) else str(value)
