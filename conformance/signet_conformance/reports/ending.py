"""The interface of report writers: they get each judged trace in turn, then the end of the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import PurePath
from typing import Any, Protocol, Self

from msgspec import Struct

from signet_conformance.engine import JudgedTrace
from signet_conformance.errors import printable
from signet_conformance.finding import Verdict
from signet_conformance.outcome.conclusion import Conclusion
from signet_conformance.outcome.generated_summary import breach_lines
from signet_conformance.outcome.known_failures import KnownInRun
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


class RunEnding(Struct, frozen=True, dict=True):
    """The end of a judged run: its conclusion, and what reports show beside it.

    `selftest` is a kill matrix (signet-selftest/1); `time_spent` is the time of each part of the run, if the user asked
    for it. `ended_with` is the exit status of the program around the run, if it differs.
    """

    conclusion: Conclusion
    selftest: Mapping[str, Any] | None = None
    time_spent: TimeSpent | None = None
    ended_with: int | None = None

    @property
    def status(self) -> int:
        """The exit status."""
        return self.conclusion.status if self.ended_with is None else self.ended_with

    @cached_property
    def notes(self) -> Sequence[str]:
        """Lines about what was not judged, and what was allowed to fail."""
        return _notes(self.conclusion)

    @property
    def lacks(self) -> NotJudged:
        """The parts of the run that were not judged."""
        return NotJudged.of(self.conclusion)

    @property
    def options(self) -> Sequence[str]:
        """The words of a command line that judges a trace of the run as the run did."""
        return self.conclusion.terms.words()

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """The verdict of each requirement over the whole run, in the catalogue's order."""
        return {name: judgement.verdict for name, judgement in self.conclusion.judgements.items()}

    @property
    def closing_line(self) -> str:
        """The verdict of the run in one line."""
        from signet_conformance.reports.text import closing_line

        return closing_line(self.conclusion, self.status)


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
        # Imported late: reports for programs need no terminal.
        from signet_conformance.reports.terminal import MAX_WIDTH
        from signet_conformance.reports.text import known_lines

        yield from known_lines(known, MAX_WIDTH, colour=False)


class ReportWriter(Protocol):
    """Writes one report of a run while the run goes on."""

    def add(self, judged: JudgedTrace, known: Mapping[str, str]) -> None:
        """Take one trace. `known` maps each requirement whose failure is known in it to the reason."""

    def close(self, ending: RunEnding) -> None:
        """Write what only the whole run shows, and end the report."""
