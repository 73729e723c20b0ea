"""Connectors side by side, from their reports: the operations that each declares and uses, its verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import Struct
from pydantic import ConfigDict, Field
from rich.table import Table
from rich.text import Text

from signet_conformance.contract import contract_versions, document, version_document
from signet_conformance.errors import UsageError, printable
from signet_conformance.files.documents import DistinctItems, Document, Items, Maybe, Part
from signet_conformance.finding import BREACHES, FOLDING_ORDER, Verdict
from signet_conformance.outcome.next_contract import later_words
from signet_conformance.reports.command_lines import explain_command
from signet_conformance.reports.report_document import Report, ReportRun, ReportTrace, read_report
from signet_conformance.reports.terminal import MAX_WIDTH, STRONG, VERDICT_STYLES, Paragraph, draw, draw_table
from signet_conformance.reports.values import cell
from signet_conformance.rules import run_rules

UNNAMED = "unnamed"

State = Literal["used", "declared only", "drift", "seen", "-"]
"""Declared and observed; only declared; only observed; observed while nothing is declared; neither."""
USED: Final = "used"
UNUSED: Final = "declared only"
DRIFT: Final = "drift"
SEEN: Final = "seen"
ABSENT: Final = "-"


class Column(Struct, frozen=True):
    """One connector in one report.

    `harness` is the name and release of the real program that it ran in; None if the kit played its harness. `created`
    is when the run began, as the report says; `commit` what was checked out; `release` the connector's own release;
    `later` what the next contract would find.
    """

    name: str
    contract: str
    kit: str
    report: str
    declared: frozenset[str]
    observed: frozenset[str]
    verdicts: Mapping[str, Verdict]
    harness: str | None = None
    created: str = ""
    commit: str = ""
    release: str = ""
    later: str = ""

    @property
    def head(self) -> str:
        """The heading of the column."""
        return self.name if self.harness is None else f"{self.name} in the real {self.harness}"

    def operation(self, name: str) -> State:
        """The state of an operation in a report."""
        if name in self.observed:
            return USED if name in self.declared else DRIFT if self.declared else SEEN
        return UNUSED if name in self.declared else ABSENT

    @property
    def rows(self) -> tuple[str, ...]:
        """The operations of the integration surface that it uses, in the order of the surface."""
        return tuple(name for name in surface() if name in self.observed)

    @property
    def missing(self) -> list[str]:
        """The operations of the integration surface that it does not use."""
        return [name for name in surface() if name not in self.observed]

    @property
    def full_set(self) -> str | None:
        """None if every requirement in force was judged over a whole run; otherwise what is missing."""
        force = version_document(self.contract)["requirements"]
        unjudged = [name for name in force if name not in self.verdicts]
        if unjudged:
            return f"{len(unjudged)} of {len(force)} requirements were not judged, {unjudged[0]} among them"
        failed = [name for name, verdict in self.verdicts.items() if verdict is Verdict.ERROR]
        if failed:
            return f"the kit failed at {failed[0]}"
        for name in (name for name in run_rules() if name in force):
            if self.verdicts[name] not in (Verdict.PASS, Verdict.WARN, Verdict.FAIL):
                return f"{name} is {self.verdicts[name].value}: this is not a whole run of a declared target"
        return None


def headings(columns: Sequence[Column], most: int = 48) -> list[str]:
    """The heading of each column: its name; where names repeat, also the first of run, commit and date that differs."""
    alike: dict[tuple[str, str], list[Column]] = {}
    for column in columns:
        alike.setdefault((column.head, column.contract), []).append(column)
    heads = {}
    for (head, _), group in alike.items():
        runs = [PurePath(column.report).parent.name for column in group]
        commits = [column.commit[:9] for column in group]
        days = [column.created[:10] for column in group]
        times = [column.created[:16].replace("T", " ") for column in group]
        paths = [column.report for column in group]
        asides = next((each for each in (runs, commits, days, times, paths) if _are_distinct(each)), paths)
        for column, aside in zip(group, asides, strict=True):
            heads[id(column)] = cell(head, most) if len(group) == 1 else f"{cell(head, most)} {cell(aside, most)}"
    return [heads[id(column)] for column in columns]


def _are_distinct(names: Sequence[str]) -> bool:
    return all(names) and len(set(names)) == len(names)


def surface() -> tuple[str, ...]:
    """The twelve rows of the integration surface, in order."""
    rows = document("operations.json")["operations"]
    return tuple(sorted((name for name in rows if rows[name]["row"]), key=lambda name: int(rows[name]["row"])))


def read_columns(path: str) -> list[Column]:
    """The connectors of a report, one for each target. Raises UsageError if it is not a signet-report/1."""
    report = read_report(path)
    if report.contract not in contract_versions():
        raise UsageError(
            f"is judged by contract {printable(report.contract, 20)}, which this kit does not know",
            where=path,
            remedy="upgrade the kit: pip install -U signet-conformance",
        )
    groups: dict[str, list[ReportTrace]] = {}
    for trace in report.traces:
        groups.setdefault(trace.target or trace.declared.harness or UNNAMED, []).append(trace)
    return [_column(name, traces, report, path, len(groups) == 1) for name, traces in groups.items()]


def _column(name: str, traces: Sequence[ReportTrace], report: Report, path: str, alone: bool) -> Column:
    verdicts: dict[str, Verdict] = {}
    for trace in traces:
        for requirement, row in trace.verdicts.items():
            verdicts[requirement] = min(verdicts.get(requirement, row.verdict), row.verdict, key=FOLDING_ORDER.index)
    if alone:
        # The run as a whole decides some requirements; it is this connector's only if it has no other.
        verdicts |= {requirement: row.verdict for requirement, row in report.together.items()}
    declared = frozenset(operation for trace in traces for operation in trace.declared.capabilities or ())
    observed = frozenset(operation for trace in traces for operation in trace.operations)
    real = next((f"{host.host} {host.release}" for host in report.played if host.real), None)
    run = report.run or ReportRun()
    return Column(
        name,
        report.contract,
        report.kit,
        path,
        declared,
        observed,
        verdicts,
        real,
        created=run.created or "",
        commit=run.commit or "",
        release=run.connector or "",
        later=_later(report) if alone else "",
    )


def _later(report: Report) -> str:
    newer = report.newer
    if newer is None:
        return ""
    traces = {printable(name, 60): breach.traces for name, breach in newer.breaches.items()}
    return later_words(printable(newer.contract, 20), newer.of, traces)


def differences(columns: Sequence[Column]) -> list[Difference]:
    """The requirements that a connector breaches either in the real program or in the played one, but not in both.

    A connector needs a column of each kind.
    """
    differences = []
    for real in (column for column in columns if column.harness is not None):
        for played in (column for column in columns if column.harness is None and column.name == real.name):
            for name in dict.fromkeys((*played.verdicts, *real.verdicts)):
                lanes = (("played", played), ("real", real))
                verdicts = {lane: column.verdicts[name] for lane, column in lanes if name in column.verdicts}
                if (verdicts.get("played") in BREACHES) is not (verdicts.get("real") in BREACHES):
                    harness = str(real.harness)
                    differences.append(Difference(name=real.name, requirement=name, harness=harness, **verdicts))
    return differences


def to_json(columns: Sequence[Column]) -> dict[str, Any]:
    """The matrix as an object: signet-matrix/1."""
    names = operations(columns)
    return Matrix(
        format="signet-matrix/1",
        surface=surface(),
        connectors=tuple(_connector(column, names) for column in columns),
        differences=tuple(
            each.model_copy(update={"name": printable(each.name, 200), "harness": printable(each.harness, 200)})
            for each in differences(columns)
        ),
    ).to_json()


def _connector(column: Column, names: Sequence[str]) -> Connector:
    return Connector(
        name=printable(column.name, 200),
        report=printable(column.report, 1000),
        **({} if column.harness is None else {"harness": printable(column.harness, 200)}),
        contract=column.contract,
        kit=column.kit,
        parity=Parity(rows=len(column.rows), of=ROWS, full=column.rows == surface(), missing=tuple(column.missing)),
        operations={name: column.operation(name) for name in names},
        requirements=dict(column.verdicts),
        full_set=column.full_set is None,
        **({"later": column.later} if column.later else {}),
    )


def operations(columns: Sequence[Column]) -> list[str]:
    """The twelve rows, then other operations that are declared or used."""
    others = sorted({name for column in columns for name in column.declared | column.observed} - set(surface()))
    return [*surface(), *(cell(name, 60) for name in others)]


def parity_line(column: Column, heading: str = "") -> str:
    """How much of the integration surface a connector uses; `heading` is the heading of its column."""
    missing = column.missing
    shown = heading or cell(column.head, 120)
    head = f"{shown} ({column.contract}): {len(column.rows)} of {len(surface())} operations"
    return f"{head}, full parity" if not missing else f"{head}, partial: without {', '.join(missing)}"


ROWS: Final = 12
"""How many operations make up the integration surface."""

Row = Annotated[int, Field(ge=0, le=ROWS)]


class Parity(Part):
    """How much of the integration surface a connector uses."""

    rows: Row
    of: Literal[12]
    full: bool
    missing: DistinctItems[str] = ()
    """The operations of the surface that it does not use, in their order; empty with full parity."""


class Connector(Part):
    """One connector in one report."""

    name: str
    report: str
    harness: Maybe[str] = None
    """The real program in which it ran; left out if the kit played its harness."""
    contract: str
    kit: str
    parity: Parity
    operations: dict[str, State]
    requirements: dict[str, Annotated[Verdict, Field(strict=False)]]
    full_set: bool
    """Whether every requirement in force was judged over a whole run of a declared target; only then the connector gets
    a badge.
    """

    later: Maybe[str] = None
    """Breaches of the next contract, if the connector's release is between two."""


