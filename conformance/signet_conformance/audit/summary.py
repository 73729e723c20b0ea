"""The results of an audit by connector, release and requirement, with the first recording that shows each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, Literal

from msgspec import Struct

from signet_conformance.audit import rows
from signet_conformance.contract import catalogue_place
from signet_conformance.engine import exit_status
from signet_conformance.errors import UsageError
from signet_conformance.finding import COVERABLE, FOLDING_ORDER, Verdict
from signet_conformance.outcome.known_failures import KnownFailures, KnownInRun, Verdicts, failing_text

Worst = Literal["ERROR", "FAIL", "WARN"]
_BREACHES: Mapping[Verdict, Worst] = {Verdict.ERROR: "ERROR", Verdict.FAIL: "FAIL", Verdict.WARN: "WARN"}


class Cell(Struct, frozen=True, kw_only=True):
    """A requirement that some recordings of a connector's release breach."""

    connector: rows.Name
    release: rows.Name | None
    """The connector's release; null if the recordings do not say."""
    requirement: rows.RequirementId
    verdict: Worst
    """The worst verdict of these recordings."""
    recordings: rows.Count
    """How many of these recordings breach it."""
    passing: rows.Count
    """How many recordings of the release pass it."""
    first_seen: rows.Instant | None
    """When the first breaching recording began."""
    new_since: rows.Name | None
    """The release or day since which it is breached: earlier recordings of the connector pass it, and no earlier one
    breaches it. null: it was always breached, or the time is not known.
    """
    evidence: rows.Id
    """The first recording that breaches it."""
    exchange: int | None
    """The number of the breaching exchange in that recording."""
    between: bool
    """Whether only several recordings show it."""
    show: str
    """The command that shows the evidence, run beside the audit's folder."""


class Summary(Struct, frozen=True, kw_only=True):
    """The audit in numbers, its breaches as cells, and the recordings that could not be read."""

    schema_file: ClassVar[str] = "audit/signet-audit-summary-1.schema.json"

    format: Literal["signet-audit-summary/1"]
    recordings: rows.Count
    """All recordings that the manifest names."""
    judged: rows.Count
    broken_off: rows.Count
    unreadable: rows.Count
    earlier: rows.Count
    """Recordings from before the requested day, which were not judged."""
    tested: rows.Count
    """Judged recordings with a lifecycle hook or a memory operation."""
    exchanges: rows.Count
    sessions: rows.Count
    """The number of rows of sessions."""
    joined: rows.Count
    """Sessions with parts in several recordings."""
    connectors: dict[str, rows.Count]
    """Connector to the number of its judged recordings."""
    verdicts: dict[str, dict[rows.RequirementId, str]]
    """Connector to the worst verdict of each requirement."""
    cells: tuple[Cell, ...]
    unread: tuple[tuple[rows.Id, str], ...]
    """Recordings that could not be read, each with the reason; a thousand at most."""


def show_command(recording: str, exchange: int | None) -> str:
    """The command that shows a recording of an audit."""
    return f"signet-conformance audit show {recording}" + ("" if exchange is None else f" --exchange {exchange}")


_MOST_UNREAD = 1000


class _Tally:
    """The counts of one requirement over the recordings of one release of a connector."""

    __slots__ = ("_verdicts", "breaching", "evidence", "first", "first_pass", "passing", "rank")

    def __init__(self) -> None:
        self._verdicts: set[Verdict] = set()
        self.breaching = self.passing = 0
        self.first: str | None = None
        self.first_pass: str | None = None
        self.rank: tuple[int, bool, str] | None = None
        """Sort key of the evidence: the worst verdict, then the first recording."""
        self.evidence: tuple[str, rows.BreachRow | None] = ("", None)

    @property
    def verdict(self) -> Verdict:
        """The verdict over all of them."""
        return next(verdict for verdict in FOLDING_ORDER if verdict in self._verdicts)

    def add(self, verdict: Verdict, row: rows.RecordingRow) -> bool:
        """Add the verdict of a recording. Return True if that recording is now the evidence."""
        self._verdicts.add(verdict)
        if verdict is Verdict.PASS:
            self.passing += 1
            self.first_pass = _earlier(self.first_pass, row.created)
        if verdict not in _BREACHES:
            return False
        self.breaching += 1
        self.first = _earlier(self.first, row.created)
        rank = (FOLDING_ORDER.index(verdict), row.created is None, row.created or "")
        if self.rank is not None and self.rank <= rank:
            return False
        self.rank, self.evidence = rank, (row.recording, None)
        return True


def _earlier(known: str | None, created: str | None) -> str | None:
    return min(filter(None, (known, created)), default=None)


