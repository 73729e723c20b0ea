"""Recall: the memories that a query finds by words, by hints and through the entity graph, best first."""

from __future__ import annotations

import math
import re
import sqlite3
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from signet_conformance.daemon.temporal import rows_in, span_of
from signet_conformance.daemon.terms import graph_words, index_query
from signet_conformance.daemon.values import ScriptError, is_number, trimmed, truthy

if TYPE_CHECKING:
    from collections.abc import Callable

    from signet_conformance.daemon.state import Daemon

_DEFAULT_LIMIT: Final = 10
_MOST_ROWS: Final = 50
_POOL: Final = 20
_LEAST_SCORE: Final = 0.3
_SHOWN_CHARACTERS: Final = 500
_BUDGETS: Final = ("small", "medium", "large")
_HINT_ALONE: Final = 0.35
_REHEARSAL: Final = 0.1


@dataclass(frozen=True)
class Request:
    """A recall whose fields were read: filters are as sent, because wrong types match nothing rather than fail."""

    query: str
    agent: str
    fields: dict[str, Any]
    session_key: Any = None


def budget_problem(fields: Any) -> str | None:
    """What is wrong with the aggregate budget, else None."""
    given = next((fields[name] for name in ("aggregateBudget", "aggregate_budget") if name in fields), "small")
    if isinstance(given, str) and given in _BUDGETS:
        return None
    return "Invalid aggregateBudget. Expected one of: small, medium, large."


def limit_of(value: Any) -> int:
    """How many rows are wanted: 10 unless a number says otherwise, within 1 and 50."""
    if not is_number(value) or not math.isfinite(value):
        return _DEFAULT_LIMIT
    return max(1, min(_MOST_ROWS, math.floor(value)))


def recall(daemon: Daemon, request: Request) -> dict[str, Any]:
    """The recall answer: results, query, method, meta, and entities when the query names some.

    Raises `ScriptError` or `sqlite3.Error` for filter values that the daemon's query cannot take.
    """
    started = time.perf_counter()
    key = trimmed(request.session_key)
    repeats = request.fields.get("includeRecalled") is True
    fields = request.fields
    span = span_of(request.query, fields.get("time"))
    if span:
        wide = max(limit_of(fields.get("limit")) * 20, 100) if span.mode == "filter" and span.text else limit_of(fields.get("limit"))
        rows = rows_in(daemon, span, request.agent, fields.get("project"), wide)
        ids = [row["subject_id"] for row in rows if row["subject_type"] == "memory"]
        if not (span.mode == "filter" and span.text and ids):
            answer = _answer(rows[: limit_of(fields.get("limit"))], request.query, "keyword", {"temporal": span.meta(request.query)})
            found = _finish(daemon, request, answer, key, repeats=repeats, started=started)
            found["meta"]["timings"]["stages"] = []
            return found
        request = Request(span.text, request.agent, fields, request.session_key)
        answer = _search(daemon, request, key, repeats=repeats, only=set(ids))
        if answer["method"] == "keyword":
            answer["meta"]["temporal"] = span.meta(str(fields.get("query") or request.query))
    else:
        answer = _search(daemon, request, key, repeats=repeats)
    return _finish(daemon, request, answer, key, repeats=repeats, started=started)


def _answer(rows: list[dict[str, Any]], query: str, method: str, meta: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"results": rows, "query": query, "method": method, "meta": {"totalReturned": 0, "hasSupplementary": False, "noHits": True, **(meta or {})}}


def _finish(
    daemon: Daemon, request: Request, answer: dict[str, Any], key: str | None, *, repeats: bool, started: float
) -> dict[str, Any]:
    rows, meta = answer["results"], answer["meta"]
    suppressed = answer.pop("suppressed", 0)
    if key:
        shown = daemon.epochs.shown(key, request.agent, [row["id"] for row in rows])
        if repeats:
            rows = [{**row, "already_recalled": True} if row["id"] in shown else row for row in rows]
        else:
            suppressed += len(shown)
            rows = [row for row in rows if row["id"] not in shown]
        daemon.epochs.show(key, request.agent, [row["id"] for row in rows])
        meta["dedupe"] = {
            "enabled": True,
            "contextEpoch": daemon.epochs.current(key, request.agent),
            "suppressed": 0 if repeats else suppressed,
            "repeatedReturned": len(shown) if repeats else 0,
        }
    answer["results"] = rows
    meta |= {
        "totalReturned": len(rows),
        "hasSupplementary": any(row.get("supplementary") for row in rows),
        "noHits": not rows,
    }
    daemon.store.run_many(
        "UPDATE memories SET access_count = access_count + 1, last_accessed = datetime(?, 'unixepoch') WHERE id = ?",
        [(int(daemon.clock()), row["id"]) for row in rows if ":" not in row["id"]],
    )
    spent = round((time.perf_counter() - started) * 1000, 2)
    meta["timings"] = {"totalMs": spent, "stages": [{"name": "memory_fts", "durationMs": spent}]}
    return answer


