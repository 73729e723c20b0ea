"""`signet-conformance diff`: what differs between two recordings, and which requirement reads it.

Examples:
  signet-conformance diff before.jsonl after.jsonl
  signet-conformance diff before.jsonl after.jsonl --volatile 'ticket=TICKET-[0-9]+'
  signet-conformance diff before.jsonl after.jsonl --keep tmp --json
  signet-conformance diff before.jsonl after.jsonl --html diff.html

Exit status: 0 no contract-relevant difference, 1 at least one,
2 wrong usage or a file that cannot be read, 3 neither recording holds
an exchange, 4 the kit itself failed.
"""

from __future__ import annotations

import sys

import click

from signet_conformance.cli.commands import WHICH, epilog_of
from signet_conformance.cli.output import demand_distinct_files, report_stream
from signet_conformance.cli.recordings import read_recording
from signet_conformance.diff import document, text
from signet_conformance.diff.recordings import compare
from signet_conformance.diff.volatile import NAMES, VolatileClasses, own_classes
from signet_conformance.errors import NothingTestedError, printable
from signet_conformance.facts import Recording
from signet_conformance.reports.terminal import terminal_width, wants_colour
from signet_conformance.trace.reading import collector_paused

_VOLATILE = f"""Left out as volatile: {", ".join(NAMES)}; also times and durations. uuid, id, hash and tmp
must be renamed consistently within a session."""


@click.command(
    "diff",
    help="Compare two recordings session by session: what was added, is missing, was reordered or changed from A to B,"
    " and which requirement reads it.",
    epilog=epilog_of(__doc__, _VOLATILE, WHICH),
)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--volatile",
    "own",
    multiple=True,
    metavar="NAME=REGEX",
    help="Leave out what REGEX matches too, as class NAME; repeatable.",
)
@click.option("--keep", multiple=True, metavar="NAME", help="Compare this class of volatile values too; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object (signet-diff/1).")
@click.option("--all", "show_all", is_flag=True, help="Show every cosmetic difference.")
@click.option("--quiet", "-q", is_flag=True, help="Show the closing line alone.")
@click.option("--output", "-o", metavar="FILE", help="Write the differences to FILE, which must not exist.")
@click.option("--html", metavar="FILE", help="Write a page for a browser too.")
@click.option("--force", is_flag=True, help="Let --output and --html replace a file.")
def command(
    *,
    first: str,
    second: str,
    own: tuple[str, ...],
    keep: tuple[str, ...],
    as_json: bool,
    show_all: bool,
    quiet: bool,
    output: str | None,
    html: str | None,
    force: bool,
) -> int:
    """Compare; exit 1 on a contract-relevant difference."""
    demand_distinct_files([output, html], [first, second])
    volatile = VolatileClasses(keep, own_classes(own))
    with collector_paused():
        comparison = compare(Recording(read_recording(first)), Recording(read_recording(second)), volatile)
    if html is not None:
        from signet_conformance.diff import page

        with report_stream(html, force, private=True) as stream:
            page.write(comparison, stream)
    with report_stream(output, force) as stream:
        if as_json:
            document.write(comparison, stream)
        else:
            if not quiet:
                lines = text.comparison_lines(comparison, terminal_width(), wants_colour(stream), show_all=show_all)
                print(*lines, "", sep="\n", file=stream)
            if output is None:
                print(text.closing_line(comparison, wants_colour(stream)), file=stream)
    if output is not None:
        print(text.closing_line(comparison, wants_colour(sys.stdout)))
        print(f"differences: {printable(output, 1000)}")
    if html is not None and not as_json and not quiet:
        print(f"page: {printable(html, 1000)}")
    if comparison.empty:
        return NothingTestedError.exit_status
    return 1 if comparison.relevant else 0
