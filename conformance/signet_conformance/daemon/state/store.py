"""The SQLite file of one daemon: memories with their full-text index, the entity graph, transcripts and keys.

Each daemon has one file in its own workspace. A mark in it says that the kit made it, so that a database of another
program is refused rather than written to.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from signet_conformance.errors import UsageError

DATABASE_NAME: Final = "memories.db"

#: SQLite's application_id of the kit's databases: the letters SCKD.
_APPLICATION_ID: Final = 0x53434B44

_TABLES: Final = Path(__file__).with_name("tables.sql")


class Store:
    """An open database. Calls are synchronous and come from one thread at a time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def open(cls, workspace: Path) -> Store:
        """The store in `workspace`, created if missing. Raises `UsageError` for a foreign or unreadable file."""
        path = workspace / DATABASE_NAME
        try:
            if path.exists() and not _may_be_database(path):
                raise _foreign(path)
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            mark = connection.execute("PRAGMA application_id").fetchone()[0]
            known = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
            if known and mark != _APPLICATION_ID:
                connection.close()
                raise _foreign(path)
            # The file outlives a killed process, as restarts need; it need not outlive a power cut.
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("PRAGMA journal_mode = WAL")
            if not known:
                tables = _TABLES.read_text("utf-8")
                connection.executescript(f"BEGIN; PRAGMA application_id = {_APPLICATION_ID}; {tables} COMMIT;")
        except (sqlite3.Error, OSError) as problem:
            raise UsageError(
                f"the database cannot be opened: {problem}",
                where=str(path),
                remedy="name a folder that can be written to, or none, so that a temporary one is used",
            ) from problem
        connection.row_factory = sqlite3.Row
        return cls(connection)

    def close(self) -> None:
        """Close the file; the store cannot be used any more."""
        self._connection.close()

    def rows(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        """Every row that `sql` yields."""
        return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, *values: Any) -> sqlite3.Row | None:
        """The first row that `sql` yields, else None."""
        row: sqlite3.Row | None = self._connection.execute(sql, values).fetchone()
        return row

    def number(self, sql: str, *values: Any) -> int:
        """The number in the first column of the first row."""
        return int(self._connection.execute(sql, values).fetchone()[0] or 0)

    def run(self, sql: str, *values: Any) -> int:
        """Execute a change; return how many rows it affected."""
        return self._connection.execute(sql, values).rowcount

    def insert(self, table: str, row: Mapping[str, Any]) -> None:
        """Add `row`, column by column."""
        marks = ", ".join("?" * len(row))
        self.run(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", *row.values())

    def run_many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        """Execute a change once for each of `values`."""
        self._connection.executemany(sql, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all changes within the context, or none. A nested transaction is part of the outermost."""
        if self._connection.in_transaction:
            yield
            return
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")


def _may_be_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(16) in (b"", b"SQLite format 3\x00")


def _foreign(path: Path) -> UsageError:
    return UsageError(
        "this file was not made by the embedded daemon and is left alone",
        where=str(path),
        remedy="name another workspace folder",
    )
