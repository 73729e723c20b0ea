"""Recall in 0.58: words only, the rows of every agent, forgotten ones too; filters as they come."""

from __future__ import annotations

import math
import re
import sqlite3
from typing import TYPE_CHECKING, Any, Final

from signet_conformance.daemon.handlers.early.keys import bound, conflict, is_bypassed, path_of
from signet_conformance.daemon.timestamps import read_moment
from signet_conformance.daemon.values import (
    BLANKS,
    ScriptError,
    UnreadableJsonError,
    fields_of,
    is_number,
    slice_end,
    trimmed,
    truthy,
)
from signet_conformance.daemon.wire import Answer, Call, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from signet_conformance.daemon.state.daemon import Daemon

_POOL: Final = 20
_LEAST_SCORE: Final = 0.1
_REHEARSAL: Final = 0.1
_HALF_LIFE_DAYS: Final = 30
_SHOWN_CHARACTERS: Final = 500
_OPERATORS: Final = ("OR", "AND", "NOT")
_ROW: Final = (
    "id", "content", "type", "importance", "tags", "pinned", "who", "source_id", "source_type", "project", "session_id",
    "confidence", "access_count", "last_accessed", "is_deleted", "deleted_at", "extraction_status", "embedding_model",
    "version", "created_at", "updated_at", "updated_by",
)  # fmt: skip


def memory_recall(daemon: Daemon, call: Call) -> Answer:
    """POST memory/recall: results, query and method, nothing else."""
    try:
        fields = fields_of(call.json())
    except UnreadableJsonError:
        return refusal(400, "Invalid JSON body")
    query = trimmed(fields.get("query"))
    if not query:
        return refusal(400, "query is required")
    try:
        return Answer(recalled(daemon, query, fields))
    except (ScriptError, sqlite3.Error):
        return refusal(500, "Recall failed", results=[])


