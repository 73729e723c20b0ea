"""What `check` does once its options are read: judge, show, write, conclude."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any

from signet_conformance.cli.commands import PROGRAM
from signet_conformance.cli.declared import parse_declared
from signet_conformance.cli.inputs import TraceFiles
from signet_conformance.cli.judging import Files
from signet_conformance.cli.output import demand_apart, report_stream
from signet_conformance.cli.report_files import ReportFiles
from signet_conformance.cli.selection import selected
from signet_conformance.contract import version_document
from signet_conformance.errors import UsageError, printable
from signet_conformance.outcome.conclusion import Terms
from signet_conformance.outcome.coverage import percentage
from signet_conformance.outcome.declared import Declarations
from signet_conformance.outcome.known_failures import KnownFailures
from signet_conformance.outcome.known_options import KnownOptions
from signet_conformance.reports.command_lines import shell_command
from signet_conformance.trace import Declared


def check(
    recordings: TraceFiles,
    *,
    traces: Sequence[str],
    only: Sequence[str],
    contract: str | None,
    strict: bool,
    coverage: bool,
    coverage_fail_under: str | None,
    show_all: bool,
    summary: bool,
    reports: ReportFiles,
    force: bool,
    workers: int,
    target: str | None,
    known: KnownOptions,
    declared: Mapping[str, Any],
) -> int:
    """Judge the recordings that `traces` name; the exit status is the run's."""
    failures = KnownFailures.parse(known)
    options = parse_declared(**declared)
    profile = Declared()
    if target is not None:
        # Profiles take a while to import, and few recordings need one.
        from signet_conformance import targets

        profile = targets.load(target).declared_of_recordings
    if contract is not None:
        version_document(contract)
    terms = Terms(
        only=selected(only, "-k/--only"),
        contract=contract,
        strict=strict,
        least_coverage=None
        if coverage_fail_under is None
        else percentage(coverage_fail_under, "--coverage-fail-under"),
        known=failures,
        target=target,
        declared=Declarations(options, profile, target),
    )
    _demand_no_report_among(traces, reports)
    run = Files(terms, measured=coverage or reports.shows_coverage, selftest=reports.selftest, workers=workers)
    files = list(recordings.files)
    for complaint in recordings.complaints:
        run.complain(complaint)
    for note in recordings.notes:
        run.pass_over(note)
    if not files:
        return UsageError.exit_status
    demand_apart(
        [*reports.files, failures.written], [*files, *(file.path for file in failures.files), reports.selftest_file]
    )
    with ExitStack() as stack:
        stream = stack.enter_context(report_stream(reports.output, force))
        run.reports = reports.open(stream, stack, force)
        if reports.document is not None:
            for _ in run.each(_counted(files, stack), files):
                pass
            conclusion = run.conclude()
        else:
            from signet_conformance.cli.check_text import Shown

            shown = Shown(stream, traces, show_all=show_all, summary=summary, coverage=coverage)
            for judged in run.each(_counted(files, stack), files):
                shown.trace(judged, terms.known_in(judged))
            conclusion = run.conclude()
            shown.end(conclusion)
        run.close_reports(conclusion)
    written = conclusion.write_baseline()
    if written is not None and reports.document is None:
        print(written)
    if reports.output is not None:
        from signet_conformance.cli.check_text import closing_line

        print(closing_line(conclusion, sys.stdout))
    # With a document on stdout, nothing else is written there.
    if not summary and (reports.output is not None or reports.document is None):
        for file in reports.files:
            print(f"report: {printable(file, 1000)}")
    return conclusion.status


def _demand_no_report_among(traces: Sequence[str], reports: ReportFiles) -> None:
    """Raise UsageError where `--json FILE` was meant: the option takes no file, so FILE would be read as a trace."""
    meant = next((word for word in traces if word.lower().endswith(".json")), None)
    if reports.document is not None and reports.output is None and meant is not None:
        option = f"--{reports.document.name}"
        others = [word for word in traces if word != meant] or ["TRACE"]
        raise UsageError(
            f"takes no file, and {printable(meant, 200)} is not a recording",
            where=option,
            remedy=shell_command([PROGRAM, "check", *others, option, "--output", meant]),
        )


def _counted(files: Sequence[str], stack: ExitStack) -> Iterable[str]:
    """The files, counted on a terminal, which shows nothing of them while they are judged."""
    if len(files) == 1 or not sys.stderr.isatty():
        return files
    from signet_conformance.reports.progress import counted
    from signet_conformance.reports.terminal import is_live

    return stack.enter_context(closing(counted(files, "judging", sys.stderr))) if is_live(sys.stderr) else files
