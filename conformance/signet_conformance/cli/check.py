"""`signet-conformance check`: verdicts over recorded traces, offline."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, TextIO

import click

from signet_conformance import targets
from signet_conformance.cli.declared import Overrides, declared_options, merged
from signet_conformance.cli.inputs import trace_files
from signet_conformance.cli.judging import UNREADABLE, Run, Settings
from signet_conformance.cli.known import known_options
from signet_conformance.cli.output import demand_apart, report_stream
from signet_conformance.cli.report_files import ReportFiles, report_options
from signet_conformance.cli.selection import selected
from signet_conformance.contract import version_document
from signet_conformance.engine import Judged
from signet_conformance.errors import printable
from signet_conformance.outcome.coverage import percentage
from signet_conformance.outcome.known_failures import KnownFailures, target_of
from signet_conformance.outcome.together import run_level_breaches, verdicts_of
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
    help="Judge each TRACE (a file, a folder of *.jsonl files, or a glob) by every requirement, offline.",
    epilog=_EPILOG,
)
@click.argument("traces", nargs=-1, required=True, metavar="TRACE...")
@click.option(
    "--only",
    "-k",
    "only",
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
@click.option("--quiet", "-q", is_flag=True, help="Show the closing line alone.")
@report_options
@click.option("--force", is_flag=True, help="Let a report replace a file.")
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
    quiet: bool,
    reports: ReportFiles,
    force: bool,
    target: str | None,
    baseline_file: str | None,
    flaky: str | None,
    write_baseline: str | None,
    owner: str | None,
    reason: str | None,
    expires: str | None,
    **declared: Any,
) -> int:
    """Judge traces; the exit status is the run's."""
    overrides = Overrides.parse(**declared)
    profile = Declared() if target is None else targets.load(target).declared
    if contract is not None:
        version_document(contract)
    known = KnownFailures.parse(baseline_file, flaky, write_baseline, owner, reason, expires)
    settings = Settings(
        traces=traces,
        only=selected(only, list(rules()), "-k/--only"),
        contract=contract,
        declare=lambda header: overrides.applied_to(merged(profile, header)),
        options=[*_words("--contract", contract), *_words("--target", target), *overrides.words()],
        known=known,
        target=target,
        strict=strict,
        show_all=show_all,
        quiet=quiet,
        coverage=coverage,
        measured=coverage or coverage_fail_under is not None or reports.shows_coverage,
        least_coverage=None
        if coverage_fail_under is None
        else percentage(coverage_fail_under, "--coverage-fail-under"),
    )
    run = Run(settings, reports.selftest)
    found = trace_files(traces)
    files = list(found.files)
    for complaint in found.complaints:
        run.complain(complaint)
    for note in found.notes:
        run.pass_over(note)
    if not files:
        return UNREADABLE
    demand_apart([*reports.files, write_baseline], [*files, baseline_file, flaky, reports.selftest_file])
    with ExitStack() as stack:
        stream = stack.enter_context(report_stream(reports.output, force))
        run.reports = reports.open(stream, stack, force)
        status = _write_text(run, files, stream) if reports.document is None else _judge_all(run, files)
        run.close_reports(status)
    written = known.write(run.by_target())
    if written is not None and reports.document is None:
        print(written)
    if reports.output is not None:
        print(_closing(run, status, sys.stdout))
    # With a document on stdout, nothing else is written there.
    if not quiet and (reports.output is not None or reports.document is None):
        for file in reports.files:
            print(f"report: {printable(file, 1000)}")
    return status


def _words(option: str, value: str | None) -> list[str]:
    return [] if value is None else [f"{option}={value}"]


def _judge_all(run: Run, files: Sequence[str]) -> int:
    for _ in run.each(files):
        pass
    run.hold_against_known()
    return run.status()


def _write_text(run: Run, files: Sequence[str], stream: TextIO) -> int:
    # Imported when there is something to draw: a document for programs needs no terminal.
    from signet_conformance.reports import text
    from signet_conformance.reports.known import known_lines
    from signet_conformance.reports.terminal import terminal_width, wants_colour

    settings = run.settings
    width, colour = terminal_width(), wants_colour(stream)
    explained: set[str] = set()
    for judged in run.each(files):
        if settings.quiet:
            continue
        for block in _blocks(judged, settings, explained, width, colour):
            print(block, end="\n\n", file=stream)
    run.hold_against_known()
    status = run.status()
    whole = run_level_breaches(run.judged)
    if whole is not None and not settings.quiet:
        for name in text.breach_names(whole):
            block = text.failure_text(whole, name, width, colour, options=settings.options, replayed=settings.traces)
            print(block, end="\n\n", file=stream)
    if not settings.quiet and run.judged:
        rows = [
            (one.trace.path or "trace", {name: found.verdict for name, found in one.judgements.items()})
            for one in run.judged
        ]
        if len(rows) > 1:
            rows.append(("together", dict(verdicts_of(run.judged))))
        print(*text.summary_lines(rows, width, colour), "", sep="\n", file=stream)
    if run.known.fails or (run.known.covered and not settings.quiet):
        print(*known_lines(run.known, width, colour), "", sep="\n", file=stream)
    if lines := run.coverage_lines():
        print(*lines, "", sep="\n", file=stream)
    if stream is sys.stdout:
        print(_closing(run, status, stream))
    return status


def _blocks(judged: Judged, settings: Settings, explained: set[str], width: int, colour: bool) -> Iterator[str]:
    from signet_conformance.reports import text

    yield "\n".join(text.heading_lines(judged, width, colour))
    known = settings.known.reasons(target_of(judged, settings.target), judged.verdicts)
    for name in text.breach_names(judged):
        # A known failure is told once, after the last recording.
        if name not in known:
            unexplained = name not in explained
            yield text.failure_text(judged, name, width, colour, options=settings.options, explained=unexplained)
            explained.add(name)
    lines = text.undecided_lines(judged, width, colour)
    if settings.show_all:
        lines += text.settled_lines(judged, width, colour)
    if lines:
        yield "\n".join(lines)
    daemon = text.daemon_text(judged, width, colour) if settings.only is None else None
    if daemon is not None:
        yield daemon


def _closing(run: Run, status: int, stream: TextIO) -> str:
    from signet_conformance.reports import text
    from signet_conformance.reports.terminal import wants_colour

    return text.closing_line(
        verdicts_of(run.judged), len(run.judged), status, wants_colour(stream), len(run.complaints), run.because()
    )