def recalled(daemon: Daemon, query: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of a recall. Raises `ScriptError` for a filter that cannot be split."""
    words = fields.get("keywordQuery")
    rows = search(daemon, query, fields, words=trimmed(words), limit=fields.get("limit"))
    return {"results": rows, "query": query, "method": "keyword" if rows else "hybrid"}


def search(
    daemon: Daemon, query: str, fields: Mapping[str, Any], *, words: str | None, limit: Any
) -> list[dict[str, Any]]:
    """The rows that `words` (else the query) find, best first, as a recall shows them."""
    where, values = _filter(fields)
    scores: dict[str, float] = {}
    try:
        found = daemon.store.rows(
            f"""SELECT m.id, bm25(memories_fts) AS raw FROM memories_fts JOIN memories m ON memories_fts.rowid = m.rowid
                WHERE memories_fts MATCH ?{where} ORDER BY raw LIMIT ?""",
            _expression(query if words is None else words), *[bound(value) for value in values], _POOL,
        )  # fmt: skip
        best = max((abs(row["raw"]) for row in found), default=1) or 1
        scores = {row["id"]: score for row in found if (score := abs(row["raw"]) / best) >= _LEAST_SCORE}
    except (ScriptError, sqlite3.Error):
        scores = {}  # the release goes on without words, and without a model it then has nothing
    rows = {
        row["id"]: row
        for row in daemon.store.rows(
            f"SELECT * FROM memories WHERE id IN ({','.join('?' * len(scores))})", *scores
        )
    }  # fmt: skip
    for memory, score in scores.items():
        scores[memory] = score * (1 + _rehearsal(rows[memory], daemon.clock()))
    chosen = sorted(scores, key=lambda memory: -scores[memory])[: slice_end(limit, 10)]
    daemon.store.run_many(
        "UPDATE memories SET access_count = access_count + 1, last_accessed = datetime(?, 'unixepoch') WHERE id = ?",
        [(int(daemon.clock()), memory) for memory in chosen],
    )
    return [_shown(rows[memory], scores[memory]) for memory in chosen]


def _filter(fields: Mapping[str, Any]) -> tuple[str, list[Any]]:
    where, values = "", []
    for name, clause in (("type", "m.type = ?"), ("who", "m.who = ?")):
        if truthy(fields.get(name)):
            where += f" AND {clause}"
            values.append(fields[name])
    if truthy(fields.get("tags")):
        if not isinstance(fields["tags"], str):
            raise ScriptError("split is not a function")
        for tag in filter(None, (part.strip(BLANKS) for part in fields["tags"].split(","))):
            where += " AND m.tags LIKE ?"
            values.append(f"%{tag}%")
    if truthy(fields.get("pinned")):
        where += " AND m.pinned = 1"
    if is_number(fields.get("importance_min")):
        where += " AND m.importance >= ?"
        values.append(fields["importance_min"])
    for name, sign in (("since", ">="), ("until", "<=")):
        if truthy(fields.get(name)):
            where += f" AND m.created_at {sign} ?"
            values.append(fields[name])
    return where, values


def _expression(text: str) -> str:
    """`text` for the full-text index: every word quoted, all of them wanted, operators as they are."""
    words = []
    for word in text.split():
        bare = word if word in _OPERATORS else re.sub(r'[":()^*]', "", word)
        if bare:
            words.append(bare if word in _OPERATORS else f'"{bare}"')
    return " ".join(words)


def _rehearsal(row: sqlite3.Row, now: float) -> float:
    count = row["access_count"] or 0
    if count <= 0:
        return 0.0
    last = read_moment(row["last_accessed"]) if row["last_accessed"] else None
    days = _HALF_LIFE_DAYS if last is None else (now - last) / 86_400
    return _REHEARSAL * math.log(count + 1) * math.pow(0.5, days / _HALF_LIFE_DAYS)


def _shown(row: sqlite3.Row, score: float) -> dict[str, Any]:
    content = row["content"]
    long = len(content) > _SHOWN_CHARACTERS
    return {
        "id": row["id"], "content": f"{content[:_SHOWN_CHARACTERS]} [truncated]" if long else content,
        "content_length": len(content), "truncated": long, "score": round(score, 2), "source": "keyword",
        "type": row["type"], "tags": row["tags"], "pinned": bool(row["pinned"]), "importance": row["importance"],
        "who": row["who"], "project": row["project"], "created_at": row["created_at"],
    }  # fmt: skip


def hook_recall(daemon: Daemon, call: Call) -> Answer:
    """POST hooks/recall: rows with any of the query's words, else those that contain it; plain columns."""
    if call.header("x-signet-no-hooks") == "1":
        return Answer({"memories": [], "count": 0})
    fields = fields_of(call.json())
    if not truthy(fields.get("harness")) or not truthy(fields.get("query")):
        return refusal(400, "harness and query are required")
    refused = conflict(daemon, fields, path_of(call, fields))
    if refused:
        return refused
    if is_bypassed(daemon, fields):
        return Answer({"memories": [], "count": 0, "bypassed": True})
    try:
        rows = _hook_rows(daemon, fields)
    except (ScriptError, sqlite3.Error):
        rows = []
    daemon.store.run_many(
        "UPDATE memories SET access_count = access_count + 1, last_accessed = ? WHERE id = ?",
        [(daemon.now(), row["id"]) for row in rows],
    )
    return Answer({"results": rows, "count": len(rows)})


def _hook_rows(daemon: Daemon, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    columns = "m.id, m.content, m.type, m.importance, m.tags, m.created_at"
    limit = bound(fields["limit"]) if truthy(fields.get("limit")) else 10
    project = fields.get("project")
    mine, own = ("AND m.project = ?", [bound(project)]) if truthy(project) else ("", [])
    query = fields["query"]
    found: list[sqlite3.Row] = []
    if isinstance(query, str):
        words = [word for word in re.split(r"[^A-Za-z0-9_]+", query.lower()) if len(word) >= 3][:10]
        if words:
            try:
                found = daemon.store.rows(
                    f"""SELECT {columns} FROM memories m JOIN memories_fts f ON m.rowid = f.rowid
                        WHERE memories_fts MATCH ? AND m.is_deleted = 0 {mine} LIMIT ?""",
                    " OR ".join(words), *own, limit,
                )  # fmt: skip
            except sqlite3.Error:
                found = []
    if not found:
        text = query if isinstance(query, str) else _as_text(query)
        found = daemon.store.rows(
            f"""SELECT {columns} FROM memories m WHERE m.content LIKE ? AND m.is_deleted = 0 {mine}
                ORDER BY m.importance DESC LIMIT ?""",
            f"%{text}%", *own, limit,
        )  # fmt: skip
    return [dict(row) for row in found]


def _as_text(value: Any) -> str:
    if isinstance(value, dict):
        return "[object Object]"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def get_memory(daemon: Daemon, call: Call) -> Answer:
    """GET memory/:id: the row, whoever asks."""
    memory = call.params["id"].strip(BLANKS)
    if not memory:
        return refusal(400, "memory id is required")
    row = daemon.store.row("SELECT m.*, NULL AS session_id FROM memories m WHERE m.id = ? AND m.is_deleted = 0", memory)
    if not row:
        return refusal(404, "not found")
    shown = {name: row[name] for name in _ROW}
    if str(row["source_type"] or "").startswith("session") and isinstance(row["source_id"], str):
        shown["sessionId"] = row["source_id"]
    return Answer(shown)
