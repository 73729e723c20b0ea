"""The section of pytest's summary for a conformance run, part by part."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from msgspec import Struct

from signet_conformance.errors import printable
from signet_conformance.pytest_plugin.run import ConformanceRun
from signet_conformance.reports import run_text
from signet_conformance.reports.command_lines import MAX_PAGES
from signet_conformance.reports.evidence import known_requirement
from signet_conformance.reports.run_text import time_spent_lines
from signet_conformance.reports.terminal import Paragraph, draw, labelled_command


class SummaryContext(Struct, frozen=True):
    """The data of the summary's parts: the run, the reports of undecided requirements, its status, columns.

    `verbose` asks for what no verdict rests on.
    """

    run: ConformanceRun
    open: Iterable[pytest.TestReport]
    status: int
    width: int
    verbose: bool


def write_summary(run: ConformanceRun, terminalreporter: Any, exitstatus: int) -> None:
    """Write the section; it is short where no requirement was tested."""
    open_ones = [report for report in terminalreporter.stats.get("inconclusive", []) if run.owns(report.nodeid)]
    columns, verbose = shutil.get_terminal_size().columns, terminalreporter.verbosity > 0
    told = SummaryContext(run, open_ones, run.status(exitstatus), columns, verbose)
    terminalreporter.section(run.title)
    for part in PARTS if run.conclusion.verdicts else PARTS_WITHOUT_A_VERDICT:
        for line in part(told):
            terminalreporter.write_line(line)


def undecided(told: SummaryContext) -> Iterable[str]:
    """Why requirements stayed undecided, and the command that shows them."""
    names: list[str] = []
    for report in told.open:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        names.append(report.nodeid.rsplit("::", 1)[-1])
        yield from draw([Paragraph(f"{names[-1]} {printable(reason, 300)}", 0, 4)], told.width)
    if known := [name for name in names if known_requirement(name) is not None]:
        yield from draw([labelled_command("page", ["signet-conformance", "explain", *known[:MAX_PAGES]])], told.width)


def notes(told: SummaryContext) -> Iterable[str]:
    """Problems of the recordings and the installation."""
    return run_text.note_lines(told.run.recordings.read_so_far)


def nothing_tested(told: SummaryContext) -> Iterable[str]:
    """That no item of the kit ran."""
    yield f"nothing was tested: no requirement was judged (exit {told.status})"


def ending(told: SummaryContext) -> Iterable[str]:
    """The conclusion of the run."""
    run = told.run
    return run_text.closing_lines(
        run_text.ClosingText(run.conclusion, told.status, told.width, baseline=run.baseline_line, verbose=told.verbose)
    )


def time_spent(told: SummaryContext) -> Iterable[str]:
    """Where the time of the run went, if that was asked for."""
    spent = told.run.time_spent
    return () if spent is None else time_spent_lines(spent, told.width)


def files(told: SummaryContext) -> Iterable[str]:
    """Where report and traces are."""
    folder = told.run.folder
    if told.run.asked.report:
        yield run_text.reports_line(folder)
    elif told.run.keeps_traces:
        yield f"traces: {folder}"


Part = Callable[[SummaryContext], Iterable[str]]
PARTS_WITHOUT_A_VERDICT: tuple[Part, ...] = (undecided, notes, nothing_tested)
PARTS: tuple[Part, ...] = (undecided, notes, ending, time_spent, files)
