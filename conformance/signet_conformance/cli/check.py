"""`signet-conformance check`: verdicts over recorded traces, offline.

Here are its options alone, and they import little: what judges is imported while other processes look through a large
recording already.

Examples:
  signet-conformance check run.jsonl
  signet-conformance check runs/ --json --output report.json
  signet-conformance check runs/ --html report.html --sarif report.sarif
  signet-conformance check by-hand.jsonl --agent atlas --bound start=15
  signet-conformance check run.jsonl -k SIG-AGENT --all

Exit status: 0 conforming, 1 a MUST is breached (with --strict a SHOULD too),
2 wrong usage or a file that cannot be read, 3 nothing was tested,
4 not everything could be judged: the kit itself failed, or no requirement is
breached but the recorder could not pass on a request or decode a body.
"""

from __future__ import annotations

from typing import Any

import click

from signet_conformance.children.spread import processors
from signet_conformance.cli import shared_options
from signet_conformance.cli.commands import epilog_of
from signet_conformance.cli.recordings import trace_files
from signet_conformance.trace import read_ahead


@click.command(
    "check",
    help="Judge each TRACE (a file, a folder of *.jsonl files, a glob, or - for stdin) by every requirement, offline."
    " Files packed with gzip or zstd (*.jsonl.gz, *.jsonl.zst) are read as they are.",
    epilog=epilog_of(__doc__),
)
@click.argument("traces", nargs=-1, required=True, metavar="TRACE...")
@shared_options.only_option(
    "Judge by this requirement alone, or by a family of them (SIG-AGENT) or a glob (SIG-*-001); repeatable."
)
@click.option(
    "--contract", metavar="VERSION", help="Judge by this contract version, not by that of each trace's daemon."
)
@shared_options.strict_option
@click.option("--coverage", is_flag=True, help="Show how much of the contract the traces exercise, and what they miss.")
@click.option("--coverage-fail-under", metavar="PERCENT", help="Fail (exit 1) when they exercise less than that.")
@click.option("--all", "show_all", is_flag=True, help="Show PASS and NOT-APPLICABLE too.")
@click.option(
    "--summary",
    "--quiet",
    "-q",
    "summary",
    is_flag=True,
    help="Show a line for each kind of breach and each undecided requirement, and the closing line.",
)
@shared_options.report_options
@click.option("--force", is_flag=True, help="Let a report replace a file.")
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Judge a long recording, or several, by N processes (default: one for each processor).",
)
@shared_options.target_option
@shared_options.known_options
@shared_options.declared_options
def command(*, traces: tuple[str, ...], workers: int | None, **options: Any) -> int:
    """Judge traces; the exit status is the run's."""
    recordings = trace_files(traces)
    workers = workers or processors()
    with read_ahead(next(iter(recordings.files), ""), workers=workers):
        from signet_conformance.cli.checking import check

        return check(recordings, traces=traces, workers=workers, **options)
