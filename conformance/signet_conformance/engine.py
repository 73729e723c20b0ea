"""Trace and contract in, verdicts out, as plain values: the engine never prints and opens nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, TypeVar

from signet_conformance.children.spread import spread
from signet_conformance.contract import (
    Requirement,
    daemon_requirements,
    harness_requirements,
    reference_daemon,
    requirements,
    version_key,
)
from signet_conformance.errors import TraceError
from signet_conformance.facts import Lightened, NeedsWholeError, Recording
from signet_conformance.finding import FOLDING_ORDER, Finding, Judgement, Reason, Verdict
from signet_conformance.rules import builtin_rules, rules, run_rules
from signet_conformance.rules.by_exchange import exchange_rules
from signet_conformance.rules.daemon import DAEMON_RULES
from signet_conformance.rules.fields import MOST_EXPLAINED
from signet_conformance.rules.model import MODEL_RULES, why_not_judged
from signet_conformance.rules.outcome import Outcome, Rule
from signet_conformance.rules.reliance import excused
from signet_conformance.rules.whole_run import WholeRun
from signet_conformance.trace import Trace
from signet_conformance.trace.marks import StepMark, marks_of
from signet_conformance.trace.shelf import Shelf

Judgeable = TypeVar("Judgeable", Recording, WholeRun)
MAX_FINDINGS = 200
"""Findings of one requirement of one trace that are kept whole; of the others only which exchanges they name."""
MOST_FINDINGS = 100_000
"""Findings of one requirement of one trace that are kept at all; the rest is counted as subjects."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One trace with a judgement for every requirement of the catalogue, in its order.

    `daemon` and `harness` hold the judgements of these sides, apart: they make no verdict of the connector's worse.
    The harness's are drawn from what reached its model.
    """

    trace: Trace
    daemon_version: str
    judgements: Mapping[str, Judgement]
    daemon: Mapping[str, Judgement] = field(default_factory=dict)
    harness: Mapping[str, Judgement] = field(default_factory=dict)
    # Not handed on by dataclasses.replace, so that a trace that was replaced has its own.
    _recording: Recording | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def recording(self) -> Recording:
        """The trace as rules read it, built once: the one that was judged."""
        if self._recording is None:
            object.__setattr__(self, "_recording", Recording(self.trace, self.daemon_version))
        return self._recording  # type: ignore[return-value]  # set just above

    @classmethod
    def of(
        cls,
        recording: Recording,
        judgements: Mapping[str, Judgement],
        daemon: Mapping[str, Judgement],
        harness: Mapping[str, Judgement],
    ) -> Judged:
        """What came of judging a recording."""
        recording.memo.clear()  # what rules remembered: only they read it
        judged = cls(recording.trace, recording.daemon_version, judgements, daemon, harness)
        object.__setattr__(judged, "_recording", recording)
        return judged

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """The verdict of each requirement on the connector."""
        return {name: judgement.verdict for name, judgement in self.judgements.items()}


def judge(trace: Trace, only: frozenset[str] | None = None, contract: str | None = None, workers: int = 1) -> Judged:
    """The verdict of every requirement (or of `only` some) over one trace.

    `contract` is a contract version; without it the one that the trace's daemon serves holds. A
    requirement that came later runs unscored: it is not applicable, and its message says what it found. A long
    recording is judged by so many `workers`: forks of this process, for which it may have no other thread.
    """
    (judged,) = judge_each([trace], only, contract, workers)
    return judged


def judge_each(
    traces: Sequence[Trace], only: frozenset[str] | None = None, contract: str | None = None, workers: int = 1
) -> Sequence[Judged]:
    """The same for several traces, each for itself.

    A rule is asked about all of them before the next one is: short traces are judged in half the time so, since the
    processor keeps at hand what the rule needs.
    """
    version = None if contract is None else reference_daemon(contract)
    asked = [each for each in _catalogue() if only is None or each[0] in only]
    # Asked for some requirements only, the daemon's side matters where they may rest on its answers.
    sides = [daemon_requirements() if only is None or any(marks_of(trace, StepMark)) else _NO_SIDE for trace in traces]
    names = [name for name, _, _ in asked]
    cases = [
        _Case(*_by_pieces(trace, version, [*names, *side], _workers_for(trace, workers)), side)
        for trace, side in zip(traces, sides, strict=True)
    ]
    for case in cases:
        case.early = _by_workers(case, names, _workers_for(case.recording.trace, workers))
    for name, entry in daemon_requirements().items():
        rule = DAEMON_RULES.get(name)
        for case in cases:
            if name in case.side:
                case.daemon[name] = case.early.get(name) or _judge_by(
                    name, entry, rule, case.recording, tally=case.tallies.get(name)
                )
    for case in cases:
        case.broken = {
            finding.exchanges[0]: judgement.requirement
            for judgement in case.daemon.values()
            if judgement.verdict is Verdict.FAIL
            for finding in judgement.findings
        }
    for name, requirement, rule in asked:
        for case in cases:
            case.judgements[name] = case.early.get(name) or _judge_by(
                name, requirement, rule, case.recording, case.broken, case.tallies.get(name)
            )
    return [
        Judged.of(
            case.recording,
            case.judgements,
            case.daemon,
            {} if only is not None else dict(_judge_harness(case.recording)),
        )
        for case in cases
    ]


_NO_SIDE: Mapping[str, Requirement] = MappingProxyType({})


@dataclass(slots=True)
class _Case:
    """A trace that is being judged.

    `broken` are exchanges whose answer breaks a requirement on the daemon, `early` is what workers came to.
    """

    recording: Recording
    tallies: Mapping[str, _Tally]
    side: Mapping[str, Requirement]
    daemon: dict[str, Judgement] = field(default_factory=dict)
    broken: Mapping[int, str] = field(default_factory=dict)
    early: Mapping[str, Judgement] = field(default_factory=dict)
    judgements: dict[str, Judgement] = field(default_factory=dict)


def _catalogue() -> Sequence[tuple[str, Requirement | None, Rule | None]]:
    """Every requirement in the catalogue's order with its entry and its rule; those that users added come last."""
    known, catalogue = rules(), requirements()
    names = (*catalogue, *(name for name in known if name not in catalogue))
    return [(name, catalogue.get(name), known.get(name)) for name in names]


