"""Two reports of one connector compared by behaviour: new, fixed and remaining breaches.

A commit that fixes a breach, or a part of one, adds none; nor does a breach that the old run could not show. A breach
is new if the old run judged the same place, or left it undecided while it looked different. A leaking secret is always
new, wherever it leaks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path, PurePath

from msgspec import Struct
from msgspec.structs import replace

from signet_conformance.contract import catalogue, catalogue_place
from signet_conformance.diff.difference import Comparison, Difference
from signet_conformance.diff.recordings import compare
from signet_conformance.diff.reported_run import (
    WHOLE_RUN,
    BreachKey,
    ReportedBreach,
    ReportedRun,
    is_worse,
    names_kinds,
    unread_beside,
)
from signet_conformance.errors import KitError, NothingTestedError, SignetConformanceError, UsageError
from signet_conformance.facts import Recording
from signet_conformance.finding import BREACHES, Verdict
from signet_conformance.outcome.reach import UnreachableParts
from signet_conformance.reports.report_document import Report, ReportTrace, ReportUnreached
from signet_conformance.trace import read

MAX_WHY = 3
"""Differences of requests that are shown for one breach."""


class BreachGroup(StrEnum):
    """The groups into which the breaches of both reports fall."""

    FRESH = "new"
    FIRST = "judged for the first time"
    GENERATED = "in a generated session only"
    FIXED = "fixed"
    UNSEEN = "not tested any more"
    STILL = "still there"


class Change(Struct, frozen=True):
    """One kind of breach, with the scenarios in which it changed in the same way.

    `before` is the verdict in the old report if the new one is worse, `reason` says why the breach is not new.
    """

    became: BreachGroup
    breaches: Sequence[ReportedBreach]
    before: Verdict | None = None
    reason: str = ""
    why: Sequence[Difference] = ()

    @property
    def now(self) -> ReportedBreach:
        """The breach, as the newest report that has it shows it first."""
        return self.breaches[0]

    @property
    def scenarios(self) -> Sequence[str]:
        """The scenarios of the change; empty for the run as a whole."""
        return [breach.scenario for breach in self.breaches if breach.scenario != WHOLE_RUN]


class ReportComparison(Struct, frozen=True):
    """Two reports compared."""

    old: Report
    new: Report
    changes: Sequence[Change]
    unread: Sequence[str] = ()
    """Recordings of the new run that could not be read, and were none of the old one's."""
    lacks: Sequence[str] = ()
    """Gaps of the new run that the old one did not have, in words."""

    def of(self, became: BreachGroup) -> Sequence[Change]:
        """The breaches of one group, the worst first."""
        return [change for change in self.changes if change.became is became]

    @property
    def later(self) -> Sequence[tuple[str, BreachGroup]]:
        """Each requirement of the next contract that one of the reports breaches, and how that changed."""
        if self.old.newer is None and self.new.newer is None:
            return []
        old, new = (() if each.newer is None else each.newer.breaches for each in (self.old, self.new))
        groups = {True: BreachGroup.STILL, False: BreachGroup.FRESH}
        gone = BreachGroup.UNSEEN if self.new.newer is None else BreachGroup.FIXED
        return [*((name, groups[name in old]) for name in new), *((name, gone) for name in old if name not in new)]

    @property
    def became_reachable(self) -> Sequence[str]:
        """The fields and tools that the model reaches through the new connector but not through the old one."""
        return _unreached(self.old, but_not=self.new)

    @property
    def became_unreachable(self) -> Sequence[str]:
        """The fields and tools that the model reaches through the old connector but not through the new one."""
        return _unreached(self.new, but_not=self.old)

    @property
    def unjudged(self) -> int:
        """The exit status for what the new run did not judge.

        2: recordings could not be read. 4: it lacks what the old run judged, or a rule of the kit crashed that did not
        then. 3: nothing was tested. 0: it judged at least what the old one did.
        """
        if self.unread:
            return UsageError.exit_status
        unproven = [*self.of(BreachGroup.FRESH), *self.of(BreachGroup.FIRST)]
        if self.lacks or any(change.now.verdict is Verdict.ERROR for change in unproven):
            return KitError.exit_status
        return self.new.exit if self.new.exit == NothingTestedError.exit_status else 0

    @property
    def fails(self) -> bool:
        """Whether something is new that fails."""
        return any(change.now.verdict is Verdict.FAIL for change in self.of(BreachGroup.FRESH))


def _unreached(report: Report, *, but_not: Report) -> Sequence[str]:
    if report.unreached is None or but_not.unreached is None:
        return []
    return sorted(_points(report.unreached) - _points(but_not.unreached))


def _points(unreached: ReportUnreached) -> frozenset[str]:
    later = None if unreached.later is None else UnreachableParts(unreached.later.tools, unreached.later.fields)
    return UnreachableParts(unreached.tools, unreached.fields, unreached.unfillable, later=later).points


