"""SQL over the tables of an audit: they are loaded, and then nothing outside of them can be reached."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from signet_conformance.audit.extra import package
from signet_conformance.audit.results import COLUMNS, TABLES, read_summary
from signet_conformance.errors import UsageError, printable

MOST_ROWS = 100_000
_READING = frozenset({"SELECT", "EXPLAIN"})


def answered(folder: Path, sql: str) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    """The columns and rows that a statement selects from the tables recordings, sessions and breaches.

    Raises UsageError for anything but one statement that reads, and for SQL that is wrong.
    """
    read_summary(folder)
    duckdb = package("duckdb", "audit query")
    with duckdb.connect(":memory:") as connection:
        _load(connection, folder / "results")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET autoinstall_known_extensions = false")
        connection.execute("SET autoload_known_extensions = false")
        connection.execute("SET lock_configuration = true")
        try:
            statements = connection.extract_statements(sql)
            kinds = [statement.type.name for statement in statements]
            if len(statements) != 1 or kinds[0] not in _READING:
                raise UsageError(
                    "takes one statement that reads",
                    where="audit query",
                    remedy="SELECT … FROM recordings, sessions or breaches",
                )
            result = connection.execute(statements[0])
            rows = result.fetchmany(MOST_ROWS)
        except duckdb.Error as failure:
            raise UsageError(
                printable(str(failure).partition("\n")[0], 400), where="audit query", remedy=_columns_told()
            ) from None
        return [column[0] for column in result.description], rows


def _load(connection: Any, results: Path) -> None:
    for name in TABLES:
        parquet, lines = results / f"{name}.parquet", results / f"{name}.jsonl"
        if parquet.is_file():
            rows = connection.read_parquet(str(parquet))
        else:
            rows = connection.read_json(str(lines), format="newline_delimited", columns=dict(COLUMNS[name]))
        rows.create(name)


def _columns_told() -> str:
    return "the columns: " + "; ".join(f"{name}({', '.join(columns)})" for name, columns in COLUMNS.items())
