"""`signet-conformance compare`: new, fixed and remaining breaches of a connector between two reports.

Examples:
  signet-conformance compare main/report.json signet-report
  signet-conformance compare main signet-report --markdown comment.md

OLD and NEW are reports (signet-report/1) or the folders of runs. If the
recordings are beside them, each breach is shown with the requests that changed.
If a run broke off without a report, its recordings are judged.
A breach is identified by requirement, kind, operation and scenario, not by its
words. These are listed and fail nothing: a breach whose requirement had no
subject in OLD, one that follows from a fix, and one that only a generated
session of another seed shows. A leaked secret always fails.

Exit status: 0 nothing new fails, 1 something does (with --strict a WARN too),
2 wrong usage, an unreadable report, or a recording of NEW that could not be
read, 3 nothing was tested in NEW, 4 NEW lacks something that OLD judged, so
new breaches may be missing.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from signet_conformance.cli.commands import WHICH, epilog_of, refuse_empty
from signet_conformance.cli.output import demand_distinct_files, report_stream
from signet_conformance.cli.report_files import FILE, report_and_folder
from signet_conformance.errors import printable


@click.command(
    "compare",
    help="List what is new, fixed or still broken between two reports, OLD and NEW, and which requests changed.",
    epilog=epilog_of(__doc__, WHICH),
)
@click.argument("old", metavar="OLD", callback=refuse_empty)
@click.argument("new", metavar="NEW", callback=refuse_empty)
@click.option("--markdown", "comment", metavar="FILE", help="Write a comment for a pull request: only what is new.")
@click.option("--strict", is_flag=True, help="Let a new WARN fail too (exit 1).")
@click.option("--force", is_flag=True, help="Let --markdown replace a file.")
def command(*, old: str, new: str, comment: str | None, strict: bool, force: bool) -> int:
    """Compare; the exit status says whether something new fails."""
    from signet_conformance.diff import reports_text
    from signet_conformance.diff.reports import BreachGroup, compare_reports
    from signet_conformance.reports.terminal import terminal_width, wants_colour

    demand_distinct_files([comment], [old, new, *(str(Path(path, FILE)) for path in (old, new))])
    (before, its_folder), (after, folder) = report_and_folder(old), report_and_folder(new)
    outcome = compare_reports(before, after, its_folder, folder)
    status = 1 if outcome.fails or (strict and outcome.of(BreachGroup.FRESH)) else outcome.unjudged
    if comment is not None:
        with report_stream(comment, force) as stream:
            stream.write(reports_text.markdown(outcome))
    print(*reports_text.lines(outcome, terminal_width(), wants_colour(sys.stdout)), sep="\n")
    if comment is not None:
        print(f"comment: {printable(comment, 1000)}")
    print(f"{reports_text.closing_words(outcome)} (exit {status})")
    return status