def _filter(daemon: Daemon, request: Request) -> tuple[str, list[Any]]:
    """The SQL condition on ``m`` that the filters and the agent's rights make."""
    fields = request.fields
    parts: list[str] = []
    values: list[Any] = []
    if fields.get("scope") is None:
        parts.append("m.scope IS NULL")
    else:
        parts.append("m.scope = ?")
        values.append(fields["scope"])
    for clause, name in (("m.type = ?", "type"), ("m.who = ?", "who"), ("m.created_at >= ?", "since"), ("m.created_at <= ?", "until"), ("m.project = ?", "project")):
        if truthy(fields.get(name)):
            parts.append(clause)
            values.append(fields[name])
    for tag in _tags(fields.get("tags")):
        parts.append("INSTR(LOWER(m.tags), LOWER(?)) > 0")
        values.append(tag)
    if truthy(fields.get("pinned")):
        parts.append("m.pinned = 1")
    if is_number(fields.get("importance_min")):
        parts.append("m.importance >= ?")
        values.append(fields["importance_min"])
    visible, more = daemon.agents.visible(request.agent)
    return f" AND m.is_deleted = 0 AND {' AND '.join(parts)}{visible}", [*values, *more]


def _tags(value: Any) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, str):
        raise ScriptError("split is not a function")
    return [tag for part in value.split(",") if (tag := part.strip())]


def _search(
    daemon: Daemon, request: Request, key: str | None, *, repeats: bool, only: set[str] | None = None
) -> dict[str, Any]:
    limit = limit_of(request.fields.get("limit"))
    if isinstance(request.fields.get("scope"), dict | list):
        return _answer([], request.query, "hybrid")
    where, values = _filter(daemon, request)
    entities = daemon.graph.named_by(request.query, request.agent)
    scores = _scores(daemon, request, where, values, entities)
    if only is not None:
        scores = {item: found for item, found in scores.items() if item in only}
    ranked = sorted(scores, key=_rehearsed(daemon, scores), reverse=True)
    if not ranked or request.fields.get("sourceOnly") is True:
        return _answer([], request.query, "hybrid")
    rows = _rows(daemon, ranked, scores, where, values)
    suppressed = 0
    if key and not repeats:
        shown = daemon.epochs.shown(key, request.agent, [row["id"] for row in rows])
        suppressed, rows = len(shown), [row for row in rows if row["id"] not in shown]
    rows = rows[:limit]
    named = _entities_in(daemon, entities, request, where, values)
    rows += _constructed(daemon, named, request.agent, rows, limit)
    if key and not repeats:
        blocks = [row["id"] for row in rows if row["id"].startswith("constructed:")]
        shown = daemon.epochs.shown(key, request.agent, blocks)
        suppressed, rows = suppressed + len(shown), [row for row in rows if row["id"] not in shown]
    answer = _answer(rows, request.query, "keyword") | {"suppressed": suppressed}
    described = [_described(daemon, entity, request.agent) for entity in named]
    if any(entity["aspects"] for entity in described):
        answer["entities"] = [entity for entity in described if entity["aspects"]]
    return answer


def _scores(
    daemon: Daemon, request: Request, where: str, values: list[Any], entities: list[sqlite3.Row]
) -> dict[str, tuple[float, str]]:
    """Each memory that any channel found, with its score and the name of the channel."""
    expression = index_query(_keyword_query(request))
    words = _ranked(
        daemon, f"""SELECT m.id, bm25(memories_fts) AS rank FROM memories_fts CROSS JOIN memories m
                    ON memories_fts.rowid = m.rowid WHERE memories_fts MATCH ?{where} ORDER BY rank LIMIT {_POOL}""",
        expression, *values,
    )  # fmt: skip
    hints = _ranked(
        daemon, f"""SELECT m.id, bm25(memory_hints_fts) AS rank FROM memory_hints_fts CROSS JOIN memory_hints h
                    ON memory_hints_fts.rowid = h.rowid CROSS JOIN memories m ON m.id = h.memory_id
                    WHERE memory_hints_fts MATCH ? AND h.agent_id = ?{where} ORDER BY rank LIMIT {_POOL}""",
        expression, request.agent, *values,
    )  # fmt: skip
    paths = _path_scores(daemon, request, where, values)
    linked = daemon.graph.memories_of(entities, request.agent) if entities else {}
    permitted = _permitted(daemon, linked, where, values)
    secondary = bool(hints or paths or permitted)
    found: dict[str, tuple[float, str]] = {}
    for item in dict.fromkeys([*words, *hints, *paths, *permitted]):
        evidence = _Evidence(words.get(item, 0.0), hints.get(item, 0.0), paths.get(item, 0.0), permitted.get(item, 0.0))
        score = evidence.score(secondary=secondary)
        if score >= _LEAST_SCORE:
            found[item] = (score, evidence.channel())
    return found


