"""The files of one run of `check`, judged one after the other, and what comes of the run as a whole."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from signet_conformance.cli.commands import tell
from signet_conformance.cli.recordings import read_recording
from signet_conformance.engine import Judged, exit_status, judge
from signet_conformance.errors import SignetConformanceError, UsageError
from signet_conformance.finding import Verdict
from signet_conformance.outcome.baseline import Outcome, Verdicts
from signet_conformance.outcome.coverage import Meter, coverage_lines
from signet_conformance.outcome.known_failures import (
    KnownFailures,
    by_target,
    failing_text,
    remaining,
    target_of,
)
from signet_conformance.outcome.together import essence
from signet_conformance.reports import json_document
from signet_conformance.reports.ending import Ending, Report
from signet_conformance.trace import Declared, Trace

UNREADABLE = UsageError.exit_status


@dataclass(frozen=True, slots=True)
class Settings:
    """What the options ask for. `traces` and `options` are the words that repeat them in a command to replay."""

    traces: Sequence[str]
    only: frozenset[str] | None
    contract: str | None
    declare: Callable[[Declared], Declared]
    options: Sequence[str]
    known: KnownFailures
    target: str | None
    strict: bool
    show_all: bool
    quiet: bool
    coverage: bool
    measured: bool
    least_coverage: float | None


class Run:
    """The files of one run, judged one after the other; what was judged is kept in essence only."""

    def __init__(self, settings: Settings, selftest: Mapping[str, Any] | None = None) -> None:
        self.settings = settings
        self._selftest = selftest
        self.judged: list[Judged] = []
        self.complaints: list[SignetConformanceError] = []
        self.notes: list[str] = []
        self.known = Outcome()
        self.reports: list[Report] = []
        self.meter = Meter(settings.contract) if settings.measured else None

    def complain(self, failure: SignetConformanceError) -> None:
        """Tell what cannot be judged; the rest of the run goes on."""
        sys.stdout.flush()
        tell(failure)
        self.complaints.append(failure)

    def pass_over(self, note: str) -> None:
        """Tell of a file that is none of the run's."""
        sys.stdout.flush()
        print(f"note: {note}", file=sys.stderr)
        self.notes.append(note)

    def each(self, files: Sequence[str]) -> Iterator[Judged]:
        """Judge the files that can be read, in order."""
        for file in files:
            # Traces hold millions of objects and no cycles: looking for any takes as long as a third of the judging.
            gc.disable()
            try:
                judged = judge(self._declared(read_recording(file)), self.settings.only, self.settings.contract)
            except SignetConformanceError as failure:
                failure.where = failure.where or file
                self.complain(failure)
                continue
            finally:
                gc.enable()
            self.judged.append(essence(judged))
            if self.meter is not None:
                self.meter.add(judged)
            known = self.settings.known.reasons(target_of(judged, self.settings.target), judged.verdicts)
            for report in self.reports:
                report.add(judged, known)
            yield judged

    def _declared(self, trace: Trace) -> Trace:
        return replace(trace, header=replace(trace.header, declared=self.settings.declare(trace.header.declared)))

    def hold_against_known(self) -> None:
        """Let the failures pass that are known, once all files are judged."""
        self.known = self.settings.known.outcome(self.by_target())

    def by_target(self) -> Verdicts:
        """The verdicts of the run by target."""
        return by_target(self.judged, self.settings.target)

    def close_reports(self, status: int) -> None:
        """Write the end of every report."""
        warnings = ["; ".join(map(str.strip, str(complaint).split("\n"))) for complaint in self.complaints]
        notes = [*self.notes, *self._known_notes(), *self._too_little_lines()]
        measured = None if self.meter is None else self.meter.coverage()
        settings = self.settings
        ending = Ending(
            self.judged,
            status,
            [*warnings, *notes],
            measured,
            contract=settings.contract,
            options=settings.options,
            known=settings.known.everywhere(self.judged, settings.target),
            because=self.because(),
            selftest=self._selftest,
        )
        for report in self.reports:
            report.close(ending)

    def _known_notes(self) -> Sequence[str]:
        if not (self.known.covered or self.known.fails):
            return ()
        # Imported when there is something to tell: a document for programs needs no terminal.
        from signet_conformance.reports.known import known_lines
        from signet_conformance.reports.terminal import MAX_WIDTH

        return known_lines(self.known, MAX_WIDTH, colour=False)

    def status(self) -> int:
        """The exit status: that of unreadable input before that of the verdicts, that of their entries last."""
        if self.complaints:
            return UNREADABLE
        if not self.known.covered:
            status = json_document.status(self.judged, self.settings.strict)
        else:
            left = remaining(self.judged, self.settings.target, self.known)
            # What is known to fail was tested, even where nothing else was.
            recorded = any(one.trace.exchanges for one in self.judged)
            status = exit_status([*left, Verdict.PASS], strict=self.settings.strict, recorded=recorded)
        fails = self.known.fails or self._covers_too_little()
        return 1 if status in (0, 3) and fails else status

    def because(self) -> str:
        """Why the run fails beside its verdicts, in words; nothing where it does not."""
        return " and ".join(filter(None, [failing_text(self.known), "too little coverage" * self._covers_too_little()]))

    def _covers_too_little(self) -> bool:
        least = self.settings.least_coverage
        return self.meter is not None and least is not None and self.meter.coverage().percent < least

    def coverage_lines(self) -> list[str]:
        """What the traces exercise, for people; nothing where it was not asked for."""
        if self.meter is None or not (self.settings.coverage or self.settings.least_coverage is not None):
            return []
        return [*coverage_lines(self.meter.coverage(), missed=self.settings.coverage), *self._too_little_lines()]

    def _too_little_lines(self) -> list[str]:
        if not self._covers_too_little():
            return []
        return [f"coverage is less than {self.settings.least_coverage:g} %: exercise more, or lower the bound"]