class AuditTotals:
    """Takes the rows of an audit, those of one recording after the other, and adds them up."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(("judged", "broken-off", "unreadable"), 0)
        self._tested = self._exchanges = 0
        self.sessions = 0
        """Count rows of sessions."""
        self._unread: list[tuple[str, str]] = []
        self._connectors: dict[str, int] = {}
        self._by_key: dict[tuple[str, str | None, str], _Tally] = {}
        self._open: dict[str, _Tally] = {}
        """The requirements for which the current recording is the evidence, and whose breach rows are still to come."""

    @property
    def wants_breaches(self) -> bool:
        """Whether the current recording is evidence, so that its breach rows are needed."""
        return bool(self._open)

    def add(self, row: rows.RecordingRow | rows.BreachRow) -> None:
        """Take a row."""
        if isinstance(row, rows.RecordingRow):
            self._recording(row)
        elif (tally := self._open.pop(row.requirement, None)) is not None:
            tally.evidence = (row.recording, row)

    def _recording(self, row: rows.RecordingRow) -> None:
        self._open = {}
        self._counts[row.outcome] += 1
        self._exchanges += row.exchanges
        if row.outcome == "unreadable" and len(self._unread) < _MOST_UNREAD:
            self._unread.append((row.recording, str(row.why)))
        if row.outcome != "judged":
            return
        self._tested += row.tested
        connector = str(row.connector)
        self._connectors[connector] = self._connectors.get(connector, 0) + 1
        for name, verdict in rows.VERDICT_LISTS.items():
            for requirement in getattr(row, name):
                tally = self._by_key.setdefault((connector, row.connector_release, requirement), _Tally())
                if tally.add(verdict, row):
                    self._open[requirement] = tally

    def summary(self, *, earlier: int, joined: int) -> Summary:
        """Return the summary of the rows."""
        counts = self._counts
        return Summary(
            format="signet-audit-summary/1",
            recordings=sum(counts.values()) + earlier,
            judged=counts["judged"],
            broken_off=counts["broken-off"],
            unreadable=counts["unreadable"],
            earlier=earlier,
            tested=self._tested,
            exchanges=self._exchanges,
            sessions=self.sessions,
            joined=joined,
            connectors=dict(sorted(self._connectors.items())),
            verdicts=self._verdicts(),
            cells=tuple(self._cells()),
            unread=tuple(self._unread),
        )

    def _verdicts(self) -> dict[str, dict[str, str]]:
        verdicts: dict[str, dict[str, Verdict]] = {}
        for (connector, _, requirement), tally in self._by_key.items():
            its = verdicts.setdefault(connector, {})
            its[requirement] = min(its.get(requirement, tally.verdict), tally.verdict, key=FOLDING_ORDER.index)
        return {
            connector: {name: its[name].value for name in sorted(its, key=lambda name: (catalogue_place(name), name))}
            for connector, its in sorted(verdicts.items())
        }

    def _cells(self) -> list[Cell]:
        cells = [self._cell(*key, tally) for key, tally in self._by_key.items() if tally.breaching]
        return sorted(
            cells,
            key=lambda cell: (
                FOLDING_ORDER.index(Verdict(cell.verdict)),
                cell.connector,
                catalogue_place(cell.requirement),
                cell.requirement,
                cell.release or "",
            ),
        )

    def _cell(self, connector: str, release: str | None, requirement: str, tally: _Tally) -> Cell:
        recording, row = tally.evidence
        exchange = row.exchanges[0] if row is not None and row.exchanges else None
        return Cell(
            connector=connector,
            release=release,
            requirement=requirement,
            verdict=_BREACHES[tally.verdict],
            recordings=tally.breaching,
            passing=tally.passing,
            first_seen=tally.first,
            new_since=self._new_since(connector, requirement),
            evidence=recording,
            exchange=exchange,
            between=row is not None and bool(row.between),
            show=show_command(recording, exchange),
        )

    def _new_since(self, connector: str, requirement: str) -> str | None:
        """What brought a breach of a connector: its release where others came before, else the day."""
        releases = {key[1]: each for key, each in self._by_key.items() if key[0] == connector and key[2] == requirement}
        breached = [(each.first, release) for release, each in releases.items() if each.first is not None]
        passed = [(each.first_pass, release) for release, each in releases.items() if each.first_pass is not None]
        if not breached or not passed or min(passed, key=_time)[0] >= min(breached, key=_time)[0]:
            return None
        first, release = min(breached, key=_time)
        return release if release is not None and min(passed, key=_time)[1] != release else first[:10]


def _time(each: tuple[str, str | None]) -> tuple[str, str]:
    return each[0], each[1] or ""


FailOn = Literal["breach", "new", "never"]
FAIL_ON: tuple[FailOn, ...] = ("breach", "new", "never")


class AuditEnding(Struct, frozen=True, dict=True):
    """A summary compared with files of known failures. `fail_on` says which breaches make the exit status 1.

    `breach`: as with `check`, each FAIL that no entry accepts, and an entry that is stale or has expired. `new`: a FAIL
    that no entry is about. `never`: none.
    """

    summary: Summary
    known: KnownFailures
    fail_on: FailOn

    @cached_property
    def verdicts(self) -> Verdicts:
        """The worst verdict of each requirement, by connector."""
        return {
            connector: {name: Verdict(verdict) for name, verdict in its.items()}
            for connector, its in self.summary.verdicts.items()
        }

    @cached_property
    def known_in_run(self) -> KnownInRun:
        """The known failures that apply to the verdicts."""
        return self.known.in_run(self.verdicts)

    def is_known(self, requirement: str, connector: str) -> bool:
        """Whether an entry lets a connector's breach of a requirement pass."""
        return (requirement, connector) in self.known_in_run.covered

    @cached_property
    def status(self) -> int:
        """2 if a recording could not be read, else 4, 3, 1 or 0 by the verdicts."""
        if self.summary.unreadable:
            return UsageError.exit_status
        expired = (
            {entry.requirement for _, entry in self.known_in_run.expired} if self.fail_on == "new" else frozenset[str]()
        )
        left = [
            Verdict.WARN if self.fail_on == "never" and verdict is Verdict.FAIL else verdict
            for connector, its in self.verdicts.items()
            for name, verdict in its.items()
            if not self.is_known(name, connector) and not (name in expired and verdict in COVERABLE)
        ]
        # What is known to fail was tested, even where nothing else was.
        known = [Verdict.PASS] if self.known_in_run.covered or expired else []
        status = exit_status([*left, *known], recorded=self.summary.tested > 0)
        return 1 if status == 0 and self.fail_on == "breach" and self.known_in_run.fails else status

    @property
    def because(self) -> str:
        """What fails the audit beside its verdicts, in words; empty where nothing does."""
        return failing_text(self.known_in_run) if self.fail_on == "breach" else ""