@dataclass(frozen=True)
class _Evidence:
    """How strongly each channel found a memory, each within 0 and 1."""

    words: float
    hint: float
    path: float
    traversal: float

    def score(self, *, secondary: bool) -> float:
        """The memory's score: words count little beside the other channels when any of these found something."""
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
        """The name that the answer gives to what found the memory."""
        if self.path and self.path >= max(self.words, self.hint):
            return "sec" if self.words or self.hint else "structured"
        if self.words or self.hint:
            return "keyword" if self.words >= self.hint else "hybrid" if self.words else "hint"
        return "traversal"


def _rehearsed(daemon: Daemon, scores: dict[str, tuple[float, str]]) -> Callable[[str], float]:
    """The rank of each memory: its score, raised a little for every time it was shown before."""
    rows = daemon.store.rows(
        f"SELECT id, access_count FROM memories WHERE id IN ({','.join('?' * len(scores))})", *scores
    )
    boost = {row["id"]: 1 + _REHEARSAL * math.log(row["access_count"] + 1) for row in rows}
    return lambda item: scores[item][0] * boost.get(item, 1.0)


def _keyword_query(request: Request) -> str:
    given = request.fields.get("keywordQuery")
    if given is None:
        return request.query
    return trimmed(given) or ""


def _ranked(daemon: Daemon, sql: str, expression: str, *values: Any) -> dict[str, float]:
    """The rows of a full-text query with their scores brought to 0..1; what the index cannot read finds nothing."""
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
    for ending, put, least in (("ies", "y", 4), ("ing", "", 5), ("ed", "", 4), ("s", "", 3)):
        if word.endswith(ending) and len(word) > least:
            return word[: -len(ending)] + put
    return word


def _stems(text: str) -> list[str]:
    return list(dict.fromkeys(_stem(word) for word in graph_words(text)))


def _path_scores(daemon: Daemon, request: Request, where: str, values: list[Any]) -> dict[str, float]:
    """Memories whose attributes share words with the query: how much of the query they cover."""
    stems = _stems(request.query)
    if not stems:
        return {}
    text = "LOWER(e.name || ' ' || s.canonical_name || ' ' || COALESCE(a.group_key, '') || ' ' || COALESCE(a.claim_key, '') || ' ' || a.content)"
    hits = " OR ".join([f"INSTR({text}, ?) > 0"] * min(len(stems), 18))
    rows = daemon.store.rows(
        f"""SELECT a.memory_id, s.canonical_name || ' ' || COALESCE(a.group_key, '') || ' ' || COALESCE(a.claim_key, '')
                   || ' ' || a.content AS words, a.importance, a.confidence
            FROM entity_attributes a JOIN entity_aspects s ON s.id = a.aspect_id JOIN entities e ON e.id = s.entity_id
            JOIN memories m ON m.id = a.memory_id
            WHERE a.agent_id = ? AND e.agent_id = ? AND a.status = 'active'{where} AND ({hits}) LIMIT {_POOL * 8}""",
        request.agent, request.agent, *values, *stems[:18],
    )  # fmt: skip
    covered: dict[str, set[str]] = {}
    weight: dict[str, float] = {}
    for row in rows:
        covered.setdefault(row["memory_id"], set()).update(_stems(row["words"].replace("_", " ")))
        strength = 0.55 + 0.3 * min(1, row["importance"]) + 0.15 * min(1, row["confidence"])
        weight[row["memory_id"]] = max(weight.get(row["memory_id"], 0), strength)
    scores = {item: min(1.0, len(words & set(stems)) / len(stems) * weight[item]) for item, words in covered.items()}
    return {item: score for item, score in scores.items() if score >= _LEAST_SCORE}


