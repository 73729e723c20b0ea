"""The engine: a trace in, the verdict of each requirement out. It prints nothing, and opens only the recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from msgspec import Struct, field

from signet_conformance.children.spread import spread
from signet_conformance.contract import (
    Requirement,
    daemon_requirements,
    harness_requirements,
    reference_daemon,
    requirements,
    version_key,
)
from signet_conformance.engine.folding import (
    MAX_FINDINGS as MAX_FINDINGS,
    JudgedRun as JudgedRun,
    JudgedTrace as JudgedTrace,
    Tally,
    exit_status as exit_status,
    fold_run as fold_run,
    run_judgements as run_judgements,
)
from signet_conformance.engine.pieces import by_pieces
from signet_conformance.facts import Recording
from signet_conformance.finding import Judgement, Reason, Verdict
from signet_conformance.rules import builtin_rules, daemon_rules, rules
from signet_conformance.rules.excuses import excuse_breach
from signet_conformance.rules.model import rule_of, why_not_judged
from signet_conformance.rules.outcome import Rule
from signet_conformance.trace import Trace
from signet_conformance.trace.marks import StepMark, marks_of


def judge(
    trace: Trace, only: frozenset[str] | None = None, contract: str | None = None, workers: int = 1
) -> JudgedTrace:
    """The verdict of every requirement (or of `only` some) over one trace.

    `contract` is a contract version, by default the one that the trace's daemon serves. A later requirement is not
    applicable, but its message says what its rule found. A long recording is judged by `workers` forks of this process,
    which must have no other thread.
    """
    (judged,) = judge_each([trace], only, contract, workers)
    return judged


def judge_each(
    traces: Sequence[Trace], only: frozenset[str] | None = None, contract: str | None = None, workers: int = 1
) -> Sequence[JudgedTrace]:
    """Judge several traces as :func:`judge` does, each by itself.

    A rule is asked about all of them before the next one is: short traces are judged in half the time so, since the
    processor keeps at hand what the rule needs.
    """
    version = None if contract is None else reference_daemon(contract)
    asked = _catalogue(only)
    # With `only`, the daemon's side is judged if verdicts may rest on its answers: in driven recordings.
    sides = [daemon_requirements() if only is None or any(marks_of(trace, StepMark)) else _NO_SIDE for trace in traces]
    names = [name for name, _, _ in asked]
    cases = [
        _Case(*by_pieces(trace, version, [*names, *side], _workers_for(trace, workers)), side)
        for trace, side in zip(traces, sides, strict=True)
    ]
    for case in cases:
        case.early = _by_workers(case, names, _workers_for(case.recording.trace, workers))
    for name, entry in daemon_requirements().items():
        rule = daemon_rules().get(name)
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
        JudgedTrace.of(case.recording, case.judgements, case.daemon, dict(_judge_harness(case.recording, only)))
        for case in cases
    ]


def judge_run(traces: Sequence[Trace], only: frozenset[str] | None = None) -> JudgedRun:
    """The verdict of every requirement over each trace, and over all together."""
    judged = [judge(trace, only) for trace in traces]
    return JudgedRun(judged, fold_run(judged))


_NO_SIDE: Mapping[str, Requirement] = MappingProxyType({})


class _Case(Struct):
    """A trace that is being judged.

    `broken` are exchanges whose answer breaks a requirement on the daemon, `early` holds the workers' judgements.
    """

    recording: Recording
    tallies: Mapping[str, Tally]
    side: Mapping[str, Requirement]
    daemon: dict[str, Judgement] = field(default_factory=dict)
    broken: Mapping[int, str] = field(default_factory=dict)
    early: Mapping[str, Judgement] = field(default_factory=dict)
    judgements: dict[str, Judgement] = field(default_factory=dict)


def _catalogue(only: frozenset[str] | None) -> Sequence[tuple[str, Requirement | None, Rule | None]]:
    """Every requirement, or those of `only`, in the catalogue's order; those that users added come last.

    Each is with its entry and its rule.
    """
    known, catalogue = rules(), requirements()
    names = (*catalogue, *(name for name in known if name not in catalogue))
    return [(name, catalogue.get(name), known.get(name)) for name in names if only is None or name in only]


def _workers_for(trace: Trace, workers: int) -> int:
    """How many processes judge a trace: one for a driven run, where the daemon's rules are judged before the others."""
    return 1 if len(trace.exchanges) < _LONG or any(marks_of(trace, StepMark)) else workers


