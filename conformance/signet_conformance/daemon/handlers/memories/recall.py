"""Recall: the memories that a query finds by words, by hints and through the entity graph, best first."""

from __future__ import annotations

import math
import re
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from signet_conformance.daemon import js
from signet_conformance.daemon.handlers.memories import search
from signet_conformance.daemon.state import Daemon

_DEFAULT_LIMIT: Final = 10
_MOST_ROWS: Final = 50
_MOST_PLAIN_ROWS: Final = 20
"""The most rows that a recall of 0.109 returns, whatever its limit."""
_SHOWN_CHARACTERS: Final = 500
_SHOWN: Final = ("type", "tags", "importance", "who", "project", "created_at", "visibility", "scope")
_BOOST_PER_READ: Final = 0.1


@dataclass(frozen=True)
class RecallRequest:
    """A recall whose fields were read: filters are as sent, because wrong types match nothing rather than fail."""

    query: str
    agent: str
    fields: dict[str, Any]
    session_key: Any = None


def limit_of(value: Any) -> int:
    """How many rows are requested: a number within 1 and 50, or 10 for a value that is no number."""
    if not js.is_number(value) or not math.isfinite(value):
        return _DEFAULT_LIMIT
    return max(1, min(_MOST_ROWS, int(value // 1)))


def recall(daemon: Daemon, request: RecallRequest) -> dict[str, Any]:
    """The recall answer: results, query, method, meta, and entities when the query names some.

    Raises `ScriptError` or `sqlite3.Error` for filter values that the daemon's query cannot take.
    """
    started = time.perf_counter()
    key = js.trimmed(request.session_key)
    fields = request.fields
    repeats = fields.get("includeRecalled") is True
    span = search.span_of(request.query, fields.get("time"))
    if span:
        limit = limit_of(fields.get("limit"))
        filters = span.mode == "filter" and span.text
        wide = max(limit * 20, 100) if filters else limit
        rows = search.rows_in(daemon, span, request.agent, fields.get("project"), wide)
        ids = [row["subject_id"] for row in rows if row["subject_type"] == "memory"]
        if not (filters and ids):
            answer = _answer(rows[:limit], request.query, "keyword", {"temporal": span.meta(request.query)})
            response = _finish(daemon, request, answer, key, repeats=repeats, started=started)
            response["meta"]["timings"]["stages"] = []
            return response
        request = RecallRequest(span.text, request.agent, fields, request.session_key)
        answer = _search(daemon, request, key, repeats=repeats, only=set(ids))
        if answer["method"] == "keyword":
            answer["meta"]["temporal"] = span.meta(str(fields.get("query") or request.query))
    else:
        answer = _search(daemon, request, key, repeats=repeats)
    return _finish(daemon, request, answer, key, repeats=repeats, started=started)


def _cut_from_the_end(rows: list[dict[str, Any]], request: RecallRequest, end: int) -> list[dict[str, Any]]:
    """The rows that a limit of zero or below leaves: it cuts two fifths of its number from the end, then all of it.

    The release answered so for up to 30 rows and limits from -1 to -20. Two fifths that round to nothing leave no row.
    """
    if not end:
        return []
    first = math.ceil(float(request.fields["limit"]) * 0.4)
    return rows[:first][:end] if first else []


def plain(daemon: Daemon, request: RecallRequest) -> dict[str, Any]:
    """The recall answer of releases without epochs, times and aggregates. Raises as `recall` does."""
    end = js.slice_end(request.fields.get("limit"), 10)
    most = _MOST_PLAIN_ROWS if end is None or end < 1 else min(end, _MOST_PLAIN_ROWS)
    fields = {**request.fields, "limit": most, "scope": None}
    response = _search(daemon, RecallRequest(request.query, request.agent, fields), None, repeats=False)
    rows = response["results"] if end is None or end > 0 else _cut_from_the_end(response["results"], request, end)
    daemon.count_reads([row["id"] for row in rows if ":" not in row["id"]])
    shown = [{name: row[name] for name in row if name not in ("visibility", "scope")} for row in rows]
    answer = _answer(shown, request.query, "keyword" if rows else "hybrid")
    return answer | {name: response[name] for name in ("entities",) if name in response}


def _answer(rows: list[dict[str, Any]], query: str, method: str, meta: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"results": rows, "query": query, "method": method, "meta": {**_counts(rows), **(meta or {})}}


def _counts(rows: list[dict[str, Any]]) -> dict[str, Any]:
    supplementary = any(row.get("supplementary") for row in rows)
    return {"totalReturned": len(rows), "hasSupplementary": supplementary, "noHits": not rows}


def _finish(
    daemon: Daemon, request: RecallRequest, answer: dict[str, Any], key: str | None, *, repeats: bool, started: float
) -> dict[str, Any]:
    rows, meta = answer["results"], answer["meta"]
    suppressed = answer.pop("suppressed", 0)
    if key:
        shown = daemon.epochs.already_shown(key, request.agent, [row["id"] for row in rows])
        if repeats:
            rows = [{**row, "already_recalled": True} if row["id"] in shown else row for row in rows]
        else:
            suppressed += len(shown)
            rows = [row for row in rows if row["id"] not in shown]
        daemon.epochs.note_shown(key, request.agent, [row["id"] for row in rows])
        meta["dedupe"] = {
            "enabled": True,
            "contextEpoch": daemon.epochs.current(key, request.agent),
            "suppressed": 0 if repeats else suppressed,
            "repeatedReturned": len(shown) if repeats else 0,
        }
    answer["results"] = rows
    meta |= _counts(rows)
    daemon.count_reads([row["id"] for row in rows if ":" not in row["id"]])
    spent = round((time.perf_counter() - started) * 1000, 2)
    meta["timings"] = {"totalMs": spent, "stages": [{"name": "memory_fts", "durationMs": spent}]}
    return answer


def _filter(daemon: Daemon, request: RecallRequest) -> tuple[str, list[Any]]:
    """The SQL condition on ``m`` for the filters and the agent's rights, with its values."""
    fields = request.fields
    # A recall without a scope finds the rows without one.
    conditions = [("m.scope IS ?", fields.get("scope"))]
    conditions += search.given_filters(fields, "type", "who", "since", "until", "project")
    conditions += [("INSTR(LOWER(m.tags), LOWER(?)) > 0", tag) for tag in _tags(fields.get("tags"))]
    if js.is_number(fields.get("importance_min")):
        conditions.append(("m.importance >= ?", fields["importance_min"]))
    if js.truthy(fields.get("pinned")):
        conditions.append(("m.pinned = ?", 1))
    where, values = search.conjunction(conditions, "m.is_deleted = 0")
    visible, more = daemon.agents.visible(request.agent)
    return f" AND {where}{visible}", [*values, *more]


def _tags(value: Any) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, str):
        raise js.ScriptError("split is not a function")
    return [tag for part in value.split(",") if (tag := part.strip())]


def _search(
    daemon: Daemon, request: RecallRequest, key: str | None, *, repeats: bool, only: set[str] | None = None
) -> dict[str, Any]:
    limit = limit_of(request.fields.get("limit"))
    if isinstance(request.fields.get("scope"), dict | list):
        return _answer([], request.query, "hybrid")
    where, values = _filter(daemon, request)
    entities = daemon.graph.named_by(request.query, request.agent)
    keywords = request.fields.get("keywordQuery")
    keywords = request.query if keywords is None else js.trimmed(keywords) or ""
    searched = search.RecallSearch(request.query, keywords, request.agent, where, values)
    scores = search.scores_of(daemon, searched, entities)
    if only is not None:
        scores = {item: score for item, score in scores.items() if item in only}
    ranked = sorted(scores, key=_boosted_rank(daemon, scores), reverse=True)
    if not ranked or request.fields.get("sourceOnly") is True:
        return _answer([], request.query, "hybrid")
    rows = _rows(daemon, ranked, scores, where, values)
    suppressed = 0
    if key and not repeats:
        shown = daemon.epochs.already_shown(key, request.agent, [row["id"] for row in rows])
        suppressed, rows = len(shown), [row for row in rows if row["id"] not in shown]
    rows = rows[:limit]
    named = _entities_in(daemon, entities, request, where, values)
    rows += _construct_rows(daemon, named, request.agent, rows, limit)
    if key and not repeats:
        blocks = [row["id"] for row in rows if row["id"].startswith("constructed:")]
        shown = daemon.epochs.already_shown(key, request.agent, blocks)
        suppressed, rows = suppressed + len(shown), [row for row in rows if row["id"] not in shown]
    answer = _answer(rows, request.query, "keyword") | {"suppressed": suppressed}
    described = [_describe(daemon, entity, request.agent) for entity in named]
    if any(entity["aspects"] for entity in described):
        answer["entities"] = [entity for entity in described if entity["aspects"]]
    return answer


def _boosted_rank(daemon: Daemon, scores: dict[str, tuple[float, str]]) -> Callable[[str], float]:
    """A function that ranks a memory: its score, raised a little for every time it was shown before."""
    rows = daemon.store.rows(
        f"SELECT id, access_count FROM memories WHERE id IN ({','.join('?' * len(scores))})", *scores
    )
    boost = {row["id"]: 1 + _BOOST_PER_READ * math.log(row["access_count"] + 1) for row in rows}
    return lambda item: scores[item][0] * boost.get(item, 1.0)


def _rows(
    daemon: Daemon, ranked: list[str], scores: dict[str, tuple[float, str]], where: str, values: list[Any]
) -> list[dict[str, Any]]:
    rows = daemon.store.rows(
        f"SELECT m.* FROM memories m WHERE m.id IN ({','.join('?' * len(ranked))}){where}", *ranked, *values
    )
    by_id = {row["id"]: row for row in rows}
    return [row_to_wire(by_id[item], *scores[item]) for item in ranked if item in by_id]


def row_to_wire(row: Mapping[str, Any] | sqlite3.Row, score: float, source: str) -> dict[str, Any]:
    """A memory as recall shows it: long content is cut, and `source` names what found it."""
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
        **{name: row[name] for name in _SHOWN},
        "pinned": bool(row["pinned"]),
    }


def _entities_in(
    daemon: Daemon, entities: list[sqlite3.Row], request: RecallRequest, where: str, values: list[Any]
) -> list[sqlite3.Row]:
    """The named entities; with a project or scope only those mentioned by a memory of it."""
    if not js.truthy(request.fields.get("project")) and "scope" not in request.fields:
        return entities
    return [
        entity
        for entity in entities
        if daemon.store.row(
            f"""SELECT 1 FROM entity_mentions x JOIN memories m ON m.id = x.memory_id
                WHERE x.entity_id = ?{where} LIMIT 1""",
            entity["id"], *values,
        )
    ]  # fmt: skip


def _describe(daemon: Daemon, entity: sqlite3.Row, agent: str) -> dict[str, Any]:
    aspects = [
        {"name": name, "attributes": [dict(row) for row in attributes]}
        for name, attributes in daemon.graph.aspects_of(entity["id"], agent)
    ]
    return {"name": entity["name"], "type": entity["entity_type"], "aspects": aspects}


def _construct_rows(
    daemon: Daemon, entities: list[sqlite3.Row], agent: str, rows: list[dict[str, Any]], limit: int
) -> list[dict[str, Any]]:
    """Rows constructed from what is known about the named entities, with scores below those of all real rows."""
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


def aggregate(daemon: Daemon, request: RecallRequest) -> dict[str, Any]:
    """The answer to an aggregate recall by a daemon without a model: the ids of the rows, and no summary."""
    response = recall(daemon, request)
    ids = [row["id"] for row in response["results"] if not row.get("supplementary")]
    budget = request.fields.get("aggregateBudget") or request.fields.get("aggregate_budget") or "small"
    stages = [{"name": "aggregate_initial_recall", "durationMs": response["meta"]["timings"]["totalMs"]}]
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
