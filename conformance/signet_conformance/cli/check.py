"""`signet-conformance check`: verdicts over recorded traces, offline."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from typing import Any

import click

from signet_conformance.children.spread import processors
from signet_conformance.cli.commands import PROGRAM
from signet_conformance.cli.declared import declared_options, parse_declared
from signet_conformance.cli.inputs import trace_files
from signet_conformance.cli.judging import Files
from signet_conformance.cli.known import known_options
from signet_conformance.cli.output import demand_apart, report_stream
from signet_conformance.cli.report_files import ReportFiles, report_options
from signet_conformance.cli.selection import requirement_names, selected
from signet_conformance.contract import version_document
from signet_conformance.errors import UsageError, printable
from signet_conformance.outcome.conclusion import Terms
from signet_conformance.outcome.coverage import percentage
from signet_conformance.outcome.declared import Declarations
from signet_conformance.outcome.known_failures import KnownFailures
from signet_conformance.reports.command_lines import shell_command
from signet_conformance.rules import rules
from signet_conformance.trace import Declared

_EPILOG = """\b
Examples:
  signet-conformance check run.jsonl
  signet-conformance check runs/ --json --output report.json
  signet-conformance check runs/ --html report.html --sarif report.sarif
  signet-conformance check by-hand.jsonl --agent atlas --bound start=15
  signet-conformance check run.jsonl -k SIG-AGENT --all

\b
Exit status: 0 conforming, 1 a MUST is breached (with --strict a SHOULD too),
2 wrong usage or a file that cannot be read, 3 nothing was tested,
4 not all could be judged: the kit itself failed.
"""


@click.command(
    "check",
    help="Judge each TRACE (a file, a folder of *.jsonl files, a glob, or - for stdin) by every requirement, offline."
    " Files packed with gzip or zstd (*.jsonl.gz, *.jsonl.zst) are read as they are.",
    epilog=_EPILOG,
)
@click.argument("traces", nargs=-1, required=True, metavar="TRACE...")
@click.option(
    "--only",
    "-k",
    "only",
    shell_complete=requirement_names,
    multiple=True,
    metavar="REQUIREMENT",
    help="Judge by this requirement alone, or by a family of them (SIG-AGENT) or a glob (SIG-*-001); repeatable.",
)
@click.option(
    "--contract", metavar="VERSION", help="Judge by this contract version, not by that of each trace's daemon."
)
@click.option("--strict", is_flag=True, help="Let a WARN fail too (exit 1).")
@click.option("--coverage", is_flag=True, help="Show how much of the contract the traces exercise, and what they miss.")
@click.option("--coverage-fail-under", metavar="PERCENT", help="Fail (exit 1) when they exercise less than that.")
@click.option("--all", "show_all", is_flag=True, help="Show PASS and NOT-APPLICABLE too.")
@click.option(
    "--summary",
    "--quiet",
    "-q",
    "summary",
    is_flag=True,
    help="Show one line for each requirement that is breached or undecided, and the closing line.",
)
@report_options
@click.option("--force", is_flag=True, help="Let a report replace a file.")
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Judge a long recording, or several, by so many processes (default: one for each processor).",
)
@click.option("--target", metavar="NAME", help="Declare what the profile of this target declares.")
@known_options
@declared_options
def command(
    *,
    traces: tuple[str, ...],
    only: tuple[str, ...],
    contract: str | None,
    strict: bool,
    coverage: bool,
    coverage_fail_under: str | None,
    show_all: bool,
    summary: bool,
    reports: ReportFiles,
    force: bool,
    workers: int | None,
    target: str | None,
    known: KnownFailures,
    **declared: Any,
) -> int:
    """Judge traces; the exit status is the run's."""
    options = parse_declared(**declared)
    profile = Declared()
    if target is not None:
        # Profiles take a while to import, and few recordings need one.
        from signet_conformance import targets

        profile = targets.load(target).declared_of_recordings
    if contract is not None:
        version_document(contract)
    terms = Terms(
        only=selected(only, list(rules()), "-k/--only"),
        contract=contract,
        strict=strict,
        least_coverage=None
        if coverage_fail_under is None
        else percentage(coverage_fail_under, "--coverage-fail-under"),
        known=known,
        target=target,
        declared=Declarations(options, profile, target),
    )
    _demand_no_report_among(traces, reports)
    run = Files(
        terms, measured=coverage or reports.shows_coverage, selftest=reports.selftest, workers=workers or processors()
    )
    recordings = trace_files(traces)
    files = list(recordings.files)
    for complaint in recordings.complaints:
        run.complain(complaint)
    for note in recordings.notes:
        run.pass_over(note)
    if not files:
        return UsageError.exit_status
    demand_apart([*reports.files, known.written], [*files, *(file.path for file in known.files), reports.selftest_file])
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