class Difference(Part):
    """A requirement that a connector breaches in a played harness but not in the real one, or the other way round."""

    name: str
    requirement: str
    played: Maybe[Annotated[Verdict, Field(strict=False)]] = None
    """The verdict; left out if it was not judged."""
    real: Maybe[Annotated[Verdict, Field(strict=False)]] = None
    """The verdict; left out if it was not judged."""
    harness: str

    @property
    def words(self) -> str:
        """The difference as a line."""
        verdicts = [verdict.value if verdict is not None else "not judged" for verdict in (self.played, self.real)]
        return (
            f"{cell(self.name, 60)}: {self.requirement} {verdicts[0]} where the kit plays the harness, "
            f"{verdicts[1]} in the real {cell(self.harness, 60)}"
        )


class Matrix(Document):
    """Connector by operation and connector by requirement, from the reports of their runs."""

    model_config = ConfigDict(title="Connectors side by side (signet-matrix/1)")
    schema_file: ClassVar[str] = "matrix/signet-matrix-1.schema.json"

    format: Literal["signet-matrix/1"]
    surface: Annotated[Items[str], Field(min_length=ROWS, max_length=ROWS)]
    """The operations of full parity, in the order of their rows."""
    connectors: Items[Connector]
    differences: Items[Difference] = ()
    """Differences of connectors with a report of a played harness and one of the real harness."""


