"""What speaks for a memory: the channels of a recall and how their findings are weighed against each other."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from signet_conformance.daemon.state.texts import graph_words, index_query

if TYPE_CHECKING:
    from signet_conformance.daemon.state import Daemon

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