def _by_workers(case: _Case, names: Sequence[str], workers: int) -> Mapping[str, Judgement]:
    """Judge by several workers with the rules that need the whole recording. Return nothing for one worker."""
    if workers < 2:
        return {}

    def judgements(group: Sequence[str]) -> dict[str, Judgement]:
        return {
            name: _judge_by(
                name,
                case.side.get(name) or requirements().get(name),
                daemon_rules().get(name) if name in case.side else rules().get(name),
                case.recording,
            )
            for name in group
        }

    groups = _in_groups([name for name in (*case.side, *names) if name not in case.tallies])
    return {name: judged for group in spread(judgements, groups, workers) for name, judged in group.items()}


_LONG = 4000
"""Exchanges. One process judges a shorter recording sooner than several, which take time to start."""
_SLOWEST = (
    ("SIG-PROMPT-007",),
    ("SIG-PROMPT-003", "SIG-PROMPT-010", "SIG-PROMPT-012", "SIG-END-012"),
    ("SIG-DAEMON-001",),
)
"""Groups of the requirements that take longest, which begin first. Those of one group read the same transcripts."""
_GROUP = 4


def _in_groups(names: Sequence[str]) -> Sequence[Sequence[str]]:
    """Divide requirements into groups, one for each task of a worker.

    Requirements with users' own rules are left out: another process might not be able to send their findings.
    """
    built_in = builtin_rules()
    known = rules()
    left = {name: None for name in names if name in daemon_rules() or known.get(name) is built_in.get(name)}
    first = [[name for name in group if name in left] for group in _SLOWEST]
    for group in first:
        for name in group:
            del left[name]
    rest = list(left)
    return [*filter(None, first), *(rest[at : at + _GROUP] for at in range(0, len(rest), _GROUP))]


def _judge_harness(recording: Recording, only: frozenset[str] | None) -> Iterator[tuple[str, Judgement]]:
    """What reached the model: by requirement, in the catalogue's order."""
    asked = [each for each in harness_requirements().items() if only is None or each[0] in only]
    why = why_not_judged(recording) if asked else None
    for name, requirement in asked:
        if why is None:
            yield name, _judge_by(name, requirement, rule_of(name, recording), recording)
        else:
            yield name, Judgement(name, Verdict.NOT_APPLICABLE, Reason.NO_SUBJECT, why)


def _judge_by(
    name: str,
    requirement: Requirement | None,
    rule: Rule | None,
    recording: Recording,
    broken: Mapping[int, str] = MappingProxyType({}),
    tally: Tally | None = None,
) -> Judgement:
    if rule is None:
        return Judgement(name, Verdict.NOT_APPLICABLE, Reason.NO_RULE, "no rule decides it from a trace")
    since = requirement.since if requirement is not None else None
    if tally is None:
        tally = Tally()
        tally.run(rule, recording, partial(excuse_breach, name, recording=recording, broken=broken))
    judgement = tally.judgement(name)
    if since is None or version_key(since) <= version_key(recording.daemon_version):
        return judgement
    message = f"in force since daemon {since}; this one is {recording.daemon_version}"
    if judgement.verdict in (Verdict.FAIL, Verdict.WARN):
        message += f" (unscored: {judgement.verdict}, {judgement.message})"
    return Judgement(name, Verdict.NOT_APPLICABLE, Reason.GATED, message)
