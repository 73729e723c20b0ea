"""The searches behind a recall: by words, hints, attributes and entities, which together give a score; and by time.

A ``time`` option, or a day named in the query, turns a recall into a timeline or narrows it.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from signet_conformance.daemon import js
from signet_conformance.daemon.state import Daemon
from signet_conformance.daemon.state.texts import graph_words, index_query
from signet_conformance.daemon.wire import demand

_POOL: Final = 20
_LEAST_SCORE: Final = 0.3
_HINT_ALONE: Final = 0.35


@dataclass(frozen=True)
class RecallSearch:
    """A query of an agent; `where` is the SQL condition on ``m`` for the rows it may find, with its `values`."""

    query: str
    keywords: str
    agent: str
    where: str
    values: list[Any]


def given_filters(fields: Mapping[str, Any], *names: str) -> list[tuple[str, Any]]:
    """The SQL conditions on ``m`` for the filters `names` that `fields` set, each with its value."""
    bounds = {"since": "m.created_at >= ?", "until": "m.created_at <= ?"}
    return [(bounds.get(name, f"m.{name} = ?"), fields[name]) for name in names if js.truthy(fields.get(name))]


def conjunction(filters: Sequence[tuple[str, Any]], *others: str) -> tuple[str, list[Any]]:
    """Join the conditions of `filters`, and `others`, which take no value, by AND; also return the filters' values."""
    return " AND ".join([*others, *(condition for condition, _ in filters)]), [value for _, value in filters]


def scores_of(daemon: Daemon, search: RecallSearch, entities: list[sqlite3.Row]) -> dict[str, tuple[float, str]]:
    """Each memory that any channel found, with its score and the name of the channel."""
    expression = index_query(search.keywords)
    words = _ranked(
        daemon, f"""SELECT m.id, bm25(memories_fts) AS rank FROM memories_fts CROSS JOIN memories m
                    ON memories_fts.rowid = m.rowid WHERE memories_fts MATCH ?{search.where}
                    ORDER BY rank LIMIT {_POOL}""",
        expression, *search.values,
    )  # fmt: skip
    hints = _ranked(
        daemon, f"""SELECT m.id, bm25(memory_hints_fts) AS rank FROM memory_hints_fts CROSS JOIN memory_hints h
                    ON memory_hints_fts.rowid = h.rowid CROSS JOIN memories m ON m.id = h.memory_id
                    WHERE memory_hints_fts MATCH ? AND h.agent_id = ?{search.where} ORDER BY rank LIMIT {_POOL}""",
        expression, search.agent, *search.values,
    )  # fmt: skip
    paths = _path_scores(daemon, search)
    linked = daemon.graph.memories_of(entities, search.agent) if entities else {}
    permitted = _permitted(daemon, linked, search)
    secondary = bool(hints or paths or permitted)
    scores: dict[str, tuple[float, str]] = {}
    for item in dict.fromkeys([*words, *hints, *paths, *permitted]):
        evidence = _Evidence(words.get(item, 0.0), hints.get(item, 0.0), paths.get(item, 0.0), permitted.get(item, 0.0))
        score = evidence.score(secondary=secondary)
        if score >= _LEAST_SCORE:
            scores[item] = (score, evidence.channel())
    return scores


@dataclass(frozen=True)
class _Evidence:
    """How strongly each channel found a memory, each within 0 and 1."""

    words: float
    hint: float
    path: float
    traversal: float

    def score(self, *, secondary: bool) -> float:
        """The memory's score: words count little if another channel found something."""
        floor = (0.4 + 0.02 * self.words if secondary else self.words) if self.words else 0.0
        hint = self.hint if self.words or self.path else min(self.hint, _HINT_ALONE)
        score = max(0.25 * self.words + 0.3 * hint + 0.15 * self.traversal + 0.15 * self.path, floor, hint)
        if self.path >= 0.25:
            score += (self.path - 0.25) * 0.8
        if self.path >= 0.2:
            score = max(score, self.path)
        if not (self.words or self.hint or self.path >= _HINT_ALONE):
            score = min(score, _HINT_ALONE)
        return min(1.0, score)

    def channel(self) -> str:
        """The name in the answer of the channel that found the memory."""
        if self.path and self.path >= max(self.words, self.hint):
            return "sec" if self.words or self.hint else "structured"
        if self.words or self.hint:
            return "keyword" if self.words >= self.hint else "hybrid" if self.words else "hint"
        return "traversal"


def _ranked(daemon: Daemon, sql: str, expression: str, *values: Any) -> dict[str, float]:
    """The rows of a full-text query with scores within 0..1; a query that the index cannot read finds nothing."""
    if not expression:
        return {}
    try:
        rows = daemon.store.rows(sql, expression, *values)
    except sqlite3.OperationalError:
        return {}
    best = max((abs(row["rank"]) for row in rows), default=0.0) or 1.0
    ranked: dict[str, float] = {}
    for row in rows:
        ranked.setdefault(row["id"], abs(row["rank"]) / best)
    return ranked