def _permitted(daemon: Daemon, linked: dict[str, float], where: str, values: list[Any]) -> dict[str, float]:
    if not linked:
        return {}
    rows = daemon.store.rows(
        f"SELECT m.id FROM memories m WHERE m.id IN ({','.join('?' * len(linked))}){where}", *linked, *values
    )
    return {row["id"]: linked[row["id"]] for row in rows}


def _rows(
    daemon: Daemon, ranked: list[str], scores: dict[str, tuple[float, str]], where: str, values: list[Any]
) -> list[dict[str, Any]]:
    found = daemon.store.rows(
        f"SELECT m.* FROM memories m WHERE m.id IN ({','.join('?' * len(ranked))}){where}", *ranked, *values
    )
    by_id = {row["id"]: row for row in found}
    return [_row(by_id[item], *scores[item]) for item in ranked if item in by_id]


def _row(row: sqlite3.Row, score: float, source: str) -> dict[str, Any]:
    content, source_id = row["content"], row["source_id"]
    cut = len(content) > _SHOWN_CHARACTERS
    origin = {"source_id": source_id, "session_id": re.sub(r"^session:", "", source_id)} if source_id else {}
    return {
        "id": row["id"],
        "content": f"{content[:_SHOWN_CHARACTERS]} [truncated]" if cut else content,
        "content_length": len(content),
        "truncated": cut,
        "score": round(score, 2),
        "source": source,
        **origin,
        "type": row["type"],
        "tags": row["tags"],
        "pinned": bool(row["pinned"]),
        "importance": row["importance"],
        "who": row["who"],
        "project": row["project"],
        "created_at": row["created_at"],
        "visibility": row["visibility"],
        "scope": row["scope"],
    }


def _entities_in(
    daemon: Daemon, entities: list[sqlite3.Row], request: Request, where: str, values: list[Any]
) -> list[sqlite3.Row]:
    """The named entities; with a project or scope only those mentioned by a memory of it."""
    if not truthy(request.fields.get("project")) and "scope" not in request.fields:
        return entities
    return [
        entity
        for entity in entities
        if daemon.store.row(
            f"""SELECT 1 FROM entity_mentions x JOIN memories m ON m.id = x.memory_id WHERE x.entity_id = ?{where} LIMIT 1""",
            entity["id"], *values,
        )
    ]  # fmt: skip


def _described(daemon: Daemon, entity: sqlite3.Row, agent: str) -> dict[str, Any]:
    aspects = [
        {"name": name, "attributes": [dict(row) for row in attributes]}
        for name, attributes in daemon.graph.aspects_of(entity["id"], agent)
    ]
    return {"name": entity["name"], "type": entity["entity_type"], "aspects": aspects}


def _constructed(
    daemon: Daemon, entities: list[sqlite3.Row], agent: str, rows: list[dict[str, Any]], limit: int
) -> list[dict[str, Any]]:
    """Rows made up from what is known about the named entities, below every real row."""
    room = min(limit - len(rows), max(3, math.ceil(limit * 0.3)))
    least = min((row["score"] for row in rows), default=0.5)
    blocks = [(entity, block) for entity in entities if (block := daemon.graph.block_about(entity, agent))]
    blocks.sort(key=lambda pair: -pair[1][1])
    return [
        {
            "id": f"constructed:{entity['name']}",
            "content": text,
            "content_length": len(text),
            "truncated": False,
            "score": round(min(0.2 * facts, max(0.01, least - 0.01)), 2),
            "source": "constructed",
            "type": "semantic",
            "tags": None,
            "pinned": False,
            "importance": 0.85,
            "who": "",
            "project": None,
            "created_at": daemon.now(),
            "supplementary": True,
        }
        for entity, (text, facts) in blocks[: max(0, room)]
    ]


def aggregated(daemon: Daemon, request: Request) -> dict[str, Any]:
    """The answer to an aggregate recall by a daemon without a model: the rows it would have summed up, unsummed."""
    found = recall(daemon, request)
    ids = [row["id"] for row in found["results"] if not row.get("supplementary")]
    budget = request.fields.get("aggregateBudget") or request.fields.get("aggregate_budget") or "small"
    stages = [{"name": "aggregate_initial_recall", "durationMs": found["meta"]["timings"]["totalMs"]}]
    answer = _answer([], request.query, "hybrid", {"timings": {"totalMs": stages[0]["durationMs"], "stages": stages}})
    answer["aggregate"] = {
        "savedMemoryId": None,
        "saved": False,
        "deduped": False,
        "budget": budget,
        "queries": [request.query],
        "sourceMemoryIds": ids,
        "stoppedReason": "synthesis_failed" if ids else "no_evidence",
    }
    return answer
