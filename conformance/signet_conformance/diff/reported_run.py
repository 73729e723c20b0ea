"""A report as `compare` reads it: verdicts, breaches and gaps by scenario, and how a breach relates to them.

Requirement, kind, operation and scenario identify a breach; a list is compared by its elements. Wording, ids and
numbers of exchanges play no part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from signet_conformance.contract import catalogue
from signet_conformance.errors import KitError, UsageError, printable
from signet_conformance.finding import BREACHES, FOLDING_ORDER, Verdict
from signet_conformance.reports.report_document import Report, ReportFinding, ReportLacks, ReportTrace, ReportVerdict

WHOLE_RUN = ""
"""Stands for the scenario of breaches that only all traces together show."""
_DECIDED = (Verdict.PASS, *BREACHES)
_EXISTENCE = ("", "/request/path")
"""Pointers of findings that a call exists; others are about its content."""
_GENERATED = "generated sessions"


class BreachKey(NamedTuple):
    """Identifies a breach, in whatever scenario."""

    requirement: str
    kind: str
    operation: str
    element: str


class ReportedBreach(Struct, frozen=True):
    """One kind of breach in one scenario: its verdict, its first finding, and the recording that shows it.

    `finding` is None if a rule crashed; `file` is empty if only the run as a whole shows the breach.
    """

    key: BreachKey
    scenario: str
    verdict: Verdict
    finding: ReportFinding | None
    file: str
    message: str

    @property
    def requirement(self) -> str:
        """The breached requirement."""
        return self.key.requirement

    @property
    def pointer(self) -> str:
        """The place in the request; empty for the whole exchange, and without a finding."""
        return "" if self.finding is None else self.finding.pointer

    def is_at_the_calls_of(self, other: ReportedBreach) -> bool:
        """Whether both breaches are about how calls of one operation are made."""
        about_calls = self.pointer not in _EXISTENCE and other.pointer not in _EXISTENCE
        return about_calls and bool(self.key.operation) and self.key.operation == other.key.operation

    @property
    def what(self) -> str:
        """The breach in the words of its rule."""
        text = self.message if self.finding is None else self.finding.message
        return f"{text}: {self.key.element}" if self.key.element and self.key.element not in text else text


class ReportedRun:
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
        self.breaches = self._gather_breaches()

    @property
    def scenarios(self) -> set[str]:
        """The judged scenarios, and the run as a whole."""
        return {*self._traces, WHOLE_RUN}

    def is_generated(self, breach: ReportedBreach) -> bool:
        """Whether only a generated session shows it."""
        return breach.scenario == _GENERATED

    def draws_the_same(self, other: ReportedRun) -> bool:
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
        return not (about_a_call and breach.key.operation) or self.has_calls_of(breach)

    def has_calls_of(self, breach: ReportedBreach) -> bool:
        """Whether the scenario of a breach holds a call of its operation."""
        traces = self._traces.get(breach.scenario, ())
        return any(breach.key.operation in trace.operations for trace in traces)

    def was_undecided(self, breach: ReportedBreach) -> bool:
        """Whether a call that could show a breach left its requirement undecided, and looked different from the breach.

        A call that only an excuse kept from being the same breach looked the same.
        """
        findings = [
            finding
            for trace in self._traces.get(breach.scenario, ())
            if (row := trace.verdicts.get(breach.requirement)) is not None and row.verdict is Verdict.INCONCLUSIVE
            for finding in row.findings
            if finding.exchanges and breach.key.operation in ("", finding.operation)
        ]
        return self._by_kind and bool(findings) and all(finding.kind != breach.key.kind for finding in findings)

    def shows_elsewhere(self, breach: ReportedBreach) -> bool:
        """Whether any call shows the same kind of breach, in any operation and scenario."""
        return any(key[:2] == breach.key[:2] and key.element == breach.key.element for key, _ in self.breaches)

    def declarations(self, scenario: str) -> object:
        """The declarations of a scenario by which its calls are judged: agents, bounds, secrets."""
        return [
            (set(declared.agents), declared.bounds_s, declared.token, bool(declared.canaries))
            for trace in self._traces.get(scenario, ())[:1]
            for declared in [trace.declared]
        ]

    def hidden_by(self, breach: ReportedBreach, after: ReportedRun) -> str | None:
        """The requirement of a fixed breach that may have hidden this one, or was worse at the same place.

        If a request has several flaws, a rule reports the first.
        """
        for (key, scenario), other in self.breaches.items():
            if (key, scenario) in after.breaches or scenario != breach.scenario or not other.is_at_the_calls_of(breach):
                continue
            same = key.requirement == breach.requirement
            if same and other.pointer != breach.pointer and not is_worse(breach.verdict, other.verdict):
                return key.requirement
            if not same and other.pointer == breach.pointer and is_worse(other.verdict, breach.verdict):
                return key.requirement
        return None

    def rests_on(self, breach: ReportedBreach, before: ReportedRun) -> str | None:
        """The requirement by which a call of the breach was already wrong at the same place, and still is.

        Calls that are compared with each other differ as soon as one of them is fixed.
        """
        for requirement, finding in self._others_at(breach):
            places = ((key, breach.scenario) for key in self._kinds(requirement, finding))
            if any(before.had(place, self) for place in places):
                return requirement
        return None

    def _others_at(self, breach: ReportedBreach) -> Iterator[tuple[str, ReportFinding]]:
        """What other requirements, at least as badly broken, say of a breach's calls at its place in the request."""
        if breach.pointer in _EXISTENCE or breach.finding is None:
            return
        for trace in self._traces.get(breach.scenario, ()):
            for requirement, row in trace.verdicts.items():
                is_other = trace.file == breach.file and requirement != breach.requirement
                if not is_other or row.verdict not in BREACHES or is_worse(breach.verdict, row.verdict):
                    continue
                for finding in row.findings:
                    if finding.pointer == breach.pointer and {*finding.exchanges[:1]} & {*breach.finding.exchanges}:
                        yield requirement, finding

    def had(self, place: tuple[BreachKey, str], after: ReportedRun) -> bool:
        """Whether a breach of another report is in this one, or was hidden in it."""
        return place in self.breaches or self.hidden_by(after.breaches[place], after) is not None

    def has_fixed(self, scenario: str, after: ReportedRun) -> bool:
        """Whether a breach of a scenario, or of the run as a whole, is not in another report."""
        return any(
            key not in after.breaches and (breach.scenario in (scenario, WHOLE_RUN))
            for key, breach in self.breaches.items()
        )

    def lacks_beside(self, other: ReportedRun) -> Iterator[str]:
        """Lines that name what the other run judged and this run did not."""
        report, lacks = self._report, self._report.lacks
        if not self._names_what_was_not_judged and report.exit != other._report.exit:
            yield f"a part of it: the run ended with {report.exit}"
        if other._report.lacks is None and report.exit == other._report.exit:
            return  # the report of an earlier kit, which lacked as much
        if lacks is not None:
            others = other._scripted - self._scripted if lacks.others else set()
            lacking = sorted({*lacks.scenarios, *others} & other._scripted)
            yield from (f"scenario {printable(name, 60)}: it broke off or was not performed" for name in lacking)
        for name in sorted(self._scripted & other._scripted):
            known = other._gaps(name)
            yield from (
                f"{printable(f'{lack}, {route}', 200)}, in {printable(name, 60)}"
                for lack, route in sorted(self._gaps(name) - known)
            )
        if self.draws_the_same(other) and report.generated is not None and other._report.generated is not None:
            new = report.generated.gaps.keys() - other._report.generated.gaps.keys()
            yield from (f"{printable(lack, 60)}, in generated sessions" for lack in sorted(new))

    @property
    def _scripted(self) -> set[str]:
        return self._traces.keys() - self._generated

    def _gaps(self, scenario: str) -> set[tuple[str, str]]:
        return {(gap.lack, gap.route) for trace in self._traces[scenario] for gap in trace.gaps}

    @property
    def _names_what_was_not_judged(self) -> bool:
        """Whether the report names what was not judged, if its exit status says that something was not.

        Those of earlier kits do not.
        """
        report = self._report
        if report.exit not in (UsageError.exit_status, KitError.exit_status):
            return True
        crashed = any(row.verdict is Verdict.ERROR for row in report.together.values())
        gaps = any(trace.gaps for trace in report.traces) or bool(report.generated and report.generated.gaps)
        return crashed or gaps or (report.lacks is not None and report.lacks != ReportLacks())

    def _gather_breaches(self) -> Mapping[tuple[BreachKey, str], ReportedBreach]:
        breaches: dict[tuple[BreachKey, str], ReportedBreach] = {}
        for name, traces in self._traces.items():
            for trace in traces:
                for requirement, row in trace.verdicts.items():
                    self._add(breaches, requirement, row, row.findings, name, trace.file)
        scripted = {key for key, scenario in breaches if scenario not in self._generated}
        for key, scenario in [*breaches]:
            if scenario in self._generated:
                breach = breaches.pop((key, scenario))
                if key not in scripted:
                    breaches.setdefault((key, _GENERATED), replace(breach, scenario=_GENERATED))
        named = {key.requirement for key, _ in breaches}
        for requirement, row in self._report.together.items():
            # Only all traces together show a finding without a file.
            findings = [finding for finding in row.findings if finding.file is None]
            if findings or requirement not in named:
                self._add(breaches, requirement, row, findings, WHOLE_RUN, "")
        return breaches

    def _add(
        self,
        breaches: dict[tuple[BreachKey, str], ReportedBreach],
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
                before = breaches.get((key, scenario))
                if before is None or is_worse(row.verdict, before.verdict):
                    breaches[key, scenario] = ReportedBreach(
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


def unread_beside(old: Report, new: Report) -> Sequence[str]:
    """The unreadable recordings of a new run that the old run could read or did not have."""
    known = {_file(place) for place in (() if old.lacks is None else old.lacks.unread)}
    return [place for place in (() if new.lacks is None else new.lacks.unread) if _file(place) not in known]


def _file(place: str) -> str:
    """The file's name of FOLDER/FILE:LINE."""
    return PurePath(place).name.partition(":")[0]


def names_kinds(report: Report) -> bool:
    """Whether a report says the kind of each breach; one of an earlier kit is compared by requirement alone."""
    rows = [row for trace in report.traces for row in trace.verdicts.values() if row.verdict in BREACHES]
    return all(finding.kind is not None for row in [*rows, *report.together.values()] for finding in row.findings)


def _scenario(trace: ReportTrace, report: Report) -> str:
    if trace.scenario is not None:
        return trace.scenario
    # Reports of earlier kits name no scenario; a driven run has a recording for each.
    return PurePath(trace.file).stem if report.generated or report.played else "recordings"


def is_worse(now: Verdict, was: Verdict) -> bool:
    """Whether a verdict leads over another when both are folded."""
    return FOLDING_ORDER.index(now) < FOLDING_ORDER.index(was)
