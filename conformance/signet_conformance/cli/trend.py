"""`signet-conformance trend`: the reports of many runs in the order of time, and what each changed.

Examples:
  signet-conformance trend reports/

DIR holds the folders of runs, each with its report.json, at any depth; other
*.json that are reports count too. Each run is compared with the previous run
of its connector.

Exit status: 0, whatever the reports say; 2 wrong usage, or an unreadable report:
it is named, and the others are shown.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from signet_conformance.cli.commands import WHICH, epilog_of, tell
from signet_conformance.cli.report_files import FILE, reports_below
from signet_conformance.errors import SignetConformanceError, UsageError, first_of, printable
from signet_conformance.finding import Verdict
from signet_conformance.reports.report_document import Report, read_report

_COUNTED = (Verdict.FAIL, Verdict.WARN, Verdict.PASS)


@click.command(
    "trend",
    help="Show the runs whose reports are in DIR, ordered by time: verdicts, what is new, what is fixed.",
    epilog=epilog_of(__doc__, WHICH),
)
@click.argument("folder", metavar="DIR")
def command(folder: str) -> int:
    """Print a line a run."""
    from signet_conformance.reports.terminal import draw_table, grid, table_width, wants_colour

    if not Path(folder).is_dir():
        raise UsageError("is not a folder", where=folder, remedy="name the folder that holds the runs")
    runs, status = _read_reports(Path(folder))
    if not runs:
        raise UsageError("holds no report", where=folder, remedy=f"keep the {FILE} of each run there")
    counted = (verdict.value for verdict in _COUNTED)
    heads = ("recorded", "commit", "connector", "release", *counted, "new", "fixed", "run")
    print(*draw_table(grid([heads, *_rows(runs)]), table_width(sys.stdout), wants_colour(sys.stdout)), sep="\n")
    return status


def _read_reports(folder: Path) -> tuple[Sequence[tuple[str, Report]], int]:
    """Read the reports, the oldest first, with their names and the exit status; report an unreadable one."""
    runs, status = [], 0
    for path in reports_below(folder):
        try:
            named = path.parent if path.name == FILE else path
            runs.append((printable(str(named.relative_to(folder)), 60), read_report(str(path))))
        except SignetConformanceError as failure:
            tell(failure)
            status = failure.exit_status
    return sorted(runs, key=lambda run: (_created(run[1]), run[0])), status


def _created(report: Report) -> str:
    return "" if report.run is None or report.run.created is None else report.run.created


def _rows(runs: Sequence[tuple[str, Report]]) -> Iterator[Sequence[str]]:
    from signet_conformance.diff.reports import BreachGroup, compare_reports

    last: dict[str, Report] = {}
    for name, report in runs:
        run = report.run
        commit = "" if run is None or run.commit is None else run.commit[:9]
        release = "" if run is None or run.connector is None else printable(run.connector, 20)
        connector = _connector(report)
        before = last.get(connector)
        tally = Counter(row.verdict for row in report.together.values())
        changed = ("", "")
        if before is not None:
            outcome = compare_reports(before, report)
            changed = (f"+{len(outcome.of(BreachGroup.FRESH))}", f"-{len(outcome.of(BreachGroup.FIXED))}")
        counts = (str(tally[verdict]) for verdict in _COUNTED)
        when = _created(report)[:16].replace("T", " ")
        yield (when or "-", commit or "-", connector or "-", release or "-", *counts, *changed, name)
        last[connector] = report


def _connector(report: Report) -> str:
    """The target, or the harness if it has no name; of several targets the first and their number."""
    names = dict.fromkeys(filter(None, (trace.target or trace.declared.harness for trace in report.traces)))
    return first_of((printable(name, 30) for name in names), 1)
