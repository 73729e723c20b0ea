"""Saves memories: checks in the daemon's order, duplicates, chunks of long texts."""

from __future__ import annotations

import dataclasses
import sqlite3
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from signet_conformance.daemon import js
from signet_conformance.daemon.state import Daemon, texts
from signet_conformance.daemon.state.agents import named_agent
from signet_conformance.daemon.state.graph import hints_in
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest, RefusedError, demand, refusal

_MOMENTS: Final = ("createdAt", "sourceCreatedAt", "observedAt", "occurredAt", "validFrom", "validUntil")


@dataclass(frozen=True)
class Draft:
    """The checked fields of a save; `raw` is the trimmed content with its marks.

    Duplicates are searched for in the same place only: the same agent, visibility, project and scope.
    """

    raw: str
    agent: str
    visibility: str
    project: Any
    scope: Any
    who: Any
    importance: Any
    pinned: bool
    tags: Any
    source_type: str
    created: str
    now: str
    source_id: str | None = None
    source_path: str | None = None
    runtime_path: Any = None
    key: Any = None


def remember(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST memory/remember: a saved row, the row it duplicates, or the chunks of a long text."""
    fields = read_body(call)
    raw = js.trimmed(fields.get("content")) or ""
    demand(raw, "content is required")
    plain = daemon.behaviour.saving_is_plain
    _demand_moments({name: fields[name] for name in fields if not plain or name == "createdAt"})
    agent = named_agent(fields.get("agentId"), call.header("x-signet-session-key"), any_value=plain)
    daemon.auth.demand_write(call.claims, agent, fields.get("project"))
    daemon.agents.register(agent)
    tags = texts.read_tags(fields["tags"]) if "tags" in fields else None
    demand(tags is not texts.NO_TAGS, "tags must be a string, string array, or null")
    demand_thawed(daemon)
    if "structured" in fields and not plain:
        _demand_structure(fields["structured"])
    draft = _draft(daemon, fields, raw, agent, tags)
    if plain:
        draft = dataclasses.replace(draft, key=None)
        fields = fields if isinstance(fields.get("structured"), dict) else {**fields, "structured": None}
    if (
        (plain or "structured" not in fields)
        and not js.truthy(fields.get("structured"))
        and len(raw) > texts.MAX_CONTENT
    ):
        return _save_chunks(daemon, draft)
    return save_one(daemon, draft, fields)


def demand_thawed(daemon: Daemon) -> None:
    """Raise `RefusedError` while changes of memories are frozen."""
    demand(not daemon.settings.frozen, "Mutations are frozen (kill switch active)", 503)


def read_body(call: DaemonRequest) -> Mapping[str, Any]:
    """The fields of a save, or of a recall. Raises `RefusedError` for a body that is not JSON."""
    try:
        return js.fields_of(call.json())
    except js.UnreadableJsonError:
        raise RefusedError(refusal(400, "Invalid JSON body")) from None


def _demand_moments(fields: Mapping[str, Any]) -> None:
    for name in _MOMENTS:
        demand(name not in fields or js.read_moment(fields[name]) is not None, f"{name} must be a valid ISO timestamp")
    begin, end = js.read_moment(fields.get("validFrom")), js.read_moment(fields.get("validUntil"))
    demand(begin is None or end is None or end > begin, "validUntil must be after validFrom")


def _demand_structure(structured: Any) -> None:
    demand(isinstance(structured, dict), "structured must be an object with entities and/or aspects arrays")
    for part in ("entities", "aspects", "hints"):
        demand(isinstance(structured.get(part, []), list), f"structured.{part} must be an array")


def _first_text(fields: Mapping[str, Any], *names: str) -> str | None:
    metadata = js.record(fields.get("metadata")) or {}
    return next(
        (text for place in (fields, metadata) for name in names if (text := js.text_or_none(place.get(name)))), None
    )


def _draft(daemon: Daemon, fields: Mapping[str, Any], raw: str, agent: str, tags: Any) -> Draft:
    marks = texts.read_marks(raw)
    now = daemon.clock()
    created = js.read_moment(fields.get("createdAt"))
    given = {name: fields.get(name) for name in ("who", "importance", "pinned")}
    return Draft(
        raw=raw,
        agent=agent,
        visibility="private" if fields.get("visibility") == "private" else "global",
        project=fields.get("project"),
        scope=fields.get("scope"),
        who="daemon" if given["who"] is None else given["who"],
        importance=marks.importance if given["importance"] is None else given["importance"],
        pinned=marks.pinned if given["pinned"] is None else js.truthy(given["pinned"]),
        tags=tags if "tags" in fields else marks.tags,
        source_type=js.trimmed(fields.get("sourceType")) or "manual",
        source_id=js.trimmed(fields.get("sourceId")) or None,
        source_path=_first_text(fields, "sourcePath", "source_path", "source"),
        runtime_path=_first_text(fields, "runtimePath", "runtime_path"),
        key=_first_text(fields, "idempotencyKey", "idempotency_key"),
        created=js.iso(now if created is None else created),
        now=js.iso(now),
    )


_IN_PLACE: Final = "agent_id = ? AND visibility = ? AND COALESCE(scope, '__NULL__') = ? AND is_deleted = 0"
_COLUMNS: Final = "id, type, tags, pinned, importance, content, content_hash, source_id, idempotency_key"


def _in_place(draft: Draft) -> tuple[Any, ...]:
    return draft.agent, draft.visibility, "__NULL__" if draft.scope is None else draft.scope


def _find_row(daemon: Daemon, draft: Draft, condition: str, *values: Any) -> sqlite3.Row | None:
    """A row in the draft's place that meets a condition."""
    return daemon.store.row(
        f"SELECT {_COLUMNS} FROM memories WHERE {condition} AND {_IN_PLACE}", *values, *_in_place(draft)
    )


def _by_hash(daemon: Daemon, digest: str, draft: Draft) -> sqlite3.Row | None:
    if daemon.behaviour.saving_is_plain:
        return daemon.store.row(
            f"SELECT {_COLUMNS} FROM memories WHERE content_hash = ? AND COALESCE(scope, '__NULL__') = ?"
            " AND is_deleted = 0",
            digest, "__NULL__" if draft.scope is None else draft.scope,
        )  # fmt: skip
    project = "" if draft.project is None else draft.project
    return _find_row(daemon, draft, "content_hash = ? AND COALESCE(project, '') = ?", digest, project)


def _by_key(daemon: Daemon, draft: Draft) -> sqlite3.Row | None:
    return _find_row(daemon, draft, "idempotency_key = ?", draft.key) if draft.key else None


def _chunks_by_key(daemon: Daemon, draft: Draft) -> list[sqlite3.Row]:
    if not draft.key:
        return []
    mark = f"{draft.key}:chunk:"
    rows = daemon.store.rows(
        f"SELECT {_COLUMNS} FROM memories WHERE SUBSTR(idempotency_key, 1, ?) = ? AND {_IN_PLACE}",
        len(mark), mark, *_in_place(draft),
    )  # fmt: skip
    numbered = [(row["idempotency_key"][len(mark) :], row) for row in rows]
    return [row for number, row in sorted((int(number), row) for number, row in numbered if number.isdigit())]


def _duplicate(daemon: Daemon, draft: Draft, digest: str) -> sqlite3.Row | None:
    sent = (draft.source_type, draft.source_id)
    row = _find_row(daemon, draft, "source_type = ? AND source_id = ?", *sent) if draft.source_id else None
    return row or _by_key(daemon, draft) or _by_hash(daemon, digest, draft)


def insert(daemon: Daemon, draft: Draft, content: texts.Content, kind: str, **own: Any) -> str:
    """Store a row with the draft's fields, which `own` extends or replaces; return its id. Raises `sqlite3.Error`."""
    new = str(uuid.uuid4())
    row = {
        "id": new, "type": kind, "content": content.stored, "normalized_content": content.normal,
        "content_hash": content.digest, "importance": draft.importance, "tags": draft.tags, "pinned": int(draft.pinned),
        "who": draft.who, "why": "explicit-critical" if draft.pinned else "explicit", "project": draft.project,
        "scope": draft.scope, "agent_id": draft.agent, "visibility": draft.visibility,
        "source_id": draft.source_id, "source_type": draft.source_type, "source_path": draft.source_path,
        "runtime_path": draft.runtime_path, "idempotency_key": draft.key, "extraction_status": "pending",
        "created_at": draft.created, "updated_at": draft.created, "updated_by": draft.who, **own,
    }  # fmt: skip
    daemon.store.insert("memories", row)
    return new


def save_one(daemon: Daemon, draft: Draft, fields: Mapping[str, Any], *, links: bool = True) -> DaemonAnswer:
    """Store the draft as one row, or answer with the row that it repeats; `links`: store entities and hints too."""
    marks = texts.read_marks(draft.raw)
    content = texts.normalise(marks.rest)
    demand(content.stored, "content is required")
    demand(not _chunks_by_key(daemon, draft), "idempotencyKey already used for chunked content", 409)
    structured = fields.get("structured")
    kind = texts.infer_type(marks.rest)
    try:
        with daemon.store.transaction():
            row = _duplicate(daemon, draft, content.digest)
            new = row["id"] if row else insert(
                daemon, draft, content, kind, extraction_status="complete" if js.truthy(structured) else "pending"
            )  # fmt: skip
            _save_moments(daemon, fields, new, draft.agent)
    except (js.ScriptError, sqlite3.Error):
        return refusal(500, "Failed to save memory")
    if row:
        return DaemonAnswer(
            {
                "id": row["id"], "type": row["type"], "tags": row["tags"] or "", "pinned": bool(row["pinned"]),
                "importance": row["importance"], "content": row["content"], "embedded": True, "deduped": True,
            }
        )  # fmt: skip
    if js.truthy(fields.get("transcript")) and draft.source_id:
        _store_transcript(daemon, draft, fields["transcript"])
    saved = {
        "id": new, "type": kind, "tags": draft.tags, "pinned": draft.pinned, "importance": draft.importance,
        "content": content.stored, "embedded": False,
    }  # fmt: skip
    if not links:
        return DaemonAnswer(saved)
    linked, hints = _save_graph(daemon, fields, new, content.stored, draft)
    return DaemonAnswer(
        {**saved, "entities_linked": linked, "hints_written": hints, "structured": js.truthy(structured)}
    )


def _store_transcript(daemon: Daemon, draft: Draft, transcript: Any) -> None:
    if not isinstance(transcript, str):
        raise js.ScriptError("trim is not a function")
    daemon.transcripts.store(
        draft.source_id or "", draft.agent, transcript, harness=draft.source_type, project=draft.project
    )


def _save_moments(daemon: Daemon, fields: Mapping[str, Any], memory: str, agent: str) -> None:
    begin = js.read_moment(fields.get("validFrom"))
    spans = [("source", "sourceCreatedAt"), ("observed", "observedAt"), ("occurred", "occurredAt")]
    moments: list[tuple[str, float, float | None]] = [
        (facet, moment, moment) for facet, name in spans if (moment := js.read_moment(fields.get(name))) is not None
    ]
    if begin is not None:
        moments.append(("valid", begin, js.read_moment(fields.get("validUntil"))))
    for facet, start, end in moments:
        daemon.store.run(
            "INSERT OR REPLACE INTO temporal_edges VALUES (?, ?, ?, ?, ?)",
            memory, agent, facet, js.iso(start), None if end is None else js.iso(end),
        )  # fmt: skip


def _save_graph(daemon: Daemon, fields: Mapping[str, Any], memory: str, content: str, draft: Draft) -> tuple[int, int]:
    """Store entities and hints; return how many were linked and written. A malformed payload links none, silently."""
    structured = js.record(fields.get("structured"))
    given = fields.get("hints")
    agent = draft.agent
    if structured is None:
        linked = daemon.graph.link(memory, content, agent, draft.now)
        hints = given if isinstance(given, list) else []
    else:
        try:
            with daemon.store.transaction():
                linked = daemon.graph.save(structured, memory=memory, content=content, agent=agent, now=draft.created)
        except (js.ScriptError, sqlite3.Error):
            linked = 0
        if given is not None and not isinstance(given, list | str):
            raise js.ScriptError("hints cannot be spread")
        hints = [*(structured.get("hints") or []), *(given or [])]
    written = hints_in(hints)
    for hint in written:
        daemon.store.run("INSERT OR IGNORE INTO memory_hints VALUES (?, ?, ?)", memory, agent, hint)
    return linked, len(written)


def _save_chunks(daemon: Daemon, draft: Draft) -> DaemonAnswer:
    pieces = texts.chunks_of(draft.raw)
    chunks = [texts.normalise(piece) for piece in pieces]
    demand(chunks, "content produced no valid chunks")
    demand(not _by_key(daemon, draft), "idempotencyKey already used for non-chunk content", 409)
    digests = [chunk.digest for chunk in chunks]
    known = _chunks_by_key(daemon, draft)
    if known:
        same = [row["content_hash"] for row in known] == digests
        demand(same, "idempotencyKey already used for different chunked content", 409)
        return chunk_answer([row["id"] for row in known], known[0]["source_id"], deduped=True)
    if daemon.behaviour.saving_is_plain:
        chunks, digests = fresh_chunks(daemon, draft, pieces), []
    seen: set[str] = set()
    for digest in digests:
        demand(digest not in seen, "chunked content contains duplicate chunks", 409)
        seen.add(digest)
        demand(not _by_hash(daemon, digest, draft), "chunk content already exists for this agent and scope", 409)
    group = str(uuid.uuid4())
    try:
        with daemon.store.transaction():
            ids = [
                insert(
                    daemon, draft, chunk, texts.infer_type(chunk.stored), source_type="chunk", source_id=group,
                    idempotency_key=draft.key and f"{draft.key}:chunk:{number}",
                    created_at=draft.now, updated_at=draft.now,
                )
                for number, chunk in enumerate(chunks, 1)
            ]  # fmt: skip
    except (js.ScriptError, sqlite3.Error):
        return refusal(500, "Failed to save chunks")
    return chunk_answer(ids, group)


def fresh_chunks(daemon: Daemon, draft: Draft, pieces: list[str]) -> list[texts.Content]:
    """Those of `pieces` that are not stored yet, without repeats."""
    chunks = {chunk.digest: chunk for chunk in map(texts.normalise, pieces)}
    return [chunk for chunk in chunks.values() if chunk.stored and not _by_hash(daemon, chunk.digest, draft)]


def chunk_answer(ids: list[str], group: str, **more: Any) -> DaemonAnswer:
    """The answer to a save of a long text."""
    return DaemonAnswer({"chunked": True, "chunk_count": len(ids), "ids": ids, "group_id": group, **more})
