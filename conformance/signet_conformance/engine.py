"""Trace and contract in, verdicts out, as plain values: the engine never prints and opens nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from signet_conformance.contract import Requirement, requirements, version_key
from signet_conformance.facts import Recording
from signet_conformance.finding import FOLDING_ORDER, Finding, Judgement, Reason, Verdict
from signet_conformance.rules import rules
from signet_conformance.rules.outcome import Rule
from signet_conformance.trace import Trace

MAX_FINDINGS = 200
"""Findings kept for one requirement of one trace; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One trace with a judgement for every requirement of the catalogue, in its order."""

    trace: Trace
    daemon_version: str
    judgements: Mapping[str, Judgement]


def judge(trace: Trace, only: frozenset[str] | None = None) -> Judged:
    """The verdict of every requirement (or of `only` some) over one trace."""
    recording = Recording(trace)
    known = rules()
    catalogue = requirements()
    names = [name for name in (*catalogue, *(n for n in known if n not in catalogue)) if only is None or name in only]
    return Judged(
        trace,
        recording.daemon_version,
        {name: _judge_one(name, catalogue.get(name), known.get(name), recording) for name in names},
    )


def _judge_one(name: str, requirement: Requirement | None, rule: Rule | None, recording: Recording) -> Judgement:
    since = requirement.since if requirement is not None else None
    if since is not None and version_key(since) > version_key(recording.daemon_version):
        return Judgement(
            name,
            Verdict.NOT_APPLICABLE,
            Reason.GATED,
            f"in force since daemon {since}; this one is {recording.daemon_version}",
        )
    if rule is None:
        return Judgement(name, Verdict.NOT_APPLICABLE, Reason.NO_RULE, "no rule decides it from a trace")
    passed = 0
    findings: list[Finding] = []
    dropped = 0
    try:
        for outcome in rule(recording):
            if outcome is Verdict.PASS:
                passed += 1
            elif len(findings) < MAX_FINDINGS or outcome.verdict not in {f.verdict for f in findings}:
                findings.append(outcome)
            else:
                dropped += 1
    except Exception as crash:
        # A crashing rule is the kit's own failure: it is reported as such and the others still run.
        return Judgement(
            name,
            Verdict.ERROR,
            Reason.CRASHED,
            f"the kit's rule raised {type(crash).__name__}: {crash}"[:300],
        )
    return _fold(name, passed, findings, dropped)


def _fold(name: str, passed: int, findings: list[Finding], dropped: int = 0) -> Judgement:
    verdicts = {finding.verdict for finding in findings} | ({Verdict.PASS} if passed else set())
    verdict = next((v for v in FOLDING_ORDER if v in verdicts), Verdict.NOT_APPLICABLE)
    subjects = passed + len(findings) + dropped
    kept = tuple(f for f in findings if f.verdict is verdict)
    if verdict is Verdict.NOT_APPLICABLE:
        return Judgement(name, verdict, Reason.NO_SUBJECT, "nothing in the trace is subject to it")
    if verdict is Verdict.PASS:
        return Judgement(name, verdict, Reason.CONFORMING, _count(subjects), subjects=subjects)
    reason = Reason.UNDECIDED if verdict is Verdict.INCONCLUSIVE else Reason.BREACH
    messages = list(dict.fromkeys(f.message for f in kept))
    message = "; ".join(messages[:3]) + (" …" if len(messages) > 3 else "")
    return Judgement(name, verdict, reason, message, kept, subjects)


def _count(subjects: int) -> str:
    return f"{subjects} subject{'' if subjects == 1 else 's'}"


def fold_verdicts(judged: Sequence[Judged]) -> Iterator[tuple[str, Verdict]]:
    """The verdict of each requirement over several traces: the first of the folding order that any trace has."""
    for name in dict.fromkeys(name for one in judged for name in one.judgements):
        verdicts = {one.judgements[name].verdict for one in judged if name in one.judgements}
        yield name, next(v for v in FOLDING_ORDER if v in verdicts)


def exit_status(verdicts: Sequence[Verdict], *, strict: bool = False) -> int:
    """0 conforming, 1 any FAIL (any WARN too when strict), 3 nothing was tested, 4 any ERROR."""
    found = set(verdicts)
    if Verdict.ERROR in found:
        return 4
    if Verdict.FAIL in found or (strict and Verdict.WARN in found):
        return 1
    return 0 if found & {Verdict.PASS, Verdict.WARN} else 3


