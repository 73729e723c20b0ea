"""The breaches of a run, by cause, for every report and every terminal.

A cause is what one change fixes: the problems of one requirement with the other requirements that they breach, or the
problems of one mistake.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property

from msgspec import Struct
from msgspec.structs import replace

from signet_conformance.contract import catalogue
from signet_conformance.engine import Judged
from signet_conformance.finding import BREACHES, Verdict
from signet_conformance.outcome.conclusion import Conclusion
from signet_conformance.reports.ending import RunEnding
from signet_conformance.reports.evidence import Evidence
from signet_conformance.reports.problems import Problem, Problems
from signet_conformance.reports.shared_causes import COVERAGE, Seen, shared_causes
from signet_conformance.trace.marks import ScenarioMark, marks_of


class Cause(Struct, frozen=True, dict=True):
    """The breaches that one change fixes.

    `requirement` leads, and its breaches of the `problems` are shown in full. `of` counts the traces of the run;
    `scenarios` says that each of them is a scenario. `says` names the mistake where one breaks several requirements,
    each in its own way.
    """

    requirement: str
    problems: Sequence[Problem]
    of: int
    scenarios: bool
    says: str = ""

    @cached_property
    def breaches(self) -> Sequence[Evidence]:
        """The leading requirement's breaches: the worst first, of those the most widespread."""
        each = (problem.breaches.get(self.requirement) for problem in self.problems)
        mine = [breach for breach in each if breach is not None]
        return sorted(mine, key=lambda breach: breach.rank)

    @cached_property
    def breach_of(self) -> Mapping[str, Evidence]:
        """The breach of each requirement that it breaches, the worst where there are several."""
        every = [(name, breach) for problem in self.problems for name, breach in problem.breaches.items()]
        every.sort(key=lambda item: item[1].rank, reverse=True)
        return dict(every)

    @property
    def first(self) -> Evidence:
        """The breach that represents the cause."""
        return self.breaches[0]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the leading requirement; of a mistake that is named, the worst of all."""
        if not self.says:
            return self.first.verdict
        every = [breach for problem in self.problems for breach in problem.breaches.values()]
        return _worst([breach for breach in every if not breach.is_known] or every)

    @property
    def level(self) -> str:
        """The level of the leading requirement; empty for a mistake that is named, which breaks several."""
        return "" if self.says else self.first.level

    @cached_property
    def also(self) -> Sequence[Evidence]:
        """The other requirements that it breaches: the worst first, then in the catalogue's order."""
        others: dict[str, list[Evidence]] = {}
        for problem in self.problems:
            for name, breach in problem.breaches.items():
                if name != self.requirement:
                    others.setdefault(name, []).append(breach)
        return [
            replace(
                breaches[0],
                verdict=_worst(breaches),
                times=sum(breach.times for breach in breaches),
                traces=set().union(*(breach.traces for breach in breaches)),
                known=set().union(*(breach.known for breach in breaches)),
                reason=breaches[0].reason if all(breach.is_known for breach in breaches) else "",
            )
            for _, breaches in sorted(others.items(), key=lambda other: _rank(other[0], other[1]))
        ]

    @property
    def requirements(self) -> Sequence[str]:
        """Every requirement that it breaches, the leading one first."""
        return [self.requirement, *(other.requirement for other in self.also)]

    @property
    def is_known(self) -> bool:
        """Whether each failure of it is known."""
        return all(breach.is_known for problem in self.problems for breach in problem.breaches.values())

    @property
    def known_reason(self) -> str:
        """Why the failure may stand, where it is known."""
        return next((breach.reason for breach in self.breaches if breach.reason), "")

    @cached_property
    def traces(self) -> int:
        """How many traces show it; 0 where only the run as a whole does."""
        return len(set[int]().union(*(problem.traces for problem in self.problems)))

    @cached_property
    def sessions(self) -> int:
        """How many sessions show it."""
        return len(set[int]().union(*(problem.sessions for problem in self.problems)))

    @cached_property
    def calls(self) -> Counter[str]:
        """How many calls show it, by operation; those of no operation by their path."""
        return sum((problem.calls for problem in self.problems), Counter[str]())


