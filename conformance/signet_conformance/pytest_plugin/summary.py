"""What a conformance run says at the end of a pytest run: a section of pytest's summary, part by part."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from signet_conformance.errors import printable
from signet_conformance.outcome.broken_off import warnings_of
from signet_conformance.outcome.conclusion import Conclusion
from signet_conformance.pytest_plugin.run import ConformanceRun
from signet_conformance.reports.known import known_lines
from signet_conformance.reports.registry import FORMATS
from signet_conformance.reports.remarks import remarks
from signet_conformance.reports.requirement_pages import explain_note
from signet_conformance.reports.text import closing_line, daemon_summary_lines, summary_lines
from signet_conformance.trace.marks import SkippedMark, marks_of


@dataclass(frozen=True, slots=True)
class Told:
    """What the parts are made of: the run, the reports of requirements that stayed open, its status, columns."""

    run: ConformanceRun
    open: Iterable[pytest.TestReport]
    status: int
    width: int

    @property
    def conclusion(self) -> Conclusion:
        """What the run came to."""
        return self.run.conclusion


def write_summary(run: ConformanceRun, terminalreporter: Any, exitstatus: int) -> None:
    """Write the section; it is short where no requirement was tested."""
    told = Told(
        run, terminalreporter.stats.get("inconclusive", []), run.status(exitstatus), shutil.get_terminal_size().columns
    )
    terminalreporter.section("signet conformance")
    for part in PARTS if run.conclusion.verdicts else PARTS_WITHOUT_A_VERDICT:
        for line in part(told):
            terminalreporter.write_line(line)


def undecided(told: Told) -> Iterable[str]:
    """Why requirements stayed open."""
    for report in told.open:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        name = report.nodeid.rsplit("::", 1)[-1]
        yield f"{name} {printable(reason, 300)} {explain_note(name)}"


def notes(told: Told) -> Iterable[str]:
    """What is off about recordings and installation."""
    read = told.run.recordings.read
    said = (*(warning for trace in read for warning in warnings_of(trace)), *remarks(read))
    return [f"note: {printable(text, 600)}" for text in said]


def nothing_tested(told: Told) -> Iterable[str]:
    """That no item of the kit ran."""
    yield f"nothing was tested: no requirement was judged (exit {told.status})"


def known(told: Told) -> Iterable[str]:
    """Known failures, and entries that fail the run."""
    return known_lines(told.conclusion.known, told.width, colour=False)


def verdicts(told: Told) -> Iterable[str]:
    """The verdicts, counted by area."""
    return summary_lines([("this run", told.conclusion.verdicts)], told.width)


def daemon_side(told: Told) -> Iterable[str]:
    """What the daemon breached."""
    return daemon_summary_lines(told.conclusion.judged, told.width)


def closing(told: Told) -> Iterable[str]:
    """The verdict of the run in one line."""
    concluded = told.conclusion
    yield closing_line(concluded.verdicts, len(concluded.judged), told.status, because=concluded.because)


def broken_off(told: Told) -> Iterable[str]:
    """The scenarios that are missing from the verdicts."""
    shortfall = told.conclusion.shortfall
    return () if shortfall is None else shortfall.lines()


def written_baseline(told: Told) -> Iterable[str]:
    """The baseline that was written."""
    return [told.run.baseline_line] if told.run.baseline_line is not None else []


def generated_sessions(told: Told) -> Iterable[str]:
    """What came of the generated sessions."""
    generated = told.conclusion.generated
    return () if generated is None else generated.lines()


def coverage(told: Told) -> Iterable[str]:
    """How much of the contract was exercised, and whether that is too little."""
    measured = told.conclusion.coverage
    if measured is not None:
        parts = ", ".join(f"{len(part.exercised)} of {part.total} {part.name}" for part in measured.parts)
        yield f"coverage: {parts}; {measured.percent:.0f} % of the contract"
    if (note := told.conclusion.coverage_note()) is not None:
        yield note


def silence(told: Told) -> Iterable[str]:
    """What to look at when the connector never called."""
    if told.conclusion.recorded:
        return
    yield "no request was recorded: does the connector call the address in SIGNET_DAEMON_URL?"
    skips = (mark for one in told.conclusion.judged for mark in marks_of(one.trace, SkippedMark))
    if (first := next(skips, None)) is not None:
        yield f"the first step that was skipped: {printable(first.reason, 300)}"


def files(told: Told) -> Iterable[str]:
    """Where report and traces are."""
    folder = told.run.folder
    if told.run.asked.report:
        first, *others = FORMATS.values()
        yield f"report: {folder / first.file}, and beside it {', '.join(kind.suffix for kind in others)}"
    elif told.run.keeps_traces:
        yield f"traces: {folder}"


Part = Callable[[Told], Iterable[str]]
PARTS_WITHOUT_A_VERDICT: tuple[Part, ...] = (undecided, notes, nothing_tested)
PARTS: tuple[Part, ...] = (
    undecided,
    notes,
    known,
    verdicts,
    daemon_side,
    closing,
    broken_off,
    written_baseline,
    generated_sessions,
    coverage,
    silence,
    files,
)
