"""The problems of a run: one thing that is wrong at one place, whichever calls and requirements show it.

A member that is absent is one problem, whichever calls lack it; so is a value that two requirements refuse at the same
place of the same call.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from signet_conformance.engine import JudgedTrace
from signet_conformance.errors import printable
from signet_conformance.finding import BREACHES, Finding, Judgement
from signet_conformance.reports.evidence import Evidence, Size, evidence_of, known_requirement
from signet_conformance.reports.values import is_absent
from signet_conformance.trace.marks import FaultMark, marks_of

Key = tuple[str, ...]
"""Identifies a problem, in the same way in every trace and every run."""

_INDEX = re.compile(r"/\d+(?=/|$)")
_BITS = 32
"""A session of a trace is kept as one number: that of the trace, shifted, and that of the session in it."""


class Problem(Struct):
    """One thing that is wrong, over all traces: its breach by requirement, and its calls by operation.

    `sessions` are numbers of sessions over the run, `traces` of traces.
    """

    key: Key
    breaches: dict[str, Evidence] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    sessions: set[int] = field(default_factory=set)
    traces: set[int] = field(default_factory=set)

    def merge(self, other: Problem, *, other_calls: bool = True) -> None:
        """Merge a problem that turned out to be the same, with its calls unless they are among ours."""
        self.breaches.update(other.breaches)
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

    def without(self, left_out: set[str]) -> Sequence[Problem]:
        """The problems without the breaches of some requirements; a refusal is part of what was refused."""
        for key, reasons in self._refused_for.items():
            whole = [self._by_key[root] for root in {*map(self._root, reasons)} - {self._root(key)}]
            # A problem that shows at more calls than were refused is less likely to be the reason.
            if whole:
                reason = min(whole, key=lambda problem: (problem.calls.total(), problem.key))
                self._unite(reason.key, key, other_calls=False)
        self._refused_for.clear()
        for problem in self._by_key.values():
            problem.breaches = {name: breach for name, breach in problem.breaches.items() if name not in left_out}
        return [problem for problem in self._by_key.values() if problem.breaches]

    def add(
        self, judged: JudgedTrace, judgements: Mapping[str, Judgement], known: Mapping[str, str], number: int | None
    ) -> None:
        """Add the breaches of trace `number`; None for those of the run as a whole."""
        broken = [judgement for judgement in judgements.values() if judgement.verdict in BREACHES]
        if not broken:
            return
        by_problem: dict[Key, dict[str, list[Finding]]] = {}
        for judgement in broken:
            for key, findings in _findings_by_key(judged, judgement).items():
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
                _add_breach(problem, judged, judgements[name], findings, known.get(name, ""), number)

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


def _findings_by_key(judged: JudgedTrace, judgement: Judgement) -> dict[Key, list[Finding]]:
    if not judgement.findings:
        return {("breach", judgement.requirement, ""): []}
    by_key: dict[Key, list[Finding]] = {}
    of_group: dict[str, Key] = {}
    for finding in judgement.findings:
        key = _key(judged, judgement.requirement, finding)
        # If there are very many findings, the engine keeps only the fold of later ones: the first has the details.
        if not finding.pointer:
            key = of_group.get(finding.group, key)
        of_group.setdefault(finding.group, key)
        by_key.setdefault(key, []).append(finding)
    return by_key


def _key(judged: JudgedTrace, requirement: str, finding: Finding) -> Key:
    call = judged.recording.by_seq.get(finding.exchanges[0]) if finding.exchanges else None
    if call is not None and finding.pointer.startswith("/request/body/") and is_absent(finding.pointer, call.exchange):
        return ("absent", _INDEX.sub("/*", finding.pointer))
    return ("breach", requirement, finding.group)


def _refused_together(by_problem: Mapping[Key, Mapping[str, Sequence[Finding]]]) -> Iterator[tuple[Key, Key]]:
    """Pairs of problems that are one: equal texts about one member, or a value refused for the same expected value."""
    first: dict[tuple[int, str, str], tuple[object, Key]] = {}
    by_text: dict[tuple[str, str], Key] = {}
    for key, by_requirement in by_problem.items():
        for findings in by_requirement.values():
            for finding in findings:
                if not finding.pointer or not finding.expected or not finding.exchanges:
                    continue
                if (alike := by_text.setdefault((finding.pointer, finding.message), key)) != key:
                    yield alike, key
                place = (finding.exchanges[0], finding.pointer, finding.expected)
                received, before = first.setdefault(place, (finding.received, key))
                if before != key and received == finding.received:
                    yield before, key


def _refusals(
    judged: JudgedTrace, by_problem: Mapping[Key, Mapping[str, Sequence[Finding]]]
) -> Iterator[tuple[Key, set[Key]]]:
    """Problems that are only a refused answer, each with those problems of the request that always show with it."""
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


def _is_refusal(judged: JudgedTrace, finding: Finding) -> bool:
    call = judged.recording.by_seq.get(finding.exchanges[0])
    status = None if call is None else call.status
    return not finding.pointer and status is not None and 400 <= status < 500 and finding.received == status


def _count_calls(
    problem: Problem,
    judged: JudgedTrace,
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


def _sessions(judged: JudgedTrace) -> dict[str, int]:
    keys = dict.fromkeys(call.key for call in judged.recording.calls if call.key is not None)
    return {key: number for number, key in enumerate(keys)}


def _size(judged: JudgedTrace) -> Size:
    return any(marks_of(judged.trace, FaultMark)), len(judged.trace.exchanges), len(judged.trace.marks)


def _add_breach(
    problem: Problem,
    judged: JudgedTrace,
    judgement: Judgement,
    findings: Sequence[Finding],
    known: str,
    number: int | None,
) -> None:
    name, verdict, size = judgement.requirement, judgement.verdict, _size(judged)
    breach = problem.breaches.get(name)
    worse = breach is not None and BREACHES.index(verdict) < BREACHES.index(breach.verdict)
    if breach is None or worse or (verdict is breach.verdict and size < breach.size):
        requirement = known_requirement(name)
        level = requirement.level_at(judged.daemon_version) if requirement is not None else ""
        shown = evidence_of(judged, findings) if findings else Evidence(printable(judgement.message, 400))
        shown.requirement, shown.verdict, shown.level, shown.size = name, verdict, level, size
        shown.path = "" if number is None else judged.trace.path or ""
        if breach is not None:
            shown.times, shown.traces, shown.known, shown.reason = (
                breach.times,
                breach.traces,
                breach.known,
                breach.reason,
            )
        breach = problem.breaches[name] = shown
    breach.times += max(1, len(findings))
    if number is not None:
        breach.traces.add(number)
    if known:
        breach.reason = breach.reason or printable(known, 300)
        if number is not None:
            breach.known.add(number)