_MEANING = {
    USED: Verdict.PASS,
    UNUSED: Verdict.FAIL,
    DRIFT: Verdict.WARN,
    ABSENT: Verdict.NOT_APPLICABLE,
}
_STYLES = {word: VERDICT_STYLES[verdict] for word, verdict in _MEANING.items()}
_STYLES |= {verdict.value: style for verdict, style in VERDICT_STYLES.items()}


def matrix_lines(columns: Sequence[Column], width: int | None, colour: bool) -> Iterator[str]:
    """Both tables, then the parity of each connector. `width` is as for `draw_table`."""
    named = headings(columns)
    heads = [f"{name} {column.contract}" for name, column in zip(named, columns, strict=True)]
    by_operation = ((name, [column.operation(name) for column in columns]) for name in operations(columns))
    yield from draw_table(_table("operation", heads, by_operation), width, colour)
    yield ""
    names = dict.fromkeys(name for column in columns for name in column.verdicts)
    by_requirement = ((name, [column.verdicts.get(name, "") for column in columns]) for name in names)
    yield from draw_table(_table("requirement", heads, by_requirement), width, colour)
    yield f"the page of a requirement: {explain_command('ID')}"
    yield ""
    yield from draw(
        (Paragraph(parity_line(column, name), 0, 4) for name, column in zip(named, columns, strict=True)),
        width or MAX_WIDTH,
        colour,
    )
    later = [Paragraph(f"{name}: {each.later}", 0, 4) for name, each in zip(named, columns, strict=True) if each.later]
    yield from draw(later, width or MAX_WIDTH, colour)
    if differing := differences(columns):
        yield from ("", "breached only in the played or only in the real harness:")
        yield from draw((Paragraph(each.words, 2, 4) for each in differing), width or MAX_WIDTH, colour)


def _table(corner: str, heads: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=STRONG)
    for head in (corner, *heads):
        table.add_column(Text(head), overflow="fold")
    for name, cells in rows:
        table.add_row(Text(name), *(Text.assemble((word, _STYLES.get(word, ""))) for word in cells))
    return table
