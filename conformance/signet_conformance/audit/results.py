"""The folder of an audit: one file per batch while it runs, then the tables. Every file is there whole or not at all.

FOLDER/manifest.jsonl              where the recordings are: private, no result
FOLDER/batches/000000.jsonl …      the rows of each batch, as they were judged
FOLDER/results/recordings.jsonl    one row per recording; or .parquet
FOLDER/results/sessions.jsonl      one row per recording and session
FOLDER/results/breaches.jsonl      one row per recording and breached or undecided requirement
FOLDER/results/summary.json        by connector, release and requirement
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, get_args, get_origin, get_type_hints

import msgspec

from signet_conformance.audit import import_extra
from signet_conformance.audit.manifest import FILE, demand_audit
from signet_conformance.audit.rows import VERDICT_LISTS, BreachRow, RecordingRow, Row, SaveRow, SessionRow
from signet_conformance.audit.shared_facts import SharedFacts, between
from signet_conformance.audit.summary import AuditTotals, Summary
from signet_conformance.contract import catalogue_place
from signet_conformance.errors import UsageError, os_errors, printable
from signet_conformance.files import private_opener, write_whole

TABLES = ("recordings", "sessions", "breaches")
JSON_LINES, PARQUET = "jsonl", "parquet"
_SUMMARY = "summary.json"
_ORDER = tuple(VERDICT_LISTS)
_LIST_OF = {verdict.value: name for name, verdict in VERDICT_LISTS.items()}

RECORDING, SESSION, BREACH, SAVE = (
    f'{{"kind":"{row.__struct_config__.tag}",'.encode() for row in (RecordingRow, SessionRow, BreachRow, SaveRow)
)
"""How the lines of each kind of row begin."""

_decoder = msgspec.json.Decoder(Row)
_totals_decoder: msgspec.json.Decoder[RecordingRow | BreachRow] = msgspec.json.Decoder(RecordingRow | BreachRow)
_encoder = msgspec.json.Encoder()


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock the folder of an audit; raise UsageError if that is not possible, or if another audit uses it."""
    ours = not folder.exists()
    with os_errors("cannot be written", where=folder, remedy="name a folder that you may write to: --out FOLDER"):
        (folder / "batches").mkdir(parents=True, exist_ok=True)
        (folder / "results").mkdir(exist_ok=True)
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        remedy = "wait for its end, or name another"
        raise UsageError("another audit is at work there", where=folder, remedy=remedy) from None
    try:
        yield
    finally:
        # If nothing could be listed, no audit was begun: leave no empty folder behind.
        if ours and not (folder / FILE).exists():
            shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


