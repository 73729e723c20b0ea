"""What words find in 0.58: the rows of every agent, forgotten ones too, each scored by its place alone."""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING, Any, Final

from signet_conformance.daemon.values import BLANKS, ScriptError, is_number, truthy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from signet_conformance.daemon.state.daemon import Daemon

_MOST: Final = 20
#: A row whose words speak less than a tenth as loud as the best one's is not shown.
_LEAST_SHARE: Final = 0.1
_OPERATORS: Final = frozenset(("AND", "OR", "NOT"))
_SYNTAX: Final = re.compile(r'[":()^*]')

#: Filters that hold one value each, as sent: a value that cannot be compared finds nothing.
_COMPARED: Final = {
    "type": "m.type = ?",
    "who": "m.who = ?",
    "since": "m.created_at >= ?",
    "until": "m.created_at <= ?",
}


def all_of(text: str) -> str:
    """`text` for the index: each word must occur, capital AND, OR and NOT are operators. A repeat changes nothing."""
    words = dict.fromkeys(text.split()) if not _OPERATORS & set(text.split()) else text.split()
    quoted = (word if word in _OPERATORS else _quoted(word) for word in words)
    return " ".join(filter(None, quoted))


def any_of(words: Iterable[str]) -> str:
    """`words` for the index: one of them must occur."""
    return " OR ".join(filter(None, map(_quoted, words)))


def _quoted(word: str) -> str:
    bare = _SYNTAX.sub("", word)
    return f'"{bare}"' if bare else ""


def found(daemon: Daemon, expression: str, filters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows that match, best first, each with its ``score`` in 0..1. Raises `ScriptError` for tags of no text."""
    conditions, values = _conditions(filters)
    sql = f"""WITH hit AS MATERIALIZED (
                  SELECT rowid AS place, -bm25(memories_fts) AS loudness FROM memories_fts WHERE memories_fts MATCH ?)
              SELECT m.*, hit.loudness FROM hit JOIN memories m ON m.rowid = hit.place WHERE {" AND ".join(conditions)}
              ORDER BY hit.loudness * CAST(m.importance AS REAL) DESC, m.created_at LIMIT {_MOST}"""
    try:
        rows = daemon.store.rows(sql, expression, *values) if expression else []
    except sqlite3.Error:
        return []
    least = _LEAST_SHARE * max((row["loudness"] for row in rows), default=0.0)
    heard = [row for row in rows if row["loudness"] >= least]
    return [{**dict(row), "score": 1 - place / len(heard)} for place, row in enumerate(heard)]


def _conditions(filters: Mapping[str, Any]) -> tuple[list[str], list[Any]]:
    asked = [(clause, filters[name]) for name, clause in _COMPARED.items() if truthy(filters.get(name))]
    tags = filters.get("tags")
    if truthy(tags):
        if not isinstance(tags, str):
            raise ScriptError("tags are no text")
        asked += [("m.tags LIKE ?", f"%{tag}%") for part in tags.split(",") if (tag := part.strip(BLANKS))]
    if is_number(filters.get("importance_min")):
        asked.append(("m.importance >= ?", filters["importance_min"]))
    fixed = ["m.pinned"] if truthy(filters.get("pinned")) else []
    return ["1", *fixed, *(clause for clause, _ in asked)], [value for _, value in asked]
