"""Two reports of one connector compared: which breaches are new, mended, still there, and what changed in the requests.

A breach is a requirement with the kind of its findings, as rules name the kinds: the same in every run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from signet_conformance.contract import catalogue
from signet_conformance.diff.difference import Comparison, Difference
from signet_conformance.diff.recordings import compare
from signet_conformance.errors import SignetConformanceError
from signet_conformance.facts import Recording
from signet_conformance.finding import FOLDING_ORDER, Verdict
from signet_conformance.reports.evidence import BREACHES
from signet_conformance.reports.report_document import Report, ReportFinding, ReportTrace, ReportVerdict
from signet_conformance.trace import read

MAX_WHY = 3
"""Differences of requests that are told for one breach."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A kind of breach of one requirement in one report: the worst verdict, its first finding, and how many traces.

    `file` is the first recording that shows it, empty where only the run as a whole does.
    """

    requirement: str
    kind: str
    verdict: Verdict
    finding: ReportFinding | None
    file: str
    traces: int


@dataclass(frozen=True, slots=True)
class Step:
    """What became of one breach from the old report to the new one; None where a report does not have it."""

    old: Breach | None
    new: Breach | None
    why: Sequence[Difference] = field(default=())

    @property
    def now(self) -> Breach:
        """The breach, as the newer report that has it tells it."""
        breach = self.new or self.old
        assert breach is not None  # noqa: S101 - one of them is there
        return breach


@dataclass(frozen=True, slots=True)
class Compared:
    """Two reports compared. `unseen` are breaches that the new one neither shows nor rules out."""

    old: Report
    new: Report
    fresh: Sequence[Step]
    mended: Sequence[Step]
    still: Sequence[Step]
    unseen: Sequence[Step]

    @property
    def fails(self) -> bool:
        """Whether something is new that fails."""
        return any(step.now.verdict in (Verdict.ERROR, Verdict.FAIL) for step in self.fresh)


def compared(old: Report, new: Report, old_folder: Path | None = None, new_folder: Path | None = None) -> Compared:
    """What became of each breach. The folders are where the reports lie: recordings are looked for beside them."""
    before, after = breaches(old), breaches(new)
    requests = _Requests(old, new, old_folder, new_folder)
    verdicts = {name: row.verdict for name, row in new.together.items()}
    fresh: list[Step] = []
    mended: list[Step] = []
    still: list[Step] = []
    unseen: list[Step] = []
    for key in sorted({*after, *before}, key=lambda key: _place(after.get(key) or before[key])):
        was, now = before.get(key), after.get(key)
        if now is None:
            told = unseen if verdicts.get(key[0], Verdict.NOT_APPLICABLE) in _OPEN else mended
            told.append(Step(was, None, requests.changed(key[0], before[key])))
        elif was is None or _worse(now, was):
            fresh.append(Step(was, now, requests.changed(key[0], now)))
        else:
            still.append(Step(was, now))
    return Compared(old, new, fresh, mended, still, unseen)


_OPEN = (Verdict.INCONCLUSIVE, Verdict.NOT_APPLICABLE)


def breaches(report: Report) -> Mapping[tuple[str, str], Breach]:
    """The breaches of a report by requirement and kind; only those of the connector."""
    gathered: dict[tuple[str, str], Breach] = {}
    for trace in report.traces:
        for name, row in trace.verdicts.items():
            _add(gathered, name, row, trace.file)
    for name, row in report.together.items():
        # What only all traces together show is told with the run alone.
        if row.verdict in BREACHES and not any(key[0] == name for key in gathered):
            _add(gathered, name, row, "")
    return gathered


def _add(gathered: dict[tuple[str, str], Breach], name: str, row: ReportVerdict, file: str) -> None:
    if row.verdict not in BREACHES:
        return
    first: dict[str, ReportFinding] = {}
    for finding in row.findings:
        first.setdefault(finding.fold or finding.message, finding)
    kinds: Mapping[str, ReportFinding | None] = first or {row.message or "": None}
    for kind, example in kinds.items():
        before = gathered.get((name, kind))
        traces = 1 + (0 if before is None else before.traces)
        if before is None or FOLDING_ORDER.index(row.verdict) < FOLDING_ORDER.index(before.verdict):
            gathered[name, kind] = Breach(name, kind, row.verdict, example, file, traces)
        else:
            gathered[name, kind] = replace(before, traces=traces)


def _worse(now: Breach, was: Breach) -> bool:
    return BREACHES.index(now.verdict) < BREACHES.index(was.verdict)


def _place(breach: Breach) -> tuple[int, int, str, str]:
    """The worst first, then in the catalogue's order."""
    places = {name: number for number, name in enumerate(catalogue())}
    number = places.get(breach.requirement, len(places))
    return BREACHES.index(breach.verdict), number, breach.requirement, breach.kind


class _Requests:
    """What changed in the requests, by recordings of the same name in both runs; each pair is compared once."""

    def __init__(self, old: Report, new: Report, old_folder: Path | None, new_folder: Path | None) -> None:
        self._old = {_name(trace): (trace, old_folder) for trace in old.traces}
        self._new = {_name(trace): (trace, new_folder) for trace in new.traces}
        self._compared: dict[str, Comparison | None] = {}

    def changed(self, requirement: str, breach: Breach) -> Sequence[Difference]:
        """The first differences that the requirement reads, in the recording that shows the breach."""
        if not breach.file:
            return ()
        comparison = self._comparison(PurePath(breach.file).name)
        differences = () if comparison is None else comparison.differences
        return [difference for difference in differences if requirement in difference.requirements][:MAX_WHY]

    def _comparison(self, name: str) -> Comparison | None:
        if name not in self._compared:
            old, new = self._old.get(name), self._new.get(name)
            ours, theirs = _recording(old), _recording(new)
            self._compared[name] = None if ours is None or theirs is None else compare(ours, theirs)
        return self._compared[name]


def _name(trace: ReportTrace) -> str:
    return PurePath(trace.file).name


def _recording(place: tuple[ReportTrace, Path | None] | None) -> Recording | None:
    if place is None:
        return None
    trace, folder = place
    for path in (*([] if folder is None else [folder / _name(trace)]), Path(trace.file)):
        if path.is_file():
            try:
                return Recording(read(path))
            except SignetConformanceError:
                return None
    return None
