"""Baselines that need no daemon: plain full-text search, and plain recency, over the same facts.

Each agent's facts and turns are a collection of their own. Sessions, projects and compactions are ignored.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from signet_reference_harness.bench import suite
from signet_reference_harness.bench.figures import demand_installed
from signet_reference_harness.bench.performing import Latencies, MemoryRow, OpenDatabase, Player, StepMemories, Subject

SEARCH: Final = "search"
WORD: Final = re.compile(r"\w+")


class FullText:
    """SQLite FTS5 with the porter tokenizer, ranked by its bm25: any word of the query may occur."""

    def __init__(self) -> None:
        self._database = sqlite3.connect(":memory:", isolation_level=None)
        self._database.execute("CREATE VIRTUAL TABLE texts USING fts5(text, name UNINDEXED, tokenize = 'porter')")

    def add(self, name: str, text: str) -> None:
        """Add a text."""
        self._database.execute("INSERT INTO texts (text, name) VALUES (?, ?)", (text, name))

    def remove(self, name: str) -> None:
        """Remove a text."""
        self._database.execute("DELETE FROM texts WHERE name = ?", (name,))

    def search(self, query: str, limit: int) -> list[MemoryRow]:
        """The texts with any of the words, the best first."""
        words = dict.fromkeys(WORD.findall(query.lower()))
        if not words:
            return []
        rows = self._database.execute(
            "SELECT name, rank FROM texts WHERE texts MATCH ? ORDER BY rank, rowid LIMIT ?",
            (" OR ".join(f'"{word}"' for word in words), limit),
        )
        return [MemoryRow(name, round(-score, 6), SEARCH) for name, score in rows]

    def close(self) -> None:
        """Close the database."""
        self._database.close()


class StoredTexts:
    """Texts by their names, in the order in which they were added."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._index: Any = None
        """Created when the texts are searched."""

    def add(self, name: str, text: str) -> None:
        """Add a text."""
        self._texts[name] = text
        self._index = None

    def remove(self, name: str) -> None:
        """Remove a text."""
        del self._texts[name]
        self._index = None

    def close(self) -> None:
        """Do nothing: the texts are in memory."""


class Bm25(StoredTexts):
    """The package bm25s with its own defaults: Lucene's BM25, English stop words, no stemmer."""

    def search(self, query: str, limit: int) -> list[MemoryRow]:
        """The texts that share a word with the query, the best first."""
        import bm25s

        names = list(self._texts)
        if not names:
            return []
        if self._index is None:
            self._index = bm25s.BM25()
            self._index.index(bm25s.tokenize(list(self._texts.values()), show_progress=False), show_progress=False)
        words = bm25s.tokenize([query], show_progress=False, return_ids=False)[0]
        scores = [float(score) for score in self._index.get_scores(words)] if words else []
        best = sorted((number for number, score in enumerate(scores) if score > 0), key=lambda n: (-scores[n], n))
        return [MemoryRow(names[number], round(scores[number], 6), SEARCH) for number in best[:limit]]


class RecentTexts(StoredTexts):
    """The newest texts, whatever the query."""

    def search(self, query: str, limit: int) -> list[MemoryRow]:
        """The last texts, newest first."""
        del query
        return [MemoryRow(name, None, SEARCH) for name in list(self._texts)[: -limit - 1 : -1]]


Collection = FullText | Bm25 | RecentTexts
"""The texts of one agent. `search` returns the best first, and equal ones in the order in which they were added."""
Collections = defaultdict[str, Collection]
"""The texts of one database by agent."""
BASELINES: Final[dict[str, Callable[[], Collection]]] = {"fts5": FullText, "bm25s": Bm25, "recent": RecentTexts}


class BaselineSubject(Subject):
    """A baseline by its name in BASELINES. Raises ConfigError if its package is not installed."""

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self._limit = limit
        if name == "bm25s":
            demand_installed(name)

    def describe(self) -> dict[str, Any]:
        """The subject's kind and name."""
        return {"kind": "baseline", "name": self.name}

    @asynccontextmanager
    async def open(self, folder: Path, database: str, number: int) -> AsyncIterator[OpenDatabase]:
        """Open empty collections."""
        del folder, database, number
        collections: Collections = defaultdict(BASELINES[self.name])
        latencies = Latencies()
        try:
            yield OpenDatabase(lambda run: _BaselinePlayer(collections, latencies, run, self._limit), latencies)
        finally:
            for collection in collections.values():
                collection.close()


class _BaselinePlayer(Player):
    has_sessions = False

    def __init__(
        self, collections: Collections, latencies: Latencies, scenario_run: suite.ScenarioRun, limit: int
    ) -> None:
        self._collections = collections
        self._latencies = latencies
        self._scenario = scenario_run.scenario.id
        self._limit = limit
        self._agent = scenario_run.agent
        self._agents = {suite.OWN_SESSION: scenario_run.agent}
        self._owners: dict[str, str] = {}

    async def fact(self, step: suite.SuiteFact) -> None:
        self._store(step.id, step.text, self._agents.get(step.session, self._agent))

    async def forget(self, step: suite.SuiteForget) -> None:
        self._collections[self._owners[step.fact]].remove(self._key(step.fact))

    async def query(self, step: suite.SuiteQuery) -> StepMemories:
        return self._search(step.session, step.text)

    async def prompt(self, step: suite.SuiteTurn) -> StepMemories:
        memories = self._search(step.session, step.text)
        if step.id is not None:
            self._store(step.id, step.text, self._agents.get(step.session, self._agent))
        return memories

    async def start(self, step: suite.SuiteStart) -> StepMemories | None:
        self._agents.setdefault(step.session, step.agent or self._agent)
        return StepMemories(SEARCH, (), 0.0)

    def _store(self, name: str, text: str, agent: str) -> None:
        self._owners[name] = agent
        began = time.perf_counter()
        self._collections[agent].add(self._key(name), text)
        self._latencies.note("store", (time.perf_counter() - began) * 1000)

    def _search(self, session: str, text: str) -> StepMemories:
        began = time.perf_counter()
        rows = self._collections[self._agents.get(session, self._agent)].search(text, self._limit)
        ms = (time.perf_counter() - began) * 1000
        self._latencies.note(SEARCH, ms)
        named_rows = tuple(MemoryRow(self._name_of(row.item), row.score, row.source) for row in rows)
        return StepMemories(SEARCH, named_rows, ms)

    def _key(self, name: str) -> str:
        """A key that no other scenario uses: scenarios may share a database, and use the same names."""
        return f"{self._scenario}\0{name}"

    def _name_of(self, key: str) -> str:
        scenario, _, name = key.partition("\0")
        return name if scenario == self._scenario else f"other:{scenario}/{name}"