def _workers_for(trace: Trace, workers: int) -> int:
    """How many processes judge a trace: an answer may excuse what the marks of a driven run show, in its turn only."""
    return 1 if len(trace.exchanges) < _LONG or any(marks_of(trace, StepMark)) else workers


def _by_workers(case: _Case, names: Sequence[str], workers: int) -> Mapping[str, Judgement]:
    """What several workers come to by the rules that are left for the whole recording; nothing where there is one."""
    if workers < 2:
        return {}

    def judgements(group: Sequence[str]) -> dict[str, Judgement]:
        return {
            name: _judge_by(
                name,
                case.side.get(name) or requirements().get(name),
                DAEMON_RULES.get(name) if name in case.side else rules().get(name),
                case.recording,
            )
            for name in group
        }

    groups = _in_groups([name for name in (*case.side, *names) if name not in case.tallies])
    return {name: judged for group in spread(judgements, groups, workers) for name, judged in group.items()}


_LONG = 4000
"""Exchanges of a recording that several workers judge sooner than one: to begin and to hear them takes a while."""
_TOGETHER = (("SIG-PROMPT-007",), ("SIG-PROMPT-003", "SIG-PROMPT-010", "SIG-END-012"), ("SIG-DAEMON-001",))
"""What takes longest, foremost; those of a group read the same transcripts."""
_GROUP = 4


def _in_groups(names: Sequence[str]) -> Sequence[Sequence[str]]:
    """Requirements in groups that workers take one after the other; those with rules of a user's own are left out.

    What such a rule yields, nobody knows whether it can be handed from process to process.
    """
    built_in = builtin_rules()
    known = rules()
    left = {name: None for name in names if name in DAEMON_RULES or known.get(name) is built_in.get(name)}
    first = [[name for name in group if name in left] for group in _TOGETHER]
    for group in first:
        for name in group:
            del left[name]
    rest = list(left)
    return [*filter(None, first), *(rest[at : at + _GROUP] for at in range(0, len(rest), _GROUP))]


def _by_pieces(
    trace: Trace, version: str | None, names: Collection[str], workers: int
) -> tuple[Recording, Mapping[str, _Tally]]:
    """The recording of a trace; and where its exchanges are not held, what its pieces came to by requirements.

    Those are the requirements whose rules look at one exchange after the other. What such a rule yields over the pieces
    is what it would yield over the whole; where it is not, the requirement is left out.
    """
    exchanges = trace.exchanges
    # An answer may excuse what the marks of a driven run show, and only the whole recording tells which.
    if not isinstance(exchanges, Shelf) or any(marks_of(trace, StepMark)):
        return Recording(trace, version), {}
    by_exchange = exchange_rules()
    tallies = {name: _Tally() for name in names if name in by_exchange}
    lightened = Lightened(exchanges)

    def judge_piece(place: slice) -> tuple[dict[str, _Tally | None], list[tuple[Any, ...]]]:
        piece = Recording(replace(trace, exchanges=exchanges[place]), version, piece=True)
        told = {name: _over_piece(by_exchange[name], piece) for name in tallies}
        lightened.take(piece.calls)
        return told, lightened.packed() if workers > 1 else []

    for told, packed in spread(judge_piece, list(exchanges.pieces()), workers):
        lightened.unpack(packed)
        for name in list(tallies):
            more = told.get(name)
            if more is not None:
                tallies[name].add(more)
            entry = requirements().get(name)
            explained = entry is not None and entry.check is not None
            # Of the whole recording no more breaches are explained.
            if more is None or (explained and len(tallies[name].findings) > MOST_EXPLAINED):
                del tallies[name]
    return Recording(trace, version, calls=lightened.calls), tallies