def _stem(word: str) -> str:
    for ending, replacement, least in (("ies", "y", 4), ("ing", "", 5), ("ed", "", 4), ("s", "", 3)):
        if word.endswith(ending) and len(word) > least:
            return word[: -len(ending)] + replacement
    return word


def _stems(text: str) -> list[str]:
    return list(dict.fromkeys(_stem(word) for word in graph_words(text)))


def _path_scores(daemon: Daemon, search: RecallSearch) -> dict[str, float]:
    """Memories whose attributes share words with the query: how much of the query they cover."""
    stems = _stems(search.query)
    if not stems:
        return {}
    about = (
        "s.canonical_name || ' ' || COALESCE(a.group_key, '') || ' ' || COALESCE(a.claim_key, '') || ' ' || a.content"
    )
    text = f"LOWER(e.name || ' ' || {about})"
    hits = " OR ".join([f"INSTR({text}, ?) > 0"] * min(len(stems), 18))
    rows = daemon.store.rows(
        f"""SELECT a.memory_id, {about} AS words, a.importance, a.confidence
            FROM entity_attributes a JOIN entity_aspects s ON s.id = a.aspect_id JOIN entities e ON e.id = s.entity_id
            JOIN memories m ON m.id = a.memory_id
            WHERE a.agent_id = ? AND e.agent_id = ? AND a.status = 'active'{search.where} AND ({hits})
            LIMIT {_POOL * 8}""",
        search.agent, search.agent, *search.values, *stems[:18],
    )  # fmt: skip
    covered: dict[str, set[str]] = {}
    weight: dict[str, float] = {}
    for row in rows:
        covered.setdefault(row["memory_id"], set()).update(_stems(row["words"].replace("_", " ")))
        strength = 0.55 + 0.3 * min(1, row["importance"]) + 0.15 * min(1, row["confidence"])
        weight[row["memory_id"]] = max(weight.get(row["memory_id"], 0), strength)
    scores = {item: min(1.0, len(words & set(stems)) / len(stems) * weight[item]) for item, words in covered.items()}
    return {item: score for item, score in scores.items() if score >= _LEAST_SCORE}


def _permitted(daemon: Daemon, linked: dict[str, float], search: RecallSearch) -> dict[str, float]:
    if not linked:
        return {}
    rows = daemon.store.rows(
        f"SELECT m.id FROM memories m WHERE m.id IN ({','.join('?' * len(linked))}){search.where}",
        *linked,
        *search.values,
    )
    return {row["id"]: linked[row["id"]] for row in rows}


FACETS: Final = ("session", "source", "occurred", "observed", "valid", "captured")
_MODES: Final = ("auto", "timeline", "filter")
_DAY_SECONDS: Final = 86_400
_WEAK: Final = frozenset(
    re.findall(r"\w+", "what were was we you i doing did do on in at the that day date tell me about working worked")
)
_NUMERIC_DAY: Final = re.compile(r"\b(\d{4})[/-](\d{1,2})[/-](\d{1,2})\b")
_NAMED_DAY: Final = re.compile(
    r"\b(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t|tember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})\b",
    re.IGNORECASE,
)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def demand_time(time: Any) -> None:
    """Raise `RefusedError` for the first error in a ``time`` option."""
    demand(isinstance(time, dict), "time must be an object")
    demand(js.text_or_none(time.get("start")), "time.start is required when time is provided")
    start, end = js.read_moment(time["start"]), js.read_moment(time.get("end"))
    demand(start is not None, "time.start must be a valid ISO timestamp")
    demand("end" not in time or end is not None, "time.end must be a valid ISO timestamp")
    demand(start is None or end is None or end > start, "time.end must be after time.start")
    facets, mode = time.get("facets", []), time.get("mode", "auto")
    demand(isinstance(facets, list), "time.facets must be an array")
    known = "session, source, captured, observed, occurred, valid"
    demand(all(facet in FACETS for facet in facets), f"time.facets entries must be one of: {known}")
    demand(mode in _MODES, "time.mode must be one of: auto, timeline, filter")


@dataclass(frozen=True)
class TimeSpan:
    """The time span of a recall: from `start` up to `end`, and the rest of the query."""

    start: str
    end: str
    source: str
    text: str
    mode: str
    facets: tuple[str, ...]

    def meta(self, query: str) -> dict[str, Any]:
        """The ``meta.temporal`` of the answer."""
        return {
            "mode": self.mode, "source": self.source, "originalQuery": query, "contentQuery": self.text,
            "start": self.start, "end": self.end, "facets": list(self.facets),
        }  # fmt: skip


def span_of(query: str, time: Any) -> TimeSpan | None:
    """The span that ``time`` (already checked) or a day in `query` asks for, else None."""
    options = time if isinstance(time, dict) else {}
    facets = tuple(dict.fromkeys(options.get("facets") or FACETS))
    start = js.read_moment(options.get("start"))
    if start is not None:
        end = js.read_moment(options.get("end"))
        span = js.iso(start), js.iso(start + _DAY_SECONDS if end is None else end)
        source, text = "request", query.strip(js.BLANKS)
    else:
        day = _day_in(query)
        if day is None:
            return None
        begin, matched = day
        span = js.iso(begin.timestamp()), js.iso((begin + timedelta(days=1)).timestamp())
        words = re.split(r"[^a-z0-9_]+", query.replace(matched, " ", 1).lower())
        source, text = "query", " ".join(word for word in words if word and word not in _WEAK)
    mode = options.get("mode")
    if mode not in ("timeline", "filter"):
        mode = "filter" if text else "timeline"
    return TimeSpan(*span, source, text, mode, facets)


