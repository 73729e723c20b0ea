"""Fold a rule's outcomes into a trace's judgement, those of traces into a run's, and verdicts into an exit status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TypeVar

from msgspec import Struct, field

from signet_conformance.errors import TraceError, counted
from signet_conformance.facts import NeedsWholeError, Recording
from signet_conformance.facts.whole_run import WholeRun
from signet_conformance.finding import FOLDING_ORDER, Finding, Judgement, Reason, Verdict
from signet_conformance.rules import run_rules
from signet_conformance.rules.outcome import Outcome
from signet_conformance.trace import Trace

Judgeable = TypeVar("Judgeable", Recording, WholeRun)
MAX_FINDINGS = 200
"""How many findings of a requirement in a trace are kept whole. Of later ones only the exchanges are kept."""
MOST_FINDINGS = 100_000
"""How many findings of a requirement in a trace are kept at all. Later ones are only counted, as subjects."""


class Tally:
    """Counts what a rule yields and keeps its findings: the first ones whole, of later ones the exchanges."""

    __slots__ = ("_crash", "_dropped", "_kinds", "_passed", "findings")

    def __init__(self, *, passed: int = 0) -> None:
        self.findings: list[Finding] = []
        self._passed = passed
        self._dropped = 0
        self._kinds: set[Verdict] = set()
        self._crash: str | None = None

    def run(
        self,
        rule: Callable[[Judgeable], Iterator[Outcome]],
        evidence: Judgeable,
        excuse: Callable[[Finding], Finding] | None = None,
    ) -> None:
        """Run a rule over `evidence` and count what it yields, each finding passed through `excuse`.

        Raises NeedsWholeError if the rule needs more of the recording than it was given.
        """
        if self._crash is not None:
            return
        # Nearly all subjects of a large recording conform: counting them is all that happens here.
        passed = 0
        try:
            for subject in rule(evidence):
                if subject is Verdict.PASS:
                    passed += 1
                else:
                    self._add_finding(subject if excuse is None else excuse(subject))
        except (NeedsWholeError, TraceError):
            raise
        except Exception as crash:  # noqa: BLE001 - whatever a rule raises is the kit's own failure
            self._crash = f"the kit's rule raised {type(crash).__name__}: {crash}"[:300]
        self._passed += passed

    def add(self, later: Tally) -> None:
        """Add the tally of the same rule over the next piece of the recording."""
        if self._crash is None:
            self.add_all(later.findings)
            self._passed += later._passed
            self._dropped += later._dropped
            self._crash = later._crash

    @classmethod
    def in_order(cls, tallies: Iterable[Tally]) -> Tally:
        """Merge the tallies of interleaved pieces, findings by exchange. For rules that look at each exchange alone."""
        pieces = list(tallies)
        findings = sorted((f for piece in pieces for f in piece.findings), key=lambda f: f.exchanges[:1])
        merged = cls()
        for piece in pieces:
            piece.findings = []
            merged.add(piece)
        merged.add_all(findings)
        return merged

    def add_all(self, findings: Iterable[Finding]) -> None:
        """Add findings, in the order in which the rule yielded them."""
        for finding in findings:
            self._add_finding(finding)

    def _add_finding(self, outcome: Finding) -> None:
        if len(self.findings) < MAX_FINDINGS or outcome.verdict not in self._kinds:
            self.findings.append(outcome)
            self._kinds.add(outcome.verdict)
        elif len(self.findings) < MOST_FINDINGS:
            # What was sent and expected is in the first ones; each broken exchange is to be marked.
            self.findings.append(_brief(outcome))
        else:
            self._dropped += 1

    def judgement(self, name: str) -> Judgement:
        """Fold the tally into the judgement of a requirement."""
        if self._crash is not None:
            # A crashing rule is the kit's own failure: it is reported as such and the others still run.
            return Judgement(name, Verdict.ERROR, Reason.CRASHED, self._crash)
        if not self.findings:
            return _without_findings(name, self._passed)
        return _fold(name, self._passed, self.findings, self._dropped)


def _brief(finding: Finding) -> Finding:
    """A finding without what was sent and expected."""
    return Finding(finding.verdict, finding.exchanges, finding.group, fold=finding.fold, elements=finding.elements)


def _fold(name: str, passed: int, findings: list[Finding], dropped: int) -> Judgement:
    verdicts = {finding.verdict for finding in findings} | ({Verdict.PASS} if passed else set())
    verdict = next((v for v in FOLDING_ORDER if v in verdicts), Verdict.NOT_APPLICABLE)
    subjects = passed + len(findings) + dropped
    kept = tuple(f for f in findings if f.verdict is verdict)
    if verdict is Verdict.NOT_APPLICABLE:
        return Judgement(name, verdict, Reason.NO_SUBJECT, kept[0].message)
    if verdict is Verdict.PASS:
        # Findings about conforming subjects are no evidence: only the message shows them.
        message = "; ".join([counted(subjects, "subject"), *list(dict.fromkeys(f.message for f in kept))[:3]])
        return Judgement(name, verdict, Reason.CONFORMING, message, subjects=subjects)
    reason = Reason.UNDECIDED if verdict is Verdict.INCONCLUSIVE else Reason.BREACH
    messages = list(dict.fromkeys(f.message for f in kept[:MAX_FINDINGS]))
    return Judgement(name, verdict, reason, _first_three(messages), kept, subjects)


def _first_three(messages: Sequence[str]) -> str:
    return "; ".join(messages[:3]) + (" …" if len(messages) > 3 else "")


@lru_cache(maxsize=10_000)
def _without_findings(name: str, passed: int) -> Judgement:
    """The judgement where a rule yielded nothing, or only PASS: cached, since it is the most common one."""
    if passed:
        return Judgement(name, Verdict.PASS, Reason.CONFORMING, counted(passed, "subject"), subjects=passed)
    return Judgement(name, Verdict.NOT_APPLICABLE, Reason.NO_SUBJECT, "nothing in the trace is subject to it")


class JudgedTrace(Struct, frozen=True, dict=True):
    """One trace with a judgement for every requirement of the catalogue, in its order.

    `daemon` and `harness` hold the judgements of these sides, apart: they make no verdict of the connector's worse.
    The harness's are drawn from what reached its model.
    """

    trace: Trace
    daemon_version: str
    judgements: Mapping[str, Judgement]
    daemon: Mapping[str, Judgement] = field(default_factory=dict)
    harness: Mapping[str, Judgement] = field(default_factory=dict)

    # Not a field: `replace` must not copy it to a value with another trace.
    @cached_property
    def recording(self) -> Recording:
        """The trace as rules read it; built once."""
        return Recording(self.trace, self.daemon_version)

    @classmethod
    def of(
        cls,
        recording: Recording,
        judgements: Mapping[str, Judgement],
        daemon: Mapping[str, Judgement],
        harness: Mapping[str, Judgement],
    ) -> JudgedTrace:
        """Make the value for a recording that was judged."""
        recording.memo.clear()  # only rules read what they stored there
        judged = cls(recording.trace, recording.daemon_version, judgements, daemon, harness)
        judged.__dict__["recording"] = recording
        return judged

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """The verdict of each requirement on the connector."""
        return {name: judgement.verdict for name, judgement in self.judgements.items()}


class JudgedRun(Struct, frozen=True):
    """Several traces judged, and the judgement of each requirement over all of them."""

    traces: Sequence[JudgedTrace]
    together: Mapping[str, Judgement]


def fold_run(judged: Sequence[JudgedTrace], *, whole: bool = True) -> Mapping[str, Judgement]:
    """The judgement of each requirement over several traces; `whole` is off where traces of the run are missing."""
    names = dict.fromkeys(name for trace in judged for name in trace.judgements)
    together = {name: _fold_traces([t.judgements[name] for t in judged if name in t.judgements]) for name in names}
    return {**together, **run_judgements(judged)} if whole else together


def _fold_traces(judgements: Sequence[Judgement]) -> Judgement:
    """The judgement over several traces of one requirement: the verdict is the first of the folding order."""
    verdict = next(v for v in FOLDING_ORDER if any(j.verdict is v for j in judgements))
    deciding = [j for j in judgements if j.verdict is verdict]
    reasons = ([f.message for f in j.findings[:MAX_FINDINGS]] or [j.message] for j in deciding)
    messages = list(dict.fromkeys(message for each in reasons for message in each))
    subjects = sum(j.subjects for j in judgements)
    message = counted(subjects, "subject") if verdict is Verdict.PASS else _first_three(messages)
    findings = tuple(finding for judgement in deciding for finding in judgement.findings)
    return Judgement(deciding[0].requirement, verdict, deciding[0].reason, message, findings, subjects)


_LEFT_OPEN = (Reason.UNDECIDED, Reason.NO_SUBJECT)


def run_judgements(judged: Sequence[JudgedTrace]) -> Mapping[str, Judgement]:
    """The judgements that only the traces of a run together allow, by requirement id.

    A rule over the run is run if every trace was judged by the requirement and none of them decided it.
    """
    if not judged:
        return {}
    run = WholeRun([part.trace for part in judged], judged[0].daemon_version)
    judgements = {}
    for name, rule in run_rules().items():
        if all(name in trace.judgements and trace.judgements[name].reason in _LEFT_OPEN for trace in judged):
            tally = Tally()
            tally.run(rule, run)
            judgements[name] = tally.judgement(name)
    return {name: judgement for name, judgement in judgements.items() if judgement.reason is not Reason.NO_SUBJECT}


def exit_status(verdicts: Sequence[Verdict], *, strict: bool = False, recorded: bool = True) -> int:
    """0 conforming, 1 any FAIL (any WARN too when strict), 3 nothing was tested, 4 any ERROR.

    Unless something was `recorded`, nothing was tested: a connector that sends nothing breaks no rule about silence.
    """
    present = set(verdicts)
    if Verdict.ERROR in present:
        return 4
    if Verdict.FAIL in present or (strict and Verdict.WARN in present):
        return 1
    return 0 if recorded and present & {Verdict.PASS, Verdict.WARN} else 3