def _over_piece(rule: Rule, piece: Recording) -> _Tally | None:
    """What a rule yields over a piece; None where it needs the whole."""
    tally = _Tally()
    try:
        tally.run(rule, piece)
    except NeedsWholeError:
        return None
    return tally


def _judge_harness(recording: Recording) -> Iterator[tuple[str, Judgement]]:
    """What reached the model: by requirement, in the catalogue's order."""
    why = why_not_judged(recording)
    for name, requirement in harness_requirements().items():
        if why is None:
            yield name, _judge_by(name, requirement, MODEL_RULES.get(name), recording)
        else:
            yield name, Judgement(name, Verdict.NOT_APPLICABLE, Reason.NO_SUBJECT, why)


def _judge_by(
    name: str,
    requirement: Requirement | None,
    rule: Rule | None,
    recording: Recording,
    broken: Mapping[int, str] = MappingProxyType({}),
    tally: _Tally | None = None,
) -> Judgement:
    if rule is None:
        return Judgement(name, Verdict.NOT_APPLICABLE, Reason.NO_RULE, "no rule decides it from a trace")
    since = requirement.since if requirement is not None else None
    excuse = partial(excused, name, recording=recording, broken=broken) if broken else None
    if tally is None:
        tally = _Tally(excuse)
        tally.run(rule, recording)
    judgement = tally.judgement(name)
    if since is None or version_key(since) <= version_key(recording.daemon_version):
        return judgement
    message = f"in force since daemon {since}; this one is {recording.daemon_version}"
    if judgement.verdict in (Verdict.FAIL, Verdict.WARN):
        message += f" (unscored: {judgement.verdict}, {judgement.message})"
    return Judgement(name, Verdict.NOT_APPLICABLE, Reason.GATED, message)


class _Tally:
    """What a rule yields, counted: the first findings whole, of the others which exchanges they name."""

    __slots__ = ("_crash", "_dropped", "_excuse", "_kinds", "_passed", "findings")

    def __init__(self, excuse: Callable[[Finding], Finding] | None = None) -> None:
        self.findings: list[Finding] = []
        self._excuse = excuse
        self._passed = self._dropped = 0
        self._kinds: set[Verdict] = set()
        self._crash: str | None = None

    def run(self, rule: Callable[[Judgeable], Iterator[Outcome]], what: Judgeable) -> None:
        """Take what a rule yields; raise NeedsWholeError where it was given too little to look at."""
        if self._crash is not None:
            return
        try:
            for subject in rule(what):
                if subject is Verdict.PASS:
                    self._passed += 1
                else:
                    self._take(subject if self._excuse is None else self._excuse(subject))
        except (NeedsWholeError, TraceError):
            raise
        except Exception as crash:  # noqa: BLE001 - whatever a rule raises is the kit's own failure
            self._crash = f"the kit's rule raised {type(crash).__name__}: {crash}"[:300]

    def add(self, later: _Tally) -> None:
        """Take what the same rule came to over the next piece."""
        if self._crash is None:
            for finding in later.findings:
                self._take(finding)
            self._passed += later._passed
            self._dropped += later._dropped
            self._crash = later._crash

    def _take(self, outcome: Finding) -> None:
        if len(self.findings) < MAX_FINDINGS or outcome.verdict not in self._kinds:
            self.findings.append(outcome)
            self._kinds.add(outcome.verdict)
        elif len(self.findings) < MOST_FINDINGS:
            # What was sent and expected is in the first ones; each broken exchange is to be marked.
            self.findings.append(Finding(outcome.verdict, outcome.exchanges, outcome.fold, fold=outcome.fold))
        else:
            self._dropped += 1

    def judgement(self, name: str) -> Judgement:
        """What it comes to for a requirement."""
        if self._crash is not None:
            # A crashing rule is the kit's own failure: it is reported as such and the others still run.
            return Judgement(name, Verdict.ERROR, Reason.CRASHED, self._crash)
        if not self.findings:
            return _without_findings(name, self._passed)
        return _fold(name, self._passed, self.findings, self._dropped)


