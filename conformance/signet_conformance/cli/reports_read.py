"""Reports that a command line names: a file, or the folder of a run that holds one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from signet_conformance.errors import UsageError, printable
from signet_conformance.files.documents import demand
from signet_conformance.files.json_file import read_json
from signet_conformance.reports.registry import FORMATS
from signet_conformance.reports.report_document import Report

FILE = FORMATS["json"].file
MAX_BYTES = 1024 * 1024 * 1024
_REMEDY = "write one with: signet-conformance check TRACE... --json --output FILE"


def report_of(path: str) -> str:
    """The report that an argument names. Raises UsageError for a folder without one."""
    if not Path(path).is_dir():
        return path
    report = Path(path, FILE)
    if not report.is_file():
        raise UsageError(
            f"the folder holds no {FILE}", where=printable(path, 400), remedy="name the report of each run"
        )
    return str(report)


def reports_in(path: str) -> Sequence[str]:
    """The report that an argument names, or those of the runs in a folder of runs. Raises UsageError as report_of."""
    folder = Path(path)
    if not folder.is_dir() or (folder / FILE).is_file():
        return [report_of(path)]
    return [str(report) for report in reports_below(folder)] or [report_of(path)]


def reports_below(folder: Path) -> Iterator[Path]:
    """The reports in a folder at any depth, by name: those of runs, and other *.json that begin as a report does."""
    for path in sorted(folder.rglob("*.json")):
        if path.name == FILE or _says_report(path):
            yield path


def _says_report(path: Path) -> bool:
    with path.open("rb") as stream:
        return b'"signet-report/1"' in stream.read(200)


def read_report(path: str) -> Report:
    """Read a report. Raises UsageError when the file does not hold one."""
    where = printable(path, 400)
    return demand(Report, read_json(path, _REMEDY, where=where, most_bytes=MAX_BYTES), where, remedy=_REMEDY)
