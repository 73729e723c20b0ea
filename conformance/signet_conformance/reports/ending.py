"""The input of a report writer: each judged trace as it comes, then the end of the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Protocol, Self

from msgspec import Struct, field
from msgspec.structs import replace

from signet_conformance.contract import REFERENCE_DAEMON, contract_version_of, version_key
from signet_conformance.engine import JudgedTrace
from signet_conformance.errors import printable
from signet_conformance.finding import Judgement, Verdict
from signet_conformance.outcome.combined_verdict import CombinedVerdict, run_level_breaches, together
from signet_conformance.outcome.conclusion import Conclusion
from signet_conformance.outcome.coverage import Coverage
from signet_conformance.outcome.generated_summary import GeneratedSummary, breach_lines
from signet_conformance.outcome.identity import Identity
from signet_conformance.outcome.known_failures import KnownInRun
from signet_conformance.outcome.next_contract import NewerContract
from signet_conformance.outcome.reach import UnreachableParts
from signet_conformance.outcome.time_spent import TimeSpent
from signet_conformance.trace.marks import ScenarioMark, marks_of


class NotJudged(Struct, frozen=True):
    """Parts of a run that were not judged: recordings, scenarios by name, and how many `others`."""

    unread: Sequence[str] = ()
    scenarios: Sequence[str] = ()
    others: bool = False

    @classmethod
    def of(cls, conclusion: Conclusion) -> Self:
        """The recordings that could not be read, and the scenarios that broke off or were given up."""
        unread = [printable(failure.where or failure.message, 400) for failure in conclusion.unread]
        cut_short = [scenario_of(each) or PurePath(each.trace.path or "a trace").stem for each in conclusion.broken_off]
        if (shortfall := conclusion.shortfall) is None:
            return cls(unread, cut_short)
        named = [*(broken.scenario for broken in shortfall.broken), *shortfall.left]
        return cls(unread, [*cut_short, *named], others=not named)


def scenario_of(judged: JudgedTrace) -> str | None:
    """The scenario that a trace was recorded of, by its mark."""
    return next((mark.name for mark in marks_of(judged.trace, ScenarioMark) if mark.name), None)


class RunEnding(Struct, frozen=True):
    """The end of a judged run.

    `judged` are its traces, of which the essence is enough, `status` is its exit status, `notes` are lines about
    what was passed over or let pass. `judgements` replace the verdicts of the traces alone, for generated sessions
    decide requirements too. `contract` is the version that was asked for, `options` are words of a command line that
    judges a trace of the run as the run did. `known` says why what only the run as a whole breaches may stand,
    `because` what fails the run beside its verdicts. `selftest` is a kill matrix (signet-selftest/1) to show beside.
    `generated` is what came of generated sessions. `part` says that traces of the run are missing. `identity` tells
    the run from others, `time_spent` where its time went, if that was asked for. `lacks` is what was not judged,
    `reach` what the model cannot reach, `newer` what the next contract would say. `in_every_session` are requirements
    that each session breaks, `skipped` kinds of step that the driver skipped, with the number of their recordings.
    """

    judged: Sequence[JudgedTrace]
    status: int
    notes: Sequence[str] = ()
    coverage: Coverage | None = None
    judgements: Mapping[str, Judgement] = field(default_factory=dict)
    contract: str | None = None
    options: Sequence[str] = ()
    known: Mapping[str, str] = field(default_factory=dict)
    because: str = ""
    selftest: Mapping[str, Any] | None = None
    generated: GeneratedSummary | None = None
    part: bool = False
    identity: Identity = field(default_factory=Identity)
    time_spent: TimeSpent | None = None
    lacks: NotJudged | None = None
    reach: UnreachableParts | None = None
    newer: NewerContract | None = None
    in_every_session: Sequence[str] = ()
    skipped: Mapping[str, int] = {}

    @classmethod
    def of(cls, conclusion: Conclusion, selftest: Mapping[str, Any] | None = None) -> Self:
        """The end of a run with this conclusion; `selftest` is the kill matrix to show beside it."""
        return cls(
            conclusion.judged,
            conclusion.status,
            _notes(conclusion),
            conclusion.coverage,
            conclusion.judgements,
            conclusion.terms.contract,
            conclusion.terms.words(),
            conclusion.known_reasons,
            conclusion.because,
            selftest,
            conclusion.generated,
            part=conclusion.lacks_scenarios,
            identity=conclusion.identity,
            lacks=NotJudged.of(conclusion),
            reach=conclusion.reach,
            newer=conclusion.newer,
            in_every_session=conclusion.in_every_session,
            skipped=conclusion.skipped,
        )

    def run_level_breaches(self) -> JudgedTrace | None:
        """What only the run as a whole breaches, as one more judged trace; None when nothing is."""
        return None if self.part else run_level_breaches(self.judged)

    def together(self) -> Mapping[str, CombinedVerdict]:
        """Each requirement over the whole run, in the catalogue's order."""
        judged = dict(together(self.judged))
        for name, judgement in self.judgements.items():
            before = judged.get(name)
            if before is None or before.verdict is not judgement.verdict:
                evidence = [(None, finding) for finding in judgement.findings[:1]]
                judged[name] = CombinedVerdict(judgement.verdict, judgement.reason, evidence)
            elif before.reason is not judgement.reason:
                judged[name] = replace(before, reason=judgement.reason)
        return judged

    def verdicts(self) -> Mapping[str, Verdict]:
        """The verdict of each requirement over the whole run."""
        return {name: whole.verdict for name, whole in self.together().items()}

    def closing_line(self, verdicts: Mapping[str, Verdict]) -> str:
        """The verdict of the run in one line."""
        from signet_conformance.reports.text import closing_line

        told = self.in_every_session
        return closing_line(verdicts, len(self.judged), self.status, because=self.because, in_every_session=told)

    def contract_version(self) -> str:
        """The contract version of the run: the one asked for, or the newest that a daemon of the traces serves."""
        served = [contract_version_of(each.daemon_version) for each in self.judged]
        return self.contract or max(served or [contract_version_of(REFERENCE_DAEMON)], key=version_key)


def _notes(conclusion: Conclusion) -> list[str]:
    notes = ["; ".join(map(str.strip, str(failure).split("\n"))) for failure in conclusion.unread]
    notes += conclusion.remarks
    notes += conclusion.broken_off_notes()
    notes += [] if conclusion.shortfall is None else conclusion.shortfall.notes()
    notes += _known_notes(conclusion.known)
    notes += filter(None, [conclusion.coverage_note()])
    notes += () if conclusion.generated is None else conclusion.generated.coverage_lines()
    breaches = () if conclusion.generated is None else conclusion.generated.breaches
    names = dict.fromkeys(breach.requirement for breach in breaches)
    return notes + [f"{name}: {line}" for name in names for line in breach_lines(breaches, name)]


def _known_notes(known: KnownInRun) -> Iterator[str]:
    if known.covered or known.fails:
        # Imported when there is something to tell: a document for programs needs no terminal.
        from signet_conformance.reports.terminal import MAX_WIDTH
        from signet_conformance.reports.text import known_lines

        yield from known_lines(known, MAX_WIDTH, colour=False)


class ReportWriter(Protocol):
    """One report of a run, written somewhere as the run goes."""

    def add(self, judged: JudgedTrace, known: Mapping[str, str]) -> None:
        """Take one trace. `known` names the requirements whose failure is known in it, each with why it may stand."""

    def close(self, ending: RunEnding) -> None:
        """Write what can be said of the whole run only; nothing is added after it."""
