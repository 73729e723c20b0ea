"""What came of judging: one trace, or the traces of a run; the verdict of each requirement, and the exit status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field

from signet_conformance.engine.tally import Tally
from signet_conformance.errors import counted
from signet_conformance.facts import Recording, WholeRun
from signet_conformance.finding import FOLDING_ORDER, Judgement, Reason, Verdict
from signet_conformance.rules import run_rules
from signet_conformance.trace import Trace


class Judged(Struct, frozen=True, dict=True):
    """One trace with a judgement for every requirement of the catalogue, in its order.

    `daemon` and `harness` hold the judgements of these sides, apart: they make no verdict of the connector's worse.
    The harness's are drawn from what reached its model.
    """

    trace: Trace
    daemon_version: str
    judgements: Mapping[str, Judgement]
    daemon: Mapping[str, Judgement] = field(default_factory=dict)
    harness: Mapping[str, Judgement] = field(default_factory=dict)

    # No field, so that `replace` does not hand it on: a trace that was replaced has its own.
    @cached_property
    def recording(self) -> Recording:
        """The trace as rules read it, built once: the one that was judged."""
        return Recording(self.trace, self.daemon_version)

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
        judged.__dict__["recording"] = recording
        return judged

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """The verdict of each requirement on the connector."""
        return {name: judgement.verdict for name, judgement in self.judgements.items()}


class JudgedRun(Struct, frozen=True):
    """Several traces judged, and the judgement of each requirement over all of them."""

    traces: Sequence[Judged]
    together: Mapping[str, Judgement]


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
        counted(subjects, "subject")
        if verdict is Verdict.PASS
        else "; ".join(messages[:3]) + (" …" if len(messages) > 3 else "")
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
            tally = Tally()
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
