"""The breaches of a run, by cause, for every report and every terminal; mistakes that break several requirements first.

A cause is what one change fixes: the problems of one requirement with the other requirements that they breach, or the
problems of one mistake.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TextIO

from msgspec import Struct
from msgspec.structs import replace

from signet_conformance.contract import catalogue_place
from signet_conformance.engine import JudgedTrace
from signet_conformance.facts import END, PROMPT, START
from signet_conformance.finding import BREACHES, Verdict
from signet_conformance.outcome.conclusion import Conclusion
from signet_conformance.reports.evidence import Evidence, known_requirement
from signet_conformance.reports.problems import Problem, Problems
from signet_conformance.rules.host_ids import SUB_AGENTS_KEY
from signet_conformance.trace.marks import ScenarioMark, marks_of

COVERAGE = "SIG-COV-001"
_NEVER_CALLED = ("breach", COVERAGE, "never called")
_MOST = 0.5
"""A hook fires twice by itself only if it does so in at least this share of the traces with its operation."""
_TRACES = 3
"""In fewer traces, a hook that always fires twice cannot be distinguished from one that did so once."""


class CalledOperations(Struct, frozen=True):
    """How many traces of a run call each operation.

    `absent` are the declared operations that a whole run never called.
    """

    called: Counter[str]
    absent: Collection[str]


def shared_causes(problems: Sequence[Problem], seen: CalledOperations) -> Iterator[Cause]:
    """Recognise mistakes in the problems of a run; each problem belongs to at most one of them."""
    left = list(problems)
    for recognise in _MISTAKES:
        found = recognise(left, seen)
        if found is not None and len({name for problem in found.problems for name in problem.breaches}) > 1:
            yield found
            explained = {id(problem) for problem in found.problems}
            left = [problem for problem in left if id(problem) not in explained]


_Kinds = Mapping[str, Collection[str] | None]
"""Requirement to the kinds of its breaches that a mistake causes; None for all of them."""
_WITHOUT_A_START: _Kinds = {
    "SIG-START-004": None,
    "SIG-PROMPT-006": None,
    "SIG-CKPT-001": {"outside its session"},
    "SIG-CMP-007": None,
    "SIG-END-006": {"second end"},
    "SIG-END-009": {"goes on"},
}
_WITHOUT_AN_END: _Kinds = {"SIG-END-005": None, "SIG-END-010": {"never ended"}, "SIG-START-005": None}
_SUB_AGENT: _Kinds = {"SIG-START-007": None, "SIG-AGENT-001": None, "SIG-AGENT-002": None, "SIG-AGENT-004": None}


def _recognise_missing(operation: str, says: str, leads: str, kinds: _Kinds) -> Callable[..., Cause | None]:
    def recognise(problems: Sequence[Problem], seen: CalledOperations) -> Cause | None:
        if seen.called[operation] or not any(leads in problem.breaches for problem in problems):
            return None
        only = set(seen.absent) == {operation}
        mine = [p for p in problems if _is_of(p, kinds) or (only and p.key == _NEVER_CALLED)]
        return Cause(leads, mine, says)

    return recognise


def _is_of(problem: Problem, kinds: _Kinds) -> bool:
    return all(name in kinds and _kind(problem) in (kinds[name] or {_kind(problem)}) for name in problem.breaches)


def _kind(problem: Problem) -> str:
    return problem.key[-1]


_TWICE: Mapping[str, tuple[str, str | None]] = {
    PROMPT: ("SIG-PROMPT-003", "twice"),
    END: ("SIG-END-006", "second end"),
    START: ("SIG-START-005", None),
    "compaction-complete": ("SIG-CMP-004", None),
}
"""Operation to the requirement that its hook breaches by firing twice, and to the kind of breach."""
_REPEATS = ("SIG-HTTP-010", "SIG-HTTP-011", "SIG-HTTP-015")


def _fires_twice(problems: Sequence[Problem], seen: CalledOperations) -> Cause | None:
    doubled: dict[str, Problem] = {}
    for operation, (name, kind) in _TWICE.items():
        for problem in problems:
            shows = name in problem.breaches and kind in (None, _kind(problem))
            traces = len(problem.traces)
            if shows and traces >= max(_TRACES, _MOST * seen.called[operation]):
                doubled.setdefault(operation, problem)
    if not doubled:
        return None
    first = max(doubled, key=lambda operation: len(doubled[operation].traces))
    leads, _ = _TWICE[first]
    own = {id(problem) for problem in doubled.values()}
    mine = [
        problem
        for problem in problems
        if id(problem) in own
        or leads in problem.breaches
        or (problem.breaches.keys() <= {*_REPEATS} and problem.calls.keys() <= doubled.keys())
        or (END in doubled and problem.key == ("breach", "SIG-END-009", "goes on"))
    ]
    hooks = "hook fires" if len(doubled) == 1 else "hooks fire"
    return Cause(leads, mine, f"its {hooks} twice: {', '.join(doubled)}")


def _sub_agent(problems: Sequence[Problem], _: CalledOperations) -> Cause | None:
    leads = "SIG-START-007"
    if not any(leads in problem.breaches for problem in problems):
        return None
    return Cause(leads, [p for p in problems if _is_of(p, _SUB_AGENT)], "a sub-agent is taken for an agent of its own")


_OF_ONE_KEY = frozenset(
    {
        *("SIG-SESS-001", "SIG-START-005", "SIG-PROMPT-006", "SIG-PROMPT-012", "SIG-PROMPT-013"),
        *("SIG-END-005", "SIG-END-006", "SIG-END-007", "SIG-END-009", "SIG-END-012", "SIG-END-013"),
    }
)
"""What else breaks if a sub-agent starts, speaks and ends under the key of the session that called it."""


def _session_of_a_sub_agent(problems: Sequence[Problem], _: CalledOperations) -> Cause | None:
    leads = "SIG-SESS-005"
    shared = [problem for problem in problems if leads in problem.breaches and _kind(problem) == SUB_AGENTS_KEY]
    if not shared:
        return None
    traces = set[int]().union(*(problem.traces for problem in shared))
    follows = [p for p in problems if p.breaches.keys() <= _OF_ONE_KEY and p.traces <= traces]
    says = "a sub-agent's start and end are sent for the session that called it"
    return Cause(leads, [*shared, *follows], says)


_SILENT = {"silent", "not again"}
_BREACHES_BY_SILENCE = (("breach", "SIG-PROMPT-011", "never submitted"), ("breach", "SIG-END-005", "no end"))
"""The breaches that follow if a connector has stopped calling, or its handler throws."""


def _falls_silent(problems: Sequence[Problem], _: CalledOperations) -> Cause | None:
    silent = [problem for problem in problems if _kind(problem) in _SILENT]
    leads = next((name for name in ("SIG-FAIL-001", "SIG-FAIL-003") if any(name in p.breaches for p in silent)), None)
    if leads is None:
        return None
    says = "after trouble with the daemon the connector falls silent"
    return Cause(leads, [*silent, *_following(silent, problems)], says)


def _loses_turns(problems: Sequence[Problem], _: CalledOperations) -> Cause | None:
    leads = "SIG-LOAD-001"
    lost = [problem for problem in problems if leads in problem.breaches and _kind(problem).startswith("lost ")]
    events = [_kind(problem).removeprefix("lost ") for problem in lost]
    if not events:
        return None
    # A fault that the kit injects does not explain a handler that also throws without one.
    lost += [problem for problem in problems if _kind(problem) in {f"blocked {event}" for event in events}]
    says = f"the user's turn is lost in {', '.join(dict.fromkeys(events))}"
    return Cause(leads, [*lost, *_following(lost, problems)], says)


def _following(reasons: Sequence[Problem], problems: Sequence[Problem]) -> Iterator[Problem]:
    """The breaches by silence that show only in the traces of these problems."""
    traces = set[int]().union(*(problem.traces for problem in reasons))
    yield from (problem for problem in problems if problem.key in _BREACHES_BY_SILENCE and problem.traces <= traces)


def _unencoded_id(problems: Sequence[Problem], _: CalledOperations) -> Cause | None:
    leads = "SIG-MEM-001"
    ids = [problem for problem in problems if leads in problem.breaches and _kind(problem) == "not encoded"]
    # Such a path has more segments than that of any route.
    paths = set[str]().union(*(problem.calls for problem in ids))
    follows = {"SIG-HTTP-003", COVERAGE}
    routes = [p for p in problems if p.breaches.keys() <= follows and p.calls and p.calls.keys() <= paths]
    return Cause(leads, [*ids, *routes], "a memory's id is put into the path unencoded") if ids else None


_MISTAKES = (
    _loses_turns,
    _recognise_missing(START, "the connector never starts a session", "SIG-START-004", _WITHOUT_A_START),
    _recognise_missing(END, "the connector never ends a session", "SIG-END-005", _WITHOUT_AN_END),
    _fires_twice,
    _sub_agent,
    _session_of_a_sub_agent,
    _falls_silent,
    _unencoded_id,
)


class Cause(Struct, frozen=True, dict=True):
    """The breaches that one change fixes.

    `requirement` leads: its breaches by the `problems` are shown in full. `of` counts the traces of the run;
    `scenarios` tells whether each of them is a scenario. `says` names the mistake if one breaks several requirements,
    each in its own way.
    """

    requirement: str
    problems: Sequence[Problem]
    says: str = ""
    of: int = 0
    scenarios: bool = False

    @cached_property
    def breaches(self) -> Sequence[Evidence]:
        """The leading requirement's breaches: the worst first, then the most widespread."""
        each = (problem.breaches.get(self.requirement) for problem in self.problems)
        mine = [breach for breach in each if breach is not None]
        return sorted(mine, key=lambda breach: breach.rank)

    @cached_property
    def breach_of(self) -> Mapping[str, Evidence]:
        """Each requirement that the cause breaches, with its worst breach."""
        every = [(name, breach) for problem in self.problems for name, breach in problem.breaches.items()]
        every.sort(key=lambda item: item[1].rank, reverse=True)
        return dict(every)

    @property
    def first(self) -> Evidence:
        """The breach that represents the cause."""
        return self.breaches[0]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the leading requirement; for a named mistake, the worst of all."""
        if not self.says:
            return self.first.verdict
        every = [breach for problem in self.problems for breach in problem.breaches.values()]
        return _worst([breach for breach in every if not breach.is_known] or every)

    @property
    def sentence(self) -> str:
        """The named mistake, or the sentence of the requirement; empty for a user's own rule."""
        requirement = known_requirement(self.requirement)
        return self.says or ("" if requirement is None else requirement.title)

    @property
    def level(self) -> str:
        """The level of the leading requirement; empty for a named mistake, which breaks several."""
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
        """Why the failure is accepted, if it is known."""
        return next((breach.reason for breach in self.breaches if breach.reason), "")

    @cached_property
    def traces(self) -> int:
        """How many traces show it; 0 if only the run as a whole does."""
        return len(set[int]().union(*(problem.traces for problem in self.problems)))

    @cached_property
    def sessions(self) -> int:
        """How many sessions show it."""
        return len(set[int]().union(*(problem.sessions for problem in self.problems)))

    @cached_property
    def calls(self) -> Counter[str]:
        """How many calls show it, by operation; calls without an operation by their path."""
        return sum((problem.calls for problem in self.problems), Counter[str]())


