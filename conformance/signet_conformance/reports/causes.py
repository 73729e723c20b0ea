"""The breaches of a run, by cause, for every report and every terminal.

A problem is one thing that is wrong at one place: a member that is absent, whichever calls lack it, or one kind of
breach. A value that two requirements refuse at the same place of the same call is one problem too. A cause is what one
change fixes: the problems of one requirement, with the other requirements that they breach.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property

from msgspec import Struct, field

from signet_conformance.contract import catalogue
from signet_conformance.engine import Judged
from signet_conformance.errors import printable
from signet_conformance.finding import BREACHES, Finding, Judgement, Verdict
from signet_conformance.outcome.conclusion import Conclusion
from signet_conformance.reports.ending import Ending
from signet_conformance.reports.evidence import Evidence, evidence, known_requirement
from signet_conformance.reports.values import is_absent
from signet_conformance.trace.marks import FaultMark, ScenarioMark, marks_of


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


Key = tuple[str, ...]
"""What tells a problem from others, the same in every trace and every run."""
Size = tuple[bool, int, int]
"""Of a trace that shows a problem: whether a fault was on in it, its exchanges, its marks."""

_INDEX = re.compile(r"/\d+(?=/|$)")
_BITS = 32
"""A session of a trace is kept as one number: that of the trace, shifted, and that of the session in it."""


class Share(Struct):
    """What one requirement has to say of a problem.

    `times` counts its findings, `traces` holds the numbers of the traces with them, `known` of those where the failure
    is known, for `reason`. The example is that of the plainest trace, which lies at `path`, empty where only the run as
    a whole shows it: nothing disturbed it, and it is the smallest. `size` is what traces are compared by.
    """

    requirement: str
    verdict: Verdict
    level: str
    example: Evidence
    path: str
    size: Size
    times: int = 0
    traces: set[int] = field(default_factory=set)
    known: set[int] = field(default_factory=set)
    reason: str = ""

    @property
    def file(self) -> str:
        """The path as it may be shown."""
        return printable(self.path, 400)

    @property
    def rank(self) -> tuple[int, int, int, Size]:
        """The order in which shares are shown: the worst, then the most widespread, then the plainest example."""
        return BREACHES.index(self.verdict), -len(self.traces), -self.times, self.size

    @property
    def is_known(self) -> bool:
        """Whether it is known wherever it shows."""
        return bool(self.reason) and self.known == self.traces


class Problem(Struct):
    """One thing that is wrong, over all traces: its share by requirement, and the calls with it by operation.

    `sessions` are numbers of sessions over the run, `traces` of traces.
    """

    key: Key
    shares: dict[str, Share] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    sessions: set[int] = field(default_factory=set)
    traces: set[int] = field(default_factory=set)

    def merge(self, other: Problem, *, other_calls: bool = True) -> None:
        """Take what turned out to be the same problem, its calls too unless they are among ours."""
        self.shares.update(other.shares)
        if other_calls:
            self.calls.update(other.calls)
        self.sessions |= other.sessions
        self.traces |= other.traces


class Problems:
    """The problems of one side, by key; keys that turned out to mean the same problem lead to one of them."""

    def __init__(self) -> None:
        self._by_key: dict[Key, Problem] = {}
        self._same: dict[Key, Key] = {}
        self._refused_for: dict[Key, set[Key]] = {}

    def kept(self, left_out: set[str]) -> Sequence[Problem]:
        """The problems without the shares of some requirements; a refusal is part of what was refused."""
        for key, reasons in self._refused_for.items():
            whole = [self._by_key[root] for root in {*map(self._root, reasons)} - {self._root(key)}]
            # What shows at more calls than were refused is less likely to be why.
            if whole:
                reason = min(whole, key=lambda problem: (problem.calls.total(), problem.key))
                self._unite(reason.key, key, other_calls=False)
        self._refused_for.clear()
        for problem in self._by_key.values():
            problem.shares = {name: share for name, share in problem.shares.items() if name not in left_out}
        return [problem for problem in self._by_key.values() if problem.shares]

    def add(
        self, judged: Judged, judgements: Mapping[str, Judgement], known: Mapping[str, str], number: int | None
    ) -> None:
        """Take the breaches of one trace, the `number`th; None stands for the run as a whole."""
        broken = [judgement for judgement in judgements.values() if judgement.verdict in BREACHES]
        if not broken:
            return
        by_problem: dict[Key, dict[str, list[Finding]]] = {}
        for judgement in broken:
            for key, findings in _keyed(judged, judgement).items():
                by_problem.setdefault(key, {})[judgement.requirement] = findings
        for key, other in _refused_together(by_problem):
            self._unite(key, other)
        for key, reasons in _refusals(judged, by_problem):
            self._refused_for[key] = self._refused_for.get(key, reasons) & reasons
        of_trace: dict[Key, dict[str, list[Finding]]] = {}
        for key, by_requirement in by_problem.items():
            mine = of_trace.setdefault(self._root(key), {})
            for name, findings in by_requirement.items():
                mine.setdefault(name, []).extend(findings)
        sessions = _sessions(judged)
        for key, by_requirement in of_trace.items():
            problem = self._by_key.setdefault(key, Problem(key))
            if number is not None:
                problem.traces.add(number)
                _count_calls(problem, judged, by_requirement.values(), number, sessions)
            for name, findings in by_requirement.items():
                _add_share(problem, judged, judgements[name], findings, known.get(name, ""), number)

    def _root(self, key: Key) -> Key:
        while key in self._same:
            key = self._same[key]
        return key

    def _unite(self, key: Key, other: Key, *, other_calls: bool = True) -> None:
        kept, merged = self._root(key), self._root(other)
        if kept != merged:
            self._same[merged] = kept
            if (problem := self._by_key.pop(merged, None)) is not None:
                self._by_key.setdefault(kept, Problem(kept)).merge(problem, other_calls=other_calls)


def _keyed(judged: Judged, judgement: Judgement) -> dict[Key, list[Finding]]:
    """The findings of a judgement by the problem that they tell of."""
    if not judgement.findings:
        return {("told", judgement.requirement, ""): []}
    by_key: dict[Key, list[Finding]] = {}
    of_group: dict[str, Key] = {}
    for finding in judgement.findings:
        key = _key(judged, judgement.requirement, finding)
        # Of very many findings the engine keeps only the fold, which the first of its kind explained.
        if not finding.pointer:
            key = of_group.get(finding.group, key)
        of_group.setdefault(finding.group, key)
        by_key.setdefault(key, []).append(finding)
    return by_key


def _key(judged: Judged, requirement: str, finding: Finding) -> Key:
    call = judged.recording.by_seq.get(finding.exchanges[0]) if finding.exchanges else None
    if call is not None and finding.pointer.startswith("/request/body/") and is_absent(finding.pointer, call.exchange):
        return ("absent", _INDEX.sub("/*", finding.pointer))
    return ("told", requirement, finding.group)


def _refused_together(by_problem: Mapping[Key, Mapping[str, Sequence[Finding]]]) -> Iterator[tuple[Key, Key]]:
    """Pairs of problems that are one: the same told of one member, or one value refused where one other is expected."""
    first: dict[tuple[int, str, str], tuple[object, Key]] = {}
    told: dict[tuple[str, str], Key] = {}
    for key, by_requirement in by_problem.items():
        for findings in by_requirement.values():
            for finding in findings:
                if not finding.pointer or not finding.expected or not finding.exchanges:
                    continue
                if (alike := told.setdefault((finding.pointer, finding.message), key)) != key:
                    yield alike, key
                place = (finding.exchanges[0], finding.pointer, finding.expected)
                received, before = first.setdefault(place, (finding.received, key))
                if before != key and received == finding.received:
                    yield before, key


def _refusals(
    judged: Judged, by_problem: Mapping[Key, Mapping[str, Sequence[Finding]]]
) -> Iterator[tuple[Key, set[Key]]]:
    """Problems that are nothing but an answer's refusal, each with those of the request that show wherever it does."""
    in_request: dict[int, set[Key]] = {}
    refused: dict[Key, list[int]] = {}
    for key, by_requirement in by_problem.items():
        findings = [finding for findings in by_requirement.values() for finding in findings if finding.exchanges]
        for finding in findings:
            if finding.pointer.startswith("/request/"):
                in_request.setdefault(finding.exchanges[0], set()).add(key)
        if findings and all(_is_refusal(judged, finding) for finding in findings):
            refused[key] = [finding.exchanges[0] for finding in findings]
    for key, exchanges in refused.items():
        yield key, set.intersection(*(in_request.get(seq, set()) for seq in exchanges))