class Batches:
    """The files of the batches in the folder of an audit."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "batches"
        self._done = {int(path.stem) for path in self._folder.glob("*.jsonl") if path.stem.isdigit()}

    def has(self, number: int) -> bool:
        """Whether a batch was judged."""
        return number in self._done

    def write(self, number: int, rows: bytes) -> None:
        """Keep the rows of a batch."""
        write_whole(self._path(number), (rows,))
        self._done.add(number)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:06}.jsonl"

    def lines(self) -> Iterator[bytes]:
        """The rows of all batches, in the order of the manifest."""
        for number in sorted(self._done):
            with self._path(number).open("rb") as stream:
                yield from stream

    def counts(self) -> Mapping[bytes, int]:
        """How many rows of each kind there are."""
        return Counter(line.partition(b",")[0] + b"," for line in self.lines())

    def rows(self, *kinds: bytes) -> Iterator[Row]:
        """The rows of some kinds, read."""
        return (_decoder.decode(line) for line in self.lines() if line.startswith(kinds))


def write_tables(folder: Path, batches: Batches, named: int, form: str) -> Summary:
    """Write the tables and the summary of an audit whose batches are complete; `named` is the number of recordings.

    A named recording without a row is older than the day that was asked for.
    """
    counts = batches.counts()
    keys = counts.get(SESSION, 0) + counts.get(SAVE, 0)
    together = between(lambda: batches.rows(RECORDING, SESSION, SAVE), keys)
    settled: dict[str, set[tuple[str, str]]] = {}
    for recording, requirement, session in together.settled:
        settled.setdefault(recording, set()).add((requirement, session))
    summing = AuditTotals()
    results = folder / "results"
    with ExitStack() as stack:
        streams = {name: stack.enter_context(_table(results, name)) for name in TABLES}
        to = {kind: streams[name] for kind, name in zip((RECORDING, SESSION, BREACH), TABLES, strict=True)}
        for lines in _by_recording(batches):
            whole = _decoder.decode(lines[0])
            if whole.recording in settled or whole.recording in together.added:
                rows = _adjust([_decoder.decode(line) for line in lines], settled, together)
                lines = [_encoder.encode(row) + b"\n" for row in rows]  # noqa: PLW2901 - what is written in their place
            for line in lines:
                kind = line[: line.index(b",") + 1]
                to[kind].write(line)
                if kind == SESSION:
                    summing.sessions += 1
                elif kind == RECORDING or summing.wants_breaches:
                    summing.add(_totals_decoder.decode(line))
    if form == PARQUET:
        for name in TABLES:
            _to_parquet(results, name)
    for name in TABLES:
        (results / f"{name}.{JSON_LINES if form == PARQUET else PARQUET}").unlink(missing_ok=True)
    summary = summing.summary(earlier=named - counts.get(RECORDING, 0), joined=together.joined)
    write_whole(results / _SUMMARY, (msgspec.json.format(_encoder.encode(summary), indent=1), b"\n"))
    return summary


@contextmanager
def _table(results: Path, name: str) -> Iterator[BinaryIO]:
    """A stream whose content is a table once the block ends well."""
    draft = results / f"{name}.jsonl.part"
    with open(draft, "wb", opener=private_opener) as stream:
        yield stream
    draft.replace(results / f"{name}.jsonl")


def _to_parquet(results: Path, name: str) -> None:
    duckdb = import_extra("duckdb", "--format parquet")
    source, draft, table = (results / f"{name}{suffix}" for suffix in (".jsonl", ".parquet.part", ".parquet"))
    with duckdb.connect(config={"threads": 1}) as connection:
        rows = connection.read_json(str(source), format="newline_delimited", columns=COLUMNS[name])
        rows.write_parquet(str(draft), compression="zstd")
    draft.chmod(0o600)
    draft.replace(table)


_TYPES = {str: "VARCHAR", int: "BIGINT", bool: "BOOLEAN", float: "DOUBLE"}


def _column(hint: Any) -> str:
    """The DuckDB type of a member of a row."""
    if get_origin(hint) is tuple:
        return f"{_column(get_args(hint)[0])}[]"
    return next((_TYPES[each] for each in (hint, *get_args(hint)) if each in _TYPES), "VARCHAR")


COLUMNS: Mapping[str, dict[str, str]] = {
    name: {member: _column(hint) for member, hint in get_type_hints(row).items() if member in row.__struct_fields__}
    for name, row in zip(TABLES, (RecordingRow, SessionRow, BreachRow), strict=True)
}
"""The columns of each table, as DuckDB types."""
COLUMNS["recordings"]["created"] = "TIMESTAMP"


def _by_recording(batches: Batches) -> Iterator[list[bytes]]:
    """Yield the lines recording by recording, without those of saves."""
    group: list[bytes] = []
    for line in batches.lines():
        if line.startswith(RECORDING) and group:
            yield group
            group = []
        if not line.startswith(SAVE):
            group.append(line)
    if group:
        yield group


def _adjust(
    rows: list[Row], settled: Mapping[str, set[tuple[str, str]]], together: SharedFacts
) -> Iterator[RecordingRow | SessionRow | BreachRow]:
    """The rows of a recording, with what only several recordings show."""
    whole = rows[0]
    assert isinstance(whole, RecordingRow)  # noqa: S101 - a batch is written so
    settled_here = settled.get(whole.recording, set())
    added = together.added.get(whole.recording, ())
    sessions = [row for row in rows if isinstance(row, SessionRow)]
    breaches = [row for row in rows if isinstance(row, BreachRow)]
    left = [row for row in breaches if row.session is None or (row.requirement, row.session) not in settled_here]
    if len(left) < len(breaches) or added:
        breaches = [*left, *added]
        whole = _with_verdicts_of(whole, {row.requirement for row in rows if isinstance(row, BreachRow)}, breaches)
    yield whole
    yield from sessions
    yield from breaches


def _with_verdicts_of(whole: RecordingRow, had: set[str], breaches: list[BreachRow]) -> RecordingRow:
    """Update the row of a recording to these breaches. What it `had` breached and does not any more, it passes."""
    now: dict[str, str] = {}
    for name in (*_ORDER[:3], "passed", "undecided"):
        now.update(dict.fromkeys(getattr(whole, name), name))
    now.update(dict.fromkeys(had, "passed"))
    for row in breaches:
        name_of_list = _LIST_OF[row.verdict]
        now[row.requirement] = min(now.get(row.requirement, name_of_list), name_of_list, key=_ORDER.index)
    lists = {name: [each for each, its in now.items() if its == name] for name in _ORDER}
    return msgspec.structs.replace(
        whole,
        **{name: tuple(sorted(each, key=lambda r: (catalogue_place(r), r))) for name, each in lists.items()},
    )


def read_summary(folder: Path) -> Summary:
    """The summary of an audit; raise UsageError if it is not finished."""
    demand_audit(folder)
    path = folder / "results" / _SUMMARY
    try:
        return msgspec.json.decode(path.read_bytes(), type=Summary)
    except (OSError, msgspec.MsgspecError):
        raise UsageError(
            "holds no finished audit",
            where=folder,
            remedy="signet-conformance audit DATASET… --out FOLDER continues it",
        ) from None


MOST_ROWS = 100_000
_READING = frozenset({"SELECT", "EXPLAIN"})


def run_query(folder: Path, sql: str) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    """The columns and rows that a statement selects from the tables recordings, sessions and breaches.

    Raises UsageError for anything but one SELECT or EXPLAIN statement, and for wrong SQL.
    """
    read_summary(folder)
    duckdb = import_extra("duckdb", "audit query")
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
                    "takes one SELECT statement",
                    where="audit query",
                    remedy="SELECT … FROM recordings, sessions or breaches",
                )
            result = connection.execute(statements[0])
            rows = result.fetchmany(MOST_ROWS)
        except duckdb.Error as failure:
            raise UsageError(
                printable(str(failure).partition("\n")[0], 400), where="audit query", remedy=_columns_text()
            ) from None
        return [column[0] for column in result.description], rows


def _load(connection: Any, results: Path) -> None:
    for name in TABLES:
        parquet, lines = results / f"{name}.parquet", results / f"{name}.jsonl"
        if parquet.is_file():
            rows = connection.read_parquet(str(parquet))
        else:
            rows = connection.read_json(str(lines), format="newline_delimited", columns=COLUMNS[name])
        rows.create(name)


def _columns_text() -> str:
    return "the columns: " + "; ".join(f"{name}({', '.join(columns)})" for name, columns in COLUMNS.items())
