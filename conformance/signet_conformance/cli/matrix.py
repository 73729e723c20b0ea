r"""`signet-conformance matrix`: connectors side by side, from their reports; and a badge.

Examples:
  signet-conformance matrix openclaw/report.json pi/report.json
  signet-conformance matrix */report.json --json
  signet-conformance matrix */report.json --html matrix.html
  signet-conformance matrix runs/ --site public
  signet-conformance matrix openclaw/report.json \
      --badge conformance.svg --connector-version 2026.6.1

used: declared and observed; declared only; drift: observed, not declared;
seen: observed, and nothing is declared; -: neither.
Exit status: 0, whatever the reports say; 2 wrong usage, or an unreadable report:
it is named, and the others are shown.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from signet_conformance.cli.commands import WHICH, epilog_of, tell
from signet_conformance.cli.output import demand_distinct_files, report_stream
from signet_conformance.cli.report_files import report_paths
from signet_conformance.errors import SignetConformanceError, UsageError, os_errors, printable, printable_json
from signet_conformance.reports import matrix
from signet_conformance.reports.matrix import Column, site as matrix_site
from signet_conformance.reports.terminal import table_width, wants_colour

_BADGES = {".svg": matrix_site.svg_badge, ".json": matrix_site.json_badge}


@click.command(
    "matrix",
    help="Connector by operation and connector by requirement, from each REPORT, or a folder of runs.",
    epilog=epilog_of(__doc__, WHICH),
)
@click.argument("reports", nargs=-1, required=True, metavar="REPORT...")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object (signet-matrix/1).")
@click.option("--html", metavar="FILE", help="Write a page for a browser too.")
@click.option("--site", metavar="DIR", help="Write a static site: what may ship with which daemon, histories, badges.")
@click.option("--badge", "badge_file", metavar="FILE", help="Write a badge, .svg or .json, for a single connector.")
@click.option("--connector-version", metavar="VERSION", help="The connector's own version, for the badge.")
@click.option("--force", is_flag=True, help="Let --badge, --html and --site replace files.")
def command(
    *,
    reports: tuple[str, ...],
    as_json: bool,
    html: str | None,
    site: str | None,
    badge_file: str | None,
    connector_version: str | None,
    force: bool,
) -> int:
    """Print the matrix; write the badge first, so that a refused one prints nothing."""
    files, columns, status = _read_reports(reports)
    demand_distinct_files([html, badge_file], files)
    if not columns:
        return status
    if badge_file is not None:
        _write_badge(columns, badge_file, connector_version, force)
    elif connector_version is not None:
        raise UsageError("is only used with --badge", where="--connector-version", remedy="add --badge FILE.svg")
    if html is not None:
        with report_stream(html, force) as stream:
            matrix_site.write_side_by_side(columns, stream)
    file_count = 0 if site is None else _write_site(columns, site, force)
    if as_json:
        print(printable_json(json.dumps(matrix.to_json(columns), indent=2)))
    else:
        print(*matrix.matrix_lines(columns, table_width(sys.stdout), wants_colour(sys.stdout)), sep="\n")
        if html is not None:
            print(f"page: {printable(html, 1000)}")
        if site is not None:
            index = printable(str(Path(site, matrix_site.INDEX)), 1000)
            print(f"site: {index}, and {file_count - 1} more files beside it: pages, badges and {matrix_site.DATA}")
    return status


def _read_reports(reports: Sequence[str]) -> tuple[Sequence[str], list[Column], int]:
    """Read the reports: files, columns, exit status. An unreadable one is reported, and the rest is read."""
    files: list[str] = []
    columns: list[Column] = []
    status = 0
    for path in reports:
        try:
            for file in report_paths(path):
                files.append(file)
                columns += matrix.read_columns(file)
        except SignetConformanceError as failure:
            failure.where = failure.where or printable(path, 400)
            tell(failure)
            status = failure.exit_status
    return files, columns, status


def _write_site(columns: Sequence[Column], folder: str, force: bool) -> int:
    """Write the files of the site, and return their number."""
    where = f"--site {printable(folder, 400)}"
    with os_errors("cannot be made", where=where, remedy="name a folder that you may write to"):
        Path(folder).mkdir(parents=True, exist_ok=True)
    if not force and Path(folder, matrix_site.INDEX).exists():
        raise UsageError("holds a site already", where=where, remedy="replace it with --force")
    files = list(matrix_site.files(columns))
    for name, write in files:
        with report_stream(str(Path(folder, name)), force) as stream:
            write(stream)
    return len(files)


def _write_badge(columns: list[Column], path: str, connector_version: str | None, force: bool) -> None:
    render = _BADGES.get(Path(path).suffix.lower())
    if render is None:
        raise UsageError("is neither .svg nor .json", where=f"--badge {printable(path, 400)}", remedy="--badge it.svg")
    if len(columns) != 1:
        raise UsageError(
            f"a badge shows one connector; these are {len(columns)}", where="--badge", remedy="name one report"
        )
    if connector_version is None or not connector_version.strip():
        raise UsageError("needs the connector's version", where="--badge", remedy="add --connector-version VERSION")
    text = render(columns[0], connector_version.strip())
    with report_stream(path, force) as stream:
        stream.write(text)