class Causes:
    """Gathers the breaches of a run as its traces come, in little memory; those of daemon and harness stand apart."""

    def __init__(self) -> None:
        self._connector = Problems()
        self._daemon = Problems()
        self._harness = Problems()
        self._traces = 0
        self._scenarios = True
        self._called = Counter[str]()
        self._absent: Collection[str] = ()
        self._verdicts: Mapping[str, Verdict] = {}

    @classmethod
    def of(cls, conclusion: Conclusion) -> Causes:
        """The causes of a run whose traces are held whole."""
        causes = cls()
        for judged in conclusion.judged:
            causes.add(judged, conclusion.terms.known_in(judged))
        causes.end(RunEnding.of(conclusion))
        return causes

    def add(self, judged: Judged, known: Mapping[str, str]) -> None:
        """Take one trace; `known` names the requirements whose failure is known in it, each with why it may stand."""
        self._scenarios = self._scenarios and next(iter(marks_of(judged.trace, ScenarioMark)), None) is not None
        self._connector.add(judged, judged.judgements, known, self._traces)
        self._daemon.add(judged, judged.daemon, {}, self._traces)
        self._harness.add(judged, judged.harness, {}, self._traces)
        self._called.update({call.operation for call in judged.recording.calls if call.operation is not None})
        self._traces += 1

    def end(self, ending: RunEnding) -> None:
        """Add what only the run as a whole breaches, and leave out what its generated sessions changed."""
        whole = ending.run_level_breaches()
        if whole is not None:
            self._connector.add(whole, whole.judgements, ending.known, None)
            told = whole.judgements.get(COVERAGE)
            self._absent = [name for finding in told.findings for name in finding.elements] if told is not None else ()
        self._verdicts = ending.verdicts()

    def connector(self) -> Sequence[Cause]:
        """Causes at the connector: errors of the kit first, then FAIL, then WARN; in the catalogue's order."""
        left_out = {name for name, verdict in self._verdicts.items() if verdict not in BREACHES}
        return self._causes(self._connector, left_out, Seen(self._called, self._absent))

    def daemon(self) -> Sequence[Cause]:
        """Causes at the daemon, in the same order."""
        return self._causes(self._daemon, set())

    def harness(self) -> Sequence[Cause]:
        """Causes at the harness and its model, in the same order."""
        return self._causes(self._harness, set())

    def all(self) -> Sequence[Cause]:
        """The causes of every side: the connector's, the daemon's, the harness's."""
        return [*self.connector(), *self.daemon(), *self.harness()]

    def _causes(self, problems: Problems, left_out: set[str], seen: Seen | None = None) -> Sequence[Cause]:
        of_requirement: dict[str, list[Problem]] = {}
        breaches: dict[str, list[Evidence]] = {}
        kept = problems.without(left_out)
        for problem in kept:
            for name, breach in problem.breaches.items():
                breaches.setdefault(name, []).append(breach)
        shared = [] if seen is None else [*shared_causes(kept, seen)]
        told = {id(problem) for each in shared for problem in each.problems}
        for problem in kept:
            if id(problem) not in told:
                leading = min(problem.breaches, key=lambda name: _rank(name, breaches[name]))
                of_requirement.setdefault(leading, []).append(problem)
        causes = [
            *(Cause(each.leads, each.problems, self._traces, self._scenarios, each.says) for each in shared),
            *(Cause(name, led, self._traces, self._scenarios) for name, led in of_requirement.items()),
        ]
        return sorted(causes, key=_weight)


def _worst(breaches: Iterable[Evidence]) -> Verdict:
    return min((breach.verdict for breach in breaches), key=BREACHES.index)


def _rank(name: str, breaches: Sequence[Evidence]) -> tuple[int, bool, int]:
    """Sort key of a leading requirement: the worst verdict, then unknown failures, then the catalogue's order."""
    return (
        BREACHES.index(_worst(breaches)),
        all(breach.is_known for breach in breaches),
        _places().get(name, len(_places())),
    )


def _weight(cause: Cause) -> tuple[int, bool, bool, bool, int]:
    """Sort key of a cause: what hides other breaches comes first among those of one verdict."""
    place = _places().get(cause.requirement, len(_places()))
    return BREACHES.index(cause.verdict), cause.is_known, cause.requirement not in _LOADING, not cause.says, place


_LOADING = ("SIG-LOAD-001", "SIG-LOAD-002")
"""Where the host could not load the connector or takes none of its files, everything else may follow from that."""


@cache
def _places() -> Mapping[str, int]:
    return {name: number for number, name in enumerate(catalogue())}