def _fold(name: str, passed: int, findings: list[Finding], dropped: int) -> Judgement:
    verdicts = {finding.verdict for finding in findings} | ({Verdict.PASS} if passed else set())
    verdict = next((v for v in FOLDING_ORDER if v in verdicts), Verdict.NOT_APPLICABLE)
    subjects = passed + len(findings) + dropped
    kept = tuple(f for f in findings if f.verdict is verdict)
    if verdict is Verdict.NOT_APPLICABLE:
        return Judgement(name, verdict, Reason.NO_SUBJECT, kept[0].message)
    if verdict is Verdict.PASS:
        # What a rule has to tell of a subject that conforms is no evidence, and stands in the message alone.
        told = "; ".join([_count(subjects), *list(dict.fromkeys(f.message for f in kept))[:3]])
        return Judgement(name, verdict, Reason.CONFORMING, told, subjects=subjects)
    reason = Reason.UNDECIDED if verdict is Verdict.INCONCLUSIVE else Reason.BREACH
    messages = list(dict.fromkeys(f.message for f in kept[:MAX_FINDINGS]))
    message = "; ".join(messages[:3]) + (" …" if len(messages) > 3 else "")
    return Judgement(name, verdict, reason, message, kept, subjects)


@lru_cache(maxsize=10_000)
def _without_findings(name: str, passed: int) -> Judgement:
    """What most rules come to over most recordings."""
    if passed:
        return Judgement(name, Verdict.PASS, Reason.CONFORMING, _count(passed), subjects=passed)
    return Judgement(name, Verdict.NOT_APPLICABLE, Reason.NO_SUBJECT, "nothing in the trace is subject to it")


def _count(subjects: int) -> str:
    return f"{subjects} subject{'' if subjects == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """Several traces judged, and the judgement of each requirement over all of them."""

    traces: Sequence[Judged]
    together: Mapping[str, Judgement]


def judge_run(traces: Sequence[Trace], only: frozenset[str] | None = None, contract: str | None = None) -> JudgedRun:
    """The verdict of every requirement over each trace, and over all together."""
    judged = [judge(trace, only, contract) for trace in traces]
    return JudgedRun(judged, fold_run(judged))


def fold_run(judged: Sequence[Judged], *, whole: bool = True) -> Mapping[str, Judgement]:
    """The judgement of each requirement over several traces; `whole` is off where traces of the run are missing."""
    together = {name: _together(name, judged) for name, _ in fold_verdicts(judged)}
    return {**together, **run_judgements(judged)} if whole else together


def _together(name: str, judged: Sequence[Judged]) -> Judgement:
    judgements = [trace.judgements[name] for trace in judged]
    verdict = next(v for v in FOLDING_ORDER if any(j.verdict is v for j in judgements))
    deciding = [j for j in judgements if j.verdict is verdict]
    messages = list(dict.fromkeys(j.message for j in deciding))
    subjects = sum(j.subjects for j in judgements)
    message = (
        _count(subjects) if verdict is Verdict.PASS else "; ".join(messages[:3]) + (" …" if len(messages) > 3 else "")
    )
    return Judgement(
        name, verdict, deciding[0].reason, message, tuple(f for j in deciding for f in j.findings), subjects
    )


_LEFT_OPEN = (Reason.UNDECIDED, Reason.NO_SUBJECT)


def run_judgements(judged: Sequence[Judged]) -> Mapping[str, Judgement]:
    """The judgements that only the traces of a run together allow, by requirement id.

    A rule over the run is asked where every trace was judged by the requirement and none of them decided it.
    """
    if not judged:
        return {}
    run = WholeRun([part.trace for part in judged], judged[0].daemon_version)
    judgements = {}
    for name, rule in run_rules().items():
        if all(name in trace.judgements and trace.judgements[name].reason in _LEFT_OPEN for trace in judged):
            tally = _Tally()
            tally.run(rule, run)
            judgements[name] = tally.judgement(name)
    return {name: judgement for name, judgement in judgements.items() if judgement.reason is not Reason.NO_SUBJECT}


def fold_verdicts(judged: Sequence[Judged]) -> Iterator[tuple[str, Verdict]]:
    """The verdict of each requirement over several traces: the first of the folding order that any trace has."""
    for name in dict.fromkeys(name for trace in judged for name in trace.judgements):
        verdicts = {trace.judgements[name].verdict for trace in judged if name in trace.judgements}
        yield name, next(v for v in FOLDING_ORDER if v in verdicts)


def exit_status(verdicts: Sequence[Verdict], *, strict: bool = False, recorded: bool = True) -> int:
    """0 conforming, 1 any FAIL (any WARN too when strict), 3 nothing was tested, 4 any ERROR.

    Unless something was `recorded`, nothing was tested: a connector that never speaks keeps every rule on silence.
    """
    seen = set(verdicts)
    if Verdict.ERROR in seen:
        return 4
    if Verdict.FAIL in seen or (strict and Verdict.WARN in seen):
        return 1
    return 0 if recorded and seen & {Verdict.PASS, Verdict.WARN} else 3
