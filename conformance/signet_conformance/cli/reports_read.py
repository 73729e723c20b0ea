"""Reports that a command line names: a file, or the folder of a run that holds one."""

from __future__ import annotations

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


def read_report(path: str) -> Report:
    """Read a report. Raises UsageError when the file does not hold one."""
    where = printable(path, 400)
    return demand(Report, read_json(path, _REMEDY, where=where, most_bytes=MAX_BYTES), where, remedy=_REMEDY)
