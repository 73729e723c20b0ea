"""What a run breaches, by cause: decided here and nowhere else, for every report and every terminal.

A cause is what is mended at once: the problems of one requirement, with the other requirements that they breach.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property

from msgspec import Struct

from signet_conformance.contract import catalogue
from signet_conformance.engine import Judged
from signet_conformance.finding import BREACHES, Verdict
from signet_conformance.outcome.conclusion import Conclusion
from signet_conformance.reports.ending import Ending
from signet_conformance.reports.problems import Problem, Problems, Share
from signet_conformance.trace.marks import ScenarioMark, marks_of


class Also(Struct, frozen=True):
    """Another requirement that a cause breaches: what it says is wrong, how often, and whether that is known."""

    requirement: str
    verdict: Verdict
    level: str
    what: str
    times: int
    is_known: bool


class Cause(Struct, frozen=True, dict=True):
    """What is mended at once. `requirement` leads, and its shares of the `problems` tell them.

    `of` counts the traces of the run; `scenarios` says that each of them is a scenario.
    """

    requirement: str
    problems: Sequence[Problem]
    of: int
    scenarios: bool

    @cached_property
    def shares(self) -> Sequence[Share]:
        """The leading requirement's shares: the worst first, of those the most widespread."""
        mine = [problem.shares[self.requirement] for problem in self.problems]
        return sorted(mine, key=lambda share: share.rank)

    @cached_property
    def share_of(self) -> Mapping[str, Share]:
        """The share of each requirement that it breaches, the worst where there are several."""
        every = [(name, share) for problem in self.problems for name, share in problem.shares.items()]
        every.sort(key=lambda item: item[1].rank, reverse=True)
        return dict(every)

    @property
    def first(self) -> Share:
        """The share whose example stands for the cause."""
        return self.shares[0]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the leading requirement."""
        return self.first.verdict

    @cached_property
    def also(self) -> Sequence[Also]:
        """The other requirements that it breaches: the worst first, then in the catalogue's order."""
        others: dict[str, list[Share]] = {}
        for problem in self.problems:
            for name, share in problem.shares.items():
                if name != self.requirement:
                    others.setdefault(name, []).append(share)
        return [
            Also(
                name,
                _worst(shares),
                shares[0].level,
                shares[0].example.what,
                sum(share.times for share in shares),
                all(share.is_known for share in shares),
            )
            for name, shares in sorted(others.items(), key=lambda other: _rank(other[0], other[1]))
        ]

    @property
    def requirements(self) -> Sequence[str]:
        """Every requirement that it breaches, the leading one first."""
        return [self.requirement, *(other.requirement for other in self.also)]

    @property
    def is_known(self) -> bool:
        """Whether each failure of it is known."""
        return all(share.is_known for problem in self.problems for share in problem.shares.values())

    @property
    def known_reason(self) -> str:
        """Why the failure may stand, where it is known."""
        return next((share.reason for share in self.shares if share.reason), "")

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
        self._verdicts: Mapping[str, Verdict] = {}

    @classmethod
    def of(cls, conclusion: Conclusion) -> Causes:
        """The causes of a run whose traces are held whole."""
        causes = cls()
        for judged in conclusion.judged:
            causes.add(judged, conclusion.terms.known_in(judged))
        causes.end(Ending.of(conclusion))
        return causes

    def add(self, judged: Judged, known: Mapping[str, str]) -> None:
        """Take one trace; `known` names the requirements whose failure is known in it, each with why it may stand."""
        self._scenarios = self._scenarios and next(iter(marks_of(judged.trace, ScenarioMark)), None) is not None
        self._connector.add(judged, judged.judgements, known, self._traces)
        self._daemon.add(judged, judged.daemon, {}, self._traces)
        self._harness.add(judged, judged.harness, {}, self._traces)
        self._traces += 1

    def end(self, ending: Ending) -> None:
        """Add what only the run as a whole breaches, and leave out what its generated sessions changed."""
        whole = ending.run_level_breaches()
        if whole is not None:
            self._connector.add(whole, whole.judgements, ending.known, None)
        self._verdicts = ending.verdicts()

    def connector(self) -> Sequence[Cause]:
        """What the connector breaches: errors of the kit first, then FAIL, then WARN; in the catalogue's order."""
        left_out = {name for name, verdict in self._verdicts.items() if verdict not in BREACHES}
        return self._causes(self._connector, left_out)

    def daemon(self) -> Sequence[Cause]:
        """What the daemon breaches, in the same order."""
        return self._causes(self._daemon, set())

    def harness(self) -> Sequence[Cause]:
        """What the harness breaches at its model, in the same order."""
        return self._causes(self._harness, set())

    def all(self) -> Sequence[Cause]:
        """The causes of every side: the connector's, the daemon's, the harness's."""
        return [*self.connector(), *self.daemon(), *self.harness()]

    def _causes(self, problems: Problems, left_out: set[str]) -> Sequence[Cause]:
        of_requirement: dict[str, list[Problem]] = {}
        shares: dict[str, list[Share]] = {}
        kept = problems.kept(left_out)
        for problem in kept:
            for name, share in problem.shares.items():
                shares.setdefault(name, []).append(share)
        for problem in kept:
            leading = min(problem.shares, key=lambda name: _rank(name, shares[name]))
            of_requirement.setdefault(leading, []).append(problem)
        ordered = sorted(of_requirement.items(), key=lambda item: _rank(item[0], shares[item[0]]))
        return [Cause(name, led, self._traces, self._scenarios) for name, led in ordered]


def _worst(shares: Iterable[Share]) -> Verdict:
    return min((share.verdict for share in shares), key=BREACHES.index)


def _rank(name: str, shares: Sequence[Share]) -> tuple[int, bool, int]:
    """The order in which requirements lead: what is worst, what is not known, what the catalogue has first."""
    return (
        BREACHES.index(_worst(shares)),
        all(share.is_known for share in shares),
        _places().get(name, len(_places())),
    )


@cache
def _places() -> Mapping[str, int]:
    return {name: number for number, name in enumerate(catalogue())}