def _is_refusal(judged: Judged, finding: Finding) -> bool:
    call = judged.recording.by_seq.get(finding.exchanges[0])
    status = None if call is None else call.status
    return not finding.pointer and status is not None and 400 <= status < 500 and finding.received == status


def _count_calls(
    problem: Problem,
    judged: Judged,
    breaches: Iterable[Sequence[Finding]],
    number: int,
    sessions: Mapping[str, int],
) -> None:
    calls = judged.recording.by_seq
    for seq in {finding.exchanges[0] for findings in breaches for finding in findings if finding.exchanges}:
        call = calls.get(seq)
        if call is not None:
            problem.calls[call.operation or printable(call.path, 80)] += 1
            if call.key is not None:
                problem.sessions.add(number << _BITS | sessions[call.key])


def _sessions(judged: Judged) -> dict[str, int]:
    """A number for each session key of a trace."""
    keys = dict.fromkeys(call.key for call in judged.recording.calls if call.key is not None)
    return {key: number for number, key in enumerate(keys)}


def _size(judged: Judged) -> Size:
    disturbed = next(marks_of(judged.trace, FaultMark), None) is not None
    return disturbed, len(judged.trace.exchanges), len(judged.trace.marks)


def _add_share(
    problem: Problem,
    judged: Judged,
    judgement: Judgement,
    findings: Sequence[Finding],
    known: str,
    number: int | None,
) -> None:
    name, verdict, size = judgement.requirement, judgement.verdict, _size(judged)
    share = problem.shares.get(name)
    worse = share is not None and BREACHES.index(verdict) < BREACHES.index(share.verdict)
    if share is None or worse or (verdict is share.verdict and size < share.size):
        requirement = known_requirement(name)
        level = requirement.level_at(judged.daemon_version) if requirement is not None else ""
        shown = evidence(judged, findings) if findings else Evidence(printable(judgement.message, 400))
        path = "" if number is None else judged.trace.path or ""
        if share is None:
            share = problem.shares[name] = Share(name, verdict, level, shown, path, size)
        share.verdict, share.level, share.example, share.path, share.size = verdict, level, shown, path, size
    share.times += max(1, len(findings))
    if number is not None:
        share.traces.add(number)
    if known:
        share.reason = share.reason or printable(known, 300)
        if number is not None:
            share.known.add(number)
