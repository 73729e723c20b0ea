"""`signet-conformance compare`: new, fixed and remaining breaches of a connector between two reports.

Examples:
  signet-conformance compare main/report.json signet-report
  signet-conformance compare main signet-report --markdown comment.md

OLD and NEW are reports (signet-report/1) or the folders of runs. Where the
recordings lie beside them, the requests that changed are shown with each
breach. The recordings of a run that broke off without a report are judged.
A breach is known by requirement, kind, operation and scenario, not by its
words. What nothing was subject to in OLD, what follows from a fix, and what
only a generated session of another seed shows, is listed and fails nothing; a
secret that leaks does.
Exit status: 0 nothing new fails, 1 something does (with --strict a WARN too),
2 wrong usage, an unreadable report, or a recording of NEW that could not be
read, 3 nothing was tested in NEW, 4 NEW lacks what OLD judged, so what is new
may be missing.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from signet_conformance.cli.commands import WHICH, epilog_of
from signet_conformance.cli.output import demand_apart, report_stream
from signet_conformance.cli.report_files import FILE, report_of_run
from signet_conformance.errors import printable


@click.command(
    "compare",
    help="Say what is new, fixed and still there between two reports, OLD and NEW, and which requests changed.",
    epilog=epilog_of(__doc__, WHICH),
)
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option("--markdown", "comment", metavar="FILE", help="Write a comment for a pull request: only what is new.")
@click.option("--strict", is_flag=True, help="Let a new WARN fail too (exit 1).")
@click.option("--force", is_flag=True, help="Let --markdown replace a file.")
def command(*, old: str, new: str, comment: str | None, strict: bool, force: bool) -> int:
    """Compare; the exit status says whether something new fails."""
    from signet_conformance.diff import reports_text
    from signet_conformance.diff.reports import Became, compared
    from signet_conformance.reports.terminal import terminal_width, wants_colour

    demand_apart([comment], [old, new, *(str(Path(path, FILE)) for path in (old, new))])
    (before, its_folder), (after, folder) = report_of_run(old), report_of_run(new)
    outcome = compared(before, after, its_folder, folder)
    status = 1 if outcome.fails or (strict and outcome.of(Became.FRESH)) else outcome.unjudged
    if comment is not None:
        with report_stream(comment, force) as stream:
            stream.write(reports_text.markdown(outcome))
    print(*reports_text.lines(outcome, terminal_width(), wants_colour(sys.stdout)), sep="\n")
    if comment is not None:
        print(f"comment: {printable(comment, 1000)}")
    print(f"{reports_text.closing_words(outcome)} (exit {status})")
    return status
