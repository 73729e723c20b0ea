"""Two reports of one connector compared by behaviour: new, fixed and remaining breaches.

Requirement, kind, operation and scenario identify a breach; a list is compared by its elements. Wording, ids and
numbers of exchanges play no part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path, PurePath
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from signet_conformance.contract import catalogue
from signet_conformance.diff.difference import Comparison, Difference
from signet_conformance.diff.recordings import compare
from signet_conformance.errors import KitError, NothingTestedError, SignetConformanceError
from signet_conformance.facts import Recording
from signet_conformance.finding import BREACHES, FOLDING_ORDER, Verdict
from signet_conformance.reports.report_document import Report, ReportFinding, ReportTrace, ReportVerdict
from signet_conformance.trace import read

MAX_WHY = 3
"""Differences of requests that are shown for one breach."""
WHOLE_RUN = ""
"""Stands for the scenario of what only all traces together show."""
_DECIDED = (Verdict.PASS, *BREACHES)
_EXISTENCE = ("", "/request/path")
"""Pointers of findings that say that a call is there; others say how it is."""


class BreachKey(NamedTuple):
    """What identifies a breach, whichever scenario shows it."""

    requirement: str
    kind: str
    operation: str
    element: str


class ReportedBreach(Struct, frozen=True):
    """One kind of breach in one scenario: its verdict, its first finding, and the recording that shows it.

    `finding` is None where a rule crashed, `file` empty where only the run as a whole shows the breach.
    """

    key: BreachKey
    scenario: str
    verdict: Verdict
    finding: ReportFinding | None
    file: str
    message: str

    @property
    def requirement(self) -> str:
        """Whose breach it is."""
        return self.key.requirement

    @property
    def what(self) -> str:
        """The breach in the words of its rule."""
        text = self.message if self.finding is None else self.finding.message
        return f"{text}: {self.key.element}" if self.key.element and self.key.element not in text else text


class Became(StrEnum):
    """The groups into which the breaches of both reports fall."""

    FRESH = "new"
    FIRST = "judged for the first time"
    GENERATED = "in a generated session only"
    MENDED = "mended"
    UNSEEN = "not tested any more"
    STILL = "still there"


class Change(Struct, frozen=True):
    """One kind of breach, with the scenarios in which the same became of it.

    `before` is the verdict in the old report where the new one is worse, `reason` says why the breach is not new.
    """

    became: Became
    breaches: Sequence[ReportedBreach]
    before: Verdict | None = None
    reason: str = ""
    why: Sequence[Difference] = ()

    @property
    def now(self) -> ReportedBreach:
        """The breach, as the newer report that has it shows it first."""
        return self.breaches[0]

    @property
    def scenarios(self) -> Sequence[str]:
        """Where it is so; empty for the run as a whole."""
        return [breach.scenario for breach in self.breaches if breach.scenario != WHOLE_RUN]


class Compared(Struct, frozen=True):
    """Two reports compared."""

    old: Report
    new: Report
    changes: Sequence[Change]

    def of(self, became: Became) -> Sequence[Change]:
        """The breaches of which this became, the worst first."""
        return [change for change in self.changes if change.became is became]

    @property
    def unjudged(self) -> int:
        """The exit status of a new run that tested nothing (3) or was not judged whole (4); 0 of any other."""
        return self.new.exit if self.new.exit in (NothingTestedError.exit_status, KitError.exit_status) else 0

    @property
    def fails(self) -> bool:
        """Whether something is new that fails."""
        return any(change.now.verdict in (Verdict.ERROR, Verdict.FAIL) for change in self.of(Became.FRESH))


def compared(old: Report, new: Report, old_folder: Path | None = None, new_folder: Path | None = None) -> Compared:
    """Compare two reports. The folders are where they lie: recordings are looked for beside them."""
    by_kind = _names_kinds(old) and _names_kinds(new)
    before, after = _Run(old, by_kind), _Run(new, by_kind)
    requests = _Requests(old, new, old_folder, new_folder)
    changes: dict[tuple[Became, BreachKey], Change] = {}
    for breach, change in _changes(before, after):
        known = changes.get((change.became, breach.key))
        changes[change.became, breach.key] = change if known is None else _joined(known, change)
    told = [
        replace(change, why=requests.changed(change.now))
        if change.became in (Became.FRESH, Became.MENDED, Became.UNSEEN)
        else change
        for change in changes.values()
    ]
    return Compared(old, new, sorted(told, key=lambda change: _place(change.now)))


def _joined(known: Change, other: Change) -> Change:
    """Merge the same change of two scenarios; the worst verdict comes first."""
    worse = BREACHES.index(other.now.verdict) < BREACHES.index(known.now.verdict)
    first, second = (other, known) if worse else (known, other)
    return replace(first, breaches=[*first.breaches, *second.breaches])


def _changes(before: _Run, after: _Run) -> Iterator[tuple[ReportedBreach, Change]]:
    for key in sorted({*before.breaches, *after.breaches}):
        was, now = before.breaches.get(key), after.breaches.get(key)
        if now is None:
            assert was is not None  # noqa: S101 - one of them is there
            yield was, Change(_fate(was, before, after), [was])
        elif was is not None and not _worse(now.verdict, was.verdict):
            yield now, Change(Became.STILL, [now])
        else:
            became, reason = _origin(now, before, after)
            yield now, Change(became, [now], None if was is None else was.verdict, reason)


def _fate(breach: ReportedBreach, before: _Run, after: _Run) -> Became:
    """Classify a breach that only the old report shows."""
    if before.is_generated(breach):
        same = before.draws_the_same(after) and after.verdicts.get(breach.requirement) is Verdict.PASS
        return Became.MENDED if same else Became.GENERATED
    return Became.MENDED if after.judges(breach) else Became.UNSEEN


def _origin(breach: ReportedBreach, before: _Run, after: _Run) -> tuple[Became, str]:
    """Classify a breach that only the new report shows, or shows as worse; with the reason why it is not new."""
    if after.is_generated(breach):
        if before.draws_the_same(after) and before.verdicts.get(breach.requirement) is Verdict.PASS:
            return Became.FRESH, ""
        why = "not decided before" if before.draws_the_same(after) else "the other run drew other sessions"
        return Became.GENERATED, why
    shown = before.verdict(breach.requirement, breach.scenario)
    if before.judges(breach):
        if shown is not None and _worse(shown, breach.verdict):
            # Of a requirement in one trace a report lists only what led to its verdict.
            return Became.FIRST, f"hidden by {shown.value} before"
        return Became.FRESH, ""
    if breach.scenario not in before.scenarios:
        return Became.FIRST, "its scenario was not judged before"
    if shown is Verdict.INCONCLUSIVE:
        return Became.FIRST, "undecided before"
    if before.calls(breach) and not before.mended(breach.scenario, after):
        # The operation was called before and nothing was wrong with it: no mended breach can have hidden this one.
        return Became.FRESH, ""
    return Became.FIRST, "nothing was subject to it before"


class _Run:
    """One report, by scenario. Recordings without a scenario count as one; so do the generated sessions."""

    def __init__(self, report: Report, by_kind: bool) -> None:
        self._report = report
        self._by_kind = by_kind
        self._traces: dict[str, list[ReportTrace]] = {}
        self._generated: set[str] = set()
        for trace in report.traces:
            name = _scenario(trace, report)
            if name in catalogue():
                # The kit names the recording that confirms a generated breach after its requirement.
                self._generated.add(name)
            self._traces.setdefault(name, []).append(trace)
        self.verdicts = {name: row.verdict for name, row in report.together.items()}
        self.breaches = self._gathered()

    @property
    def scenarios(self) -> set[str]:
        """Those that were judged, and the run as a whole."""
        return {*self._traces, WHOLE_RUN}

    def is_generated(self, breach: ReportedBreach) -> bool:
        """Whether only a generated session shows it."""
        return breach.scenario == _GENERATED

    def draws_the_same(self, other: _Run) -> bool:
        """Whether both runs performed the same generated sessions."""
        return self._generated_sessions == other._generated_sessions and self._generated_sessions is not None

    @property
    def _generated_sessions(self) -> tuple[int, int, str] | None:
        generated = self._report.generated
        return None if generated is None else (generated.seed, generated.performed, self._report.kit)

    def verdict(self, requirement: str, scenario: str) -> Verdict | None:
        """The verdict over the traces of a scenario, or over the run; None where it was not judged there."""
        if scenario == WHOLE_RUN and scenario not in self._traces:
            return self.verdicts.get(requirement)
        rows = (trace.verdicts.get(requirement) for trace in self._traces.get(scenario, ()))
        return min((row.verdict for row in rows if row is not None), key=FOLDING_ORDER.index, default=None)

    def judges(self, breach: ReportedBreach) -> bool:
        """Whether something in the scenario of a breach could have shown it."""
        if breach.file == "":
            return self.verdicts.get(breach.requirement) in _DECIDED
        if self.verdict(breach.requirement, breach.scenario) not in _DECIDED:
            return False
        about_a_call = breach.finding is not None and breach.finding.pointer not in _EXISTENCE
        return not (about_a_call and breach.key.operation) or self.calls(breach)

    def calls(self, breach: ReportedBreach) -> bool:
        """Whether the scenario of a breach holds a call of its operation."""
        traces = self._traces.get(breach.scenario, ())
        return any(breach.key.operation in trace.operations for trace in traces)

    def mended(self, scenario: str, after: _Run) -> bool:
        """Whether a breach of a scenario, or of the run as a whole, is not in another report."""
        return any(
            key not in after.breaches and (breach.scenario in (scenario, WHOLE_RUN))
            for key, breach in self.breaches.items()
        )

    def _gathered(self) -> Mapping[tuple[BreachKey, str], ReportedBreach]:
        gathered: dict[tuple[BreachKey, str], ReportedBreach] = {}
        for name, traces in self._traces.items():
            for trace in traces:
                for requirement, row in trace.verdicts.items():
                    self._add(gathered, requirement, row, row.findings, name, trace.file)
        scripted = {key for key, scenario in gathered if scenario not in self._generated}
        for key, scenario in [*gathered]:
            if scenario in self._generated:
                breach = gathered.pop((key, scenario))
                if key not in scripted:
                    gathered.setdefault((key, _GENERATED), replace(breach, scenario=_GENERATED))
        named = {key.requirement for key, _ in gathered}
        for requirement, row in self._report.together.items():
            # What only all traces together show is no finding of a recording.
            findings = [finding for finding in row.findings if finding.file is None]
            if findings or requirement not in named:
                self._add(gathered, requirement, row, findings, WHOLE_RUN, "")
        return gathered

    def _add(
        self,
        gathered: dict[tuple[BreachKey, str], ReportedBreach],
        requirement: str,
        row: ReportVerdict,
        findings: Iterable[ReportFinding],
        scenario: str,
        file: str,
    ) -> None:
        if row.verdict not in BREACHES:
            return
        shown: Sequence[ReportFinding | None] = [*findings] or [None]
        for finding in shown:
            for key in self._kinds(requirement, finding):
                before = gathered.get((key, scenario))
                if before is None or _worse(row.verdict, before.verdict):
                    gathered[key, scenario] = ReportedBreach(
                        key, scenario, row.verdict, finding, file, row.message or ""
                    )

    def _kinds(self, requirement: str, finding: ReportFinding | None) -> Iterator[BreachKey]:
        if not self._by_kind:
            yield BreachKey(requirement, "", "", "")
        elif finding is None:
            yield BreachKey(requirement, "crashed", "", "")
        else:
            for element in finding.elements or ("",):
                yield BreachKey(requirement, finding.kind or "", finding.operation or "", element)


_GENERATED = "generated sessions"


def _names_kinds(report: Report) -> bool:
    """Whether a report says the kind of each breach; one of an earlier kit is compared by requirement alone."""
    rows = [row for trace in report.traces for row in trace.verdicts.values() if row.verdict in BREACHES]
    return all(finding.kind is not None for row in [*rows, *report.together.values()] for finding in row.findings)


def _scenario(trace: ReportTrace, report: Report) -> str:
    if trace.scenario is not None:
        return trace.scenario
    # Reports of earlier kits name no scenario; a driven run has a recording for each.
    return PurePath(trace.file).stem if report.generated or report.played else "recordings"


def _worse(now: Verdict, was: Verdict) -> bool:
    return FOLDING_ORDER.index(now) < FOLDING_ORDER.index(was)


def _place(breach: ReportedBreach) -> tuple[int, int, BreachKey]:
    places = {name: number for number, name in enumerate(catalogue())}
    return BREACHES.index(breach.verdict), places.get(breach.requirement, len(places)), breach.key


class _Requests:
    """Compares the requests of recordings with the same name in both runs, each pair once."""

    def __init__(self, old: Report, new: Report, old_folder: Path | None, new_folder: Path | None) -> None:
        self._old = {_name(trace): (trace, old_folder) for trace in old.traces}
        self._new = {_name(trace): (trace, new_folder) for trace in new.traces}
        self._compared: dict[str, Comparison | None] = {}

    def changed(self, breach: ReportedBreach) -> Sequence[Difference]:
        """The first differences that the requirement reads, in the recording that shows the breach."""
        if not breach.file:
            return ()
        comparison = self._comparison(PurePath(breach.file).name)
        differences = () if comparison is None else comparison.differences
        return [difference for difference in differences if breach.requirement in difference.requirements][:MAX_WHY]

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