class Causes:
    """Gathers the breaches of a run trace by trace, in little memory; those of daemon and harness are kept apart."""

    def __init__(self) -> None:
        self._connector = Problems()
        self._daemon = Problems()
        self._harness = Problems()
        self._traces = 0
        self._scenarios = True
        self._called = Counter[str]()
        self._absent: Collection[str] = ()
        self._left_out: set[str] = set()

    @classmethod
    def of(cls, conclusion: Conclusion) -> Causes:
        """The causes of a run whose traces are in memory."""
        causes = cls()
        for judged in conclusion.judged:
            causes.add(judged, conclusion.terms.known_in(judged))
        causes.end(conclusion)
        return causes

    def add(self, judged: JudgedTrace, known: Mapping[str, str]) -> None:
        """Add one trace; `known` maps each requirement whose failure is known in it to the reason."""
        self._scenarios = self._scenarios and any(marks_of(judged.trace, ScenarioMark))
        self._connector.add(judged, judged.judgements, known, self._traces)
        self._daemon.add(judged, judged.daemon, {}, self._traces)
        self._harness.add(judged, judged.harness, {}, self._traces)
        self._called.update({call.operation for call in judged.recording.calls if call.operation is not None})
        self._traces += 1

    def end(self, conclusion: Conclusion) -> None:
        """Add what only the run as a whole breaches, and leave out what its generated sessions changed."""
        whole = conclusion.run_level_breaches
        if whole is not None:
            self._connector.add(whole, whole.judgements, conclusion.known_reasons, None)
            row = whole.judgements.get(COVERAGE)
            self._absent = [name for finding in row.findings for name in finding.elements] if row is not None else ()
        self._left_out = {name for name, each in conclusion.judgements.items() if each.verdict not in BREACHES}

    def connector(self) -> Sequence[Cause]:
        """Causes at the connector: errors of the kit first, then FAIL, then WARN; in the catalogue's order."""
        return self._causes(self._connector, self._left_out, CalledOperations(self._called, self._absent))

    def daemon(self) -> Sequence[Cause]:
        """Causes at the daemon, in the same order."""
        return self._causes(self._daemon, set())

    def harness(self) -> Sequence[Cause]:
        """Causes at the harness and its model, in the same order."""
        return self._causes(self._harness, set())

    def all(self) -> Sequence[Cause]:
        """The causes of every side: the connector's, the daemon's, the harness's."""
        return [*self.connector(), *self.daemon(), *self.harness()]

    def _causes(self, problems: Problems, left_out: set[str], seen: CalledOperations | None = None) -> Sequence[Cause]:
        of_requirement: dict[str, list[Problem]] = {}
        breaches: dict[str, list[Evidence]] = {}
        remaining = problems.without(left_out)
        for problem in remaining:
            for name, breach in problem.breaches.items():
                breaches.setdefault(name, []).append(breach)
        shared = [] if seen is None else [*shared_causes(remaining, seen)]
        explained = {id(problem) for each in shared for problem in each.problems}
        for problem in remaining:
            if id(problem) not in explained:
                leading = min(problem.breaches, key=lambda name: _rank(name, breaches[name]))
                of_requirement.setdefault(leading, []).append(problem)
        causes = (*shared, *(Cause(name, its_problems) for name, its_problems in of_requirement.items()))
        counted = (replace(cause, of=self._traces, scenarios=self._scenarios) for cause in causes)
        return sorted(counted, key=_weight)


class CauseReport:
    """The base of reports that list the causes of the run at their end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._causes = Causes()

    def add(self, judged: JudgedTrace, known: Mapping[str, str]) -> None:
        """Add one trace."""
        self._causes.add(judged, known)


def _worst(breaches: Iterable[Evidence]) -> Verdict:
    return min((breach.verdict for breach in breaches), key=BREACHES.index)


def _rank(name: str, breaches: Sequence[Evidence]) -> tuple[int, bool, int]:
    """Sort key of a leading requirement: the worst verdict, then unknown failures, then the catalogue's order."""
    return BREACHES.index(_worst(breaches)), all(breach.is_known for breach in breaches), catalogue_place(name)


def _weight(cause: Cause) -> tuple[int, bool, bool, bool, int]:
    """Sort key of a cause: among those of one verdict, a cause that hides other breaches comes first."""
    is_hiding = cause.requirement in _LOADING
    return (
        BREACHES.index(cause.verdict),
        cause.is_known,
        not is_hiding,
        not cause.says,
        catalogue_place(cause.requirement),
    )


_LOADING = ("SIG-LOAD-001", "SIG-LOAD-002")
"""If the host could not load the connector or accepts none of its files, everything else may follow from that."""