def compare_reports(
    old: Report, new: Report, old_folder: Path | None = None, new_folder: Path | None = None
) -> ReportComparison:
    """Compare two reports; the folders are where the reports are, and hold their recordings."""
    by_kind = names_kinds(old) and names_kinds(new)
    before, after = ReportedRun(old, by_kind), ReportedRun(new, by_kind)
    requests = _Requests(old, new, old_folder, new_folder)
    changes: dict[tuple[BreachGroup, BreachKey], Change] = {}
    for breach, change in _changes(before, after):
        known = changes.get((change.became, breach.key))
        changes[change.became, breach.key] = change if known is None else _merge(known, change)
    explained = [
        replace(change, why=requests.changed(change.now))
        if change.became in (BreachGroup.FRESH, BreachGroup.FIXED, BreachGroup.UNSEEN)
        else change
        for change in changes.values()
    ]
    ordered = sorted(explained, key=lambda change: _place(change.now))
    return ReportComparison(old, new, ordered, unread_beside(old, new), [*after.lacks_beside(before)])


def _merge(known: Change, other: Change) -> Change:
    """Merge the same change of two scenarios; the worst verdict comes first."""
    worse = BREACHES.index(other.now.verdict) < BREACHES.index(known.now.verdict)
    first, second = (other, known) if worse else (known, other)
    return replace(first, breaches=[*first.breaches, *second.breaches])


def _changes(before: ReportedRun, after: ReportedRun) -> Iterator[tuple[ReportedBreach, Change]]:
    for key in sorted({*before.breaches, *after.breaches}):
        was, now = before.breaches.get(key), after.breaches.get(key)
        if now is None:
            assert was is not None  # noqa: S101 - one of them is there
            yield was, Change(_classify_old(was, before, after), [was])
        elif was is not None and not is_worse(now.verdict, was.verdict):
            yield now, Change(BreachGroup.STILL, [now])
        else:
            change = _classify_new(now, before, after)
            yield now, change if was is None else replace(change, before=was.verdict)


def _classify_old(breach: ReportedBreach, before: ReportedRun, after: ReportedRun) -> BreachGroup:
    """Classify a breach that only the old report shows."""
    if before.is_generated(breach):
        same = before.draws_the_same(after) and after.verdicts.get(breach.requirement) is Verdict.PASS
        return BreachGroup.FIXED if same else BreachGroup.GENERATED
    return BreachGroup.FIXED if after.judges(breach) else BreachGroup.UNSEEN


def _classify_new(breach: ReportedBreach, before: ReportedRun, after: ReportedRun) -> Change:
    """Classify a breach that only the new report shows, or shows as worse."""
    if after.is_generated(breach):
        if before.draws_the_same(after) and before.verdicts.get(breach.requirement) is Verdict.PASS:
            return Change(BreachGroup.FRESH, [breach])
        why = "not decided before" if before.draws_the_same(after) else "the other run drew other sessions"
        return Change(BreachGroup.GENERATED, [breach], reason=why)
    shown = before.verdict(breach.requirement, breach.scenario)
    if before.judges(breach):
        if shown is not None and is_worse(shown, breach.verdict):
            # For a requirement in one trace, a report lists only what led to its verdict.
            return Change(BreachGroup.FIRST, [breach], reason=f"hidden by {shown.value} before")
        return _unless_it_follows(breach, before, after)
    if breach.scenario not in before.scenarios:
        return Change(BreachGroup.FIRST, [breach], reason="its scenario was not judged before")
    if before.declarations(breach.scenario) != after.declarations(breach.scenario):
        return Change(BreachGroup.FIRST, [breach], reason="other agents, bounds or secrets were declared before")
    requirement = catalogue().get(breach.requirement)
    if requirement is not None and requirement.forbids_anywhere:
        # Even if the operation was not called before, or failed in another way, a secret that leaks now did not leak
        # then.
        known = before.shows_elsewhere(breach)
        return (
            Change(BreachGroup.FIRST, [breach], reason="other calls showed it before")
            if known
            else Change(BreachGroup.FRESH, [breach])
        )
    if shown is Verdict.INCONCLUSIVE:
        if before.was_undecided(breach):
            return Change(BreachGroup.FRESH, [breach], shown)
        return Change(BreachGroup.FIRST, [breach], reason="undecided before")
    if before.has_calls_of(breach) and not before.has_fixed(breach.scenario, after):
        # The operation was called before without a breach: no fixed breach can have hidden this one.
        return Change(BreachGroup.FRESH, [breach])
    return Change(BreachGroup.FIRST, [breach], reason="nothing was subject to it before")


def _unless_it_follows(breach: ReportedBreach, before: ReportedRun, after: ReportedRun) -> Change:
    """Classify a breach of something that the old report judged: new, unless it follows from a partial fix."""
    requirement = catalogue().get(breach.requirement)
    if requirement is None or not requirement.forbids_anywhere:
        if (hiding := before.hidden_by(breach, after)) is not None:
            return Change(BreachGroup.FIRST, [breach], reason=f"hidden by a breach of {hiding} before")
        if (cause := after.rests_on(breach, before)) is not None:
            return Change(
                BreachGroup.FIRST, [breach], reason=f"it follows from a breach of {cause} that was there before"
            )
    return Change(BreachGroup.FRESH, [breach])


def _place(breach: ReportedBreach) -> tuple[int, int, BreachKey]:
    return BREACHES.index(breach.verdict), catalogue_place(breach.requirement), breach.key


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
