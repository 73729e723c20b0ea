"""Memories in release 0.58: all agents share them, and only words find them, even deleted ones."""

from __future__ import annotations

import re
import sqlite3
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from signet_conformance.daemon import js
from signet_conformance.daemon.handlers.early import AGENT, AcceptedRequest, Gate
from signet_conformance.daemon.handlers.memories import saving
from signet_conformance.daemon.handlers.memories.reading import read_query
from signet_conformance.daemon.handlers.memories.recall import row_to_wire
from signet_conformance.daemon.handlers.memories.search import conjunction, given_filters
from signet_conformance.daemon.state import Daemon
from signet_conformance.daemon.state.texts import CRITICAL, chunks_of, infer_type, normalise, read_marks
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest, demand, refusal

_LONGEST: Final = 500
_CHUNK_LENGTH: Final = 300
_HOOK: Final = Gate(("harness", "content"), {"success": True, "memories": []})


def hook_remember(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST hooks/remember: a new row unless its idempotency key is known. A failure to store also gets a 200."""
    request = _HOOK.admit(daemon, call)
    text = js.trimmed(request.fields["content"]) or ""
    try:
        return DaemonAnswer({"saved": True, "id": _hook_row(daemon, request, text)})
    except sqlite3.Error:
        return DaemonAnswer({"saved": False, "id": ""})


def _hook_row(daemon: Daemon, request: AcceptedRequest, text: str) -> str:
    pinned = text.lower().startswith(CRITICAL)
    tags, text = _heading(text[len(CRITICAL) :].strip(js.BLANKS) if pinned else text)
    fields = request.fields
    given = {name: fields[name] for name in ("idempotencyKey", "who", "project") if js.truthy(fields.get(name))}
    key = given.get("idempotencyKey")
    known = daemon.store.row("SELECT id FROM memories WHERE idempotency_key = ?", key) if key is not None else None
    if known:
        return str(known["id"])
    draft = _draft(
        daemon,
        text,
        who=given.get("who", fields["harness"]),
        project=given.get("project"),
        importance=1 if pinned else 0.8,
        pinned=pinned,
        tags=tags,
        source_type="explicit",
        runtime_path=request.path or fields.get("runtimePath"),
        key=key,
    )
    # Without a hash: no later save counts as a duplicate of this row.
    unhashed = {"normalized_content": None, "content_hash": None, "extraction_status": "none", "why": None}
    return saving.insert(daemon, draft, replace(normalise(text), stored=text), infer_type(text), **unhashed)


def _heading(text: str) -> tuple[str | None, str]:
    """The tags in ``[…]:`` at the beginning of `text`, unchanged, and the rest."""
    tags, closed, rest = text[1:].partition("]:")
    return (tags, rest.lstrip(js.BLANKS)) if text[:1] == "[" and closed and tags and "]" not in tags else (None, text)


def remember_alias(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST memory/save and hook/remember: the daemon asks its own memory/remember, without the caller's token."""
    if daemon.auth.mode == "team":
        return DaemonAnswer({"error": "authentication required"}, 401, {"www-authenticate": "Bearer"})
    return _save(daemon, js.fields_of(call.json_or_empty()))


def remember(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST memory/remember."""
    return _save(daemon, saving.read_body(call))


def _save(daemon: Daemon, fields: Mapping[str, Any]) -> DaemonAnswer:
    raw = js.trimmed(fields.get("content")) or ""
    demand(raw, "content is required")
    saving.demand_thawed(daemon)
    marks = read_marks(raw)
    given = {"who": "daemon", "importance": marks.importance, "pinned": marks.pinned, "tags": marks.tags}
    given |= {name: fields[name] for name in given if fields.get(name) is not None}
    draft = _draft(
        daemon,
        raw,
        **{**given, "pinned": js.truthy(given["pinned"])},
        project=fields.get("project"),
        source_type=js.trimmed(fields.get("sourceType")) or "manual",
        source_id=js.trimmed(fields.get("sourceId")) or None,
    )
    if len(raw) > _LONGEST:
        return _chunked(daemon, draft)
    return saving.save_one(daemon, replace(draft, raw=_flat(raw)), {}, links=False)


def _flat(text: str) -> str:
    """`text` as memory/remember stores it: each run of blanks becomes one."""
    return re.sub(rf"[{js.BLANKS}]+", " ", text)


def _draft(daemon: Daemon, raw: str, *, project: Any, **given: Any) -> saving.Draft:
    now = daemon.now()
    return saving.Draft(raw, AGENT, "global", project, None, created=now, now=now, **given)


def _chunked(daemon: Daemon, draft: saving.Draft) -> DaemonAnswer:
    """Save the new pieces in a group of their own; a piece that cannot be stored is left out."""
    group, ids = str(uuid.uuid4()), []
    for piece in saving.fresh_chunks(daemon, draft, list(map(_flat, chunks_of(draft.raw, _CHUNK_LENGTH, plain=True)))):
        try:
            ids.append(
                saving.insert(daemon, draft, piece, infer_type(piece.stored), source_type="chunk", source_id=group)
            )
        except sqlite3.Error:
            continue
    return saving.chunk_answer(ids, group)


_MOST_ROWS: Final = 20
#: A row that is less than a tenth as relevant as the best one is not shown.
_LEAST_SHARE: Final = 0.1
_OPERATORS: Final = frozenset(("AND", "OR", "NOT"))
_SYNTAX: Final = re.compile(r'[":()^*]')


def all_of(text: str) -> str:
    """The full-text query for all words of `text`, without repeats. With a capital AND, OR or NOT, it is as written."""
    words = dict.fromkeys(text.split()) if not _OPERATORS & set(text.split()) else text.split()
    quoted = (word if word in _OPERATORS else _quoted(word) for word in words)
    return " ".join(filter(None, quoted))


def any_of(words: Iterable[str]) -> str:
    """The full-text query for any of `words`."""
    return " OR ".join(filter(None, map(_quoted, words)))


def _quoted(word: str) -> str:
    bare = _SYNTAX.sub("", word)
    return f'"{bare}"' if bare else ""


def search_rows(daemon: Daemon, expression: str, filters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows that match, best first, each with its ``score`` in 0..1. Raises `ScriptError` if tags are no text."""
    where, values = _conditions(filters)
    sql = f"""WITH hit AS MATERIALIZED (
                  SELECT rowid AS place, -bm25(memories_fts) AS relevance FROM memories_fts WHERE memories_fts MATCH ?)
              SELECT m.*, hit.relevance FROM hit JOIN memories m ON m.rowid = hit.place WHERE {where}
              ORDER BY hit.relevance * CAST(m.importance AS REAL) DESC, m.created_at LIMIT {_MOST_ROWS}"""
    try:
        rows = daemon.store.rows(sql, expression, *values) if expression else []
    except sqlite3.Error:
        return []
    least = _LEAST_SHARE * max((row["relevance"] for row in rows), default=0.0)
    shown = [row for row in rows if row["relevance"] >= least]
    return [{**dict(row), "score": 1 - place / len(shown)} for place, row in enumerate(shown)]


def _conditions(filters: Mapping[str, Any]) -> tuple[str, list[Any]]:
    # Values are compared as sent: one of another type finds nothing.
    conditions = given_filters(filters, "type", "who", "since", "until")
    tags = filters.get("tags")
    if js.truthy(tags):
        if not isinstance(tags, str):
            raise js.ScriptError("tags are no text")
        conditions += [("m.tags LIKE ?", f"%{tag}%") for part in tags.split(",") if (tag := part.strip(js.BLANKS))]
    if js.is_number(filters.get("importance_min")):
        conditions.append(("m.importance >= ?", filters["importance_min"]))
    fixed = ["m.pinned"] if js.truthy(filters.get("pinned")) else []
    return conjunction(conditions, "1", *fixed)


_DEFAULT_LIMIT: Final = 10
_MOST_WORDS: Final = 10
_LATER_MEMBERS: Final = ("source_id", "session_id", "visibility", "scope")
_HOOK_COLUMNS: Final = "m.id, m.content, m.type, m.importance, m.tags, m.created_at"
_RECALL_HOOK: Final = Gate(("harness", "query"), {"memories": [], "count": 0})


def memory_recall(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST memory/recall: only results, query and method."""
    query, fields = read_query(call)
    try:
        words = js.trimmed(fields.get("keywordQuery"))
        rows = search_rows(daemon, all_of(query if words is None else words), fields)
    except js.ScriptError:
        return refusal(500, "Recall failed", results=[])
    rows = rows[: js.slice_end(fields.get("limit"), _DEFAULT_LIMIT)]
    daemon.count_reads([row["id"] for row in rows])
    results = [
        {name: value for name, value in row_to_wire(row, row["score"], "keyword").items() if name not in _LATER_MEMBERS}
        for row in rows
    ]
    return DaemonAnswer({"results": results, "query": query, "method": "keyword" if rows else "hybrid"})


def hook_recall(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST hooks/recall: rows with one of the query's words, else those whose text contains the query."""
    request = _RECALL_HOOK.admit(daemon, call)
    try:
        rows = _hook_rows(daemon, request.fields)
    except sqlite3.Error:
        rows = []
    daemon.count_reads([row["id"] for row in rows])
    return DaemonAnswer({"results": rows, "count": len(rows)})


def _hook_rows(daemon: Daemon, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    text = _as_text(fields["query"])
    words = [word for word in re.split(r"\W+", text.lower(), flags=re.ASCII) if len(word) >= 3]
    ways = [("m.content LIKE ?", f"%{text}%", "m.importance DESC")]
    if words and isinstance(fields["query"], str):
        by_words = "m.rowid IN (SELECT rowid FROM memories_fts WHERE memories_fts MATCH ?)"
        ways.insert(0, (by_words, any_of(words[:_MOST_WORDS]), "m.rowid"))
    of_project, project = ("m.project = ?", [fields["project"]]) if js.truthy(fields.get("project")) else ("1", [])
    limit = fields["limit"] if js.truthy(fields.get("limit")) else _DEFAULT_LIMIT
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