def _day_in(query: str) -> tuple[datetime, str] | None:
    numeric = _NUMERIC_DAY.search(query)
    named = None if numeric else _NAMED_DAY.search(query)
    try:
        if numeric:
            return datetime(int(numeric[1]), int(numeric[2]), int(numeric[3]), tzinfo=UTC), numeric[0]
        if named:
            month = _MONTHS.index(named[1][:3].lower()) + 1
            return datetime(int(named[3]), month, int(named[2]), tzinfo=UTC), named[0]
    except ValueError:
        return None
    return None


def rows_in(daemon: Daemon, span: TimeSpan, agent: str, project: Any, limit: int) -> list[dict[str, Any]]:
    """The rows of the span, best evidence first and newest first within it, in the shape of recall results."""
    seen, visible = daemon.agents.visible(agent)
    candidates: list[dict[str, Any]] = []
    in_project = " AND m.project = ?" if project else ""
    values = [*visible, *([project] if project else [])]
    if "session" in span.facets:
        candidates += _sessions_in(daemon, span, agent, project, limit * 6)
    if "captured" in span.facets:
        rows = daemon.store.rows(
            f"""SELECT m.*, 'captured' AS facet, m.created_at AS start_at, m.created_at AS end_at FROM memories m
                WHERE m.is_deleted = 0 AND m.scope IS NULL AND m.created_at >= ? AND m.created_at < ?{seen}{in_project}
                ORDER BY m.created_at DESC LIMIT ?""",
            span.start, span.end, *values, limit * 4,
        )  # fmt: skip
        candidates += [_memory_row(dict(row), 0.7) for row in rows]
    rows = daemon.store.rows(
        f"""SELECT m.*, t.facet, t.start_at, t.end_at FROM temporal_edges t JOIN memories m ON m.id = t.memory_id
            WHERE t.facet IN ({",".join("?" * len(span.facets))})
              AND t.start_at < ? AND COALESCE(t.end_at, t.start_at) >= ?
              AND m.is_deleted = 0 AND m.scope IS NULL{seen}{in_project} ORDER BY t.start_at DESC LIMIT ?""",
        *span.facets, span.end, span.start, *values, limit * 4,
    )  # fmt: skip
    candidates += [_memory_row(dict(row), 1) for row in rows]
    if span.mode == "filter":
        words = [word for word in span.text.lower().split() if len(word) >= 2]
        candidates = [
            row
            for row in candidates
            if row["subject_type"] == "memory" or any(word in row["content"].lower() for word in words)
        ]
    candidates.sort(key=lambda row: (row["score"], row["temporal_start_at"]), reverse=True)
    return list({row["id"]: row for row in reversed(candidates)}.values())[::-1][:limit]


def _memory_row(row: dict[str, Any], score: float) -> dict[str, Any]:
    more = {"source_id": row["source_id"]} if row["source_id"] else {}
    return _result(
        row, "memory", score, more, type=row["type"], tags=row["tags"], pinned=bool(row["pinned"]),
        importance=row["importance"], who=row["who"],
    ) | {"visibility": row["visibility"], "scope": row["scope"]}  # fmt: skip


def _sessions_in(daemon: Daemon, span: TimeSpan, agent: str, project: Any, limit: int) -> list[dict[str, Any]]:
    rows = daemon.store.rows(
        f"""SELECT *, 'session' AS facet, earliest_at AS start_at, latest_at AS end_at FROM session_summaries
            WHERE agent_id = ? AND earliest_at < ? AND latest_at >= ?{" AND project = ?" if project else ""}
            ORDER BY latest_at DESC LIMIT ?""",
        agent, span.end, span.start, *([project] if project else []), limit,
    )  # fmt: skip
    return [
        _result(
            dict(row), "session_summary", 1, {"session_id": row["session_key"]} if row["session_key"] else {},
            type="session", tags="temporal,session", pinned=False, importance=0.8, who=row["harness"] or "session",
        )
        for row in rows
    ]  # fmt: skip


def _result(row: dict[str, Any], subject: str, score: float, more: dict[str, Any], **fields: Any) -> dict[str, Any]:
    content, cut = row["content"], len(row["content"]) > 900
    return {
        "id": f"temporal:{subject}:{row['id']}:{row['facet']}",
        "content": f"{content[:900]} [truncated]" if cut else content,
        "content_length": len(content),
        "truncated": cut,
        "score": score,
        "source": f"temporal_{row['facet']}",
        **more,
        **fields,
        "project": row["project"],
        "created_at": row["created_at"],
        "temporal_facet": row["facet"],
        "temporal_start_at": row["start_at"],
        "temporal_end_at": row["end_at"],
        "subject_type": subject,
        "subject_id": row["id"],
    }
