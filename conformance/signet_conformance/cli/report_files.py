"""Finds the reports that a command line names. Reads them, or judges the recordings of a run without a report."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from signet_conformance.errors import TraceError, UsageError
from signet_conformance.files.documents import demand
from signet_conformance.reports import FORMATS
from signet_conformance.reports.report_document import Report, read_report
from signet_conformance.trace import Trace, read
from signet_conformance.trace.recordings import recordings_in

FILE = FORMATS["json"].file


def report_path(path: str) -> str:
    """The report that an argument names. Raises UsageError for a folder without one."""
    if not Path(path).is_dir():
        return path
    report = Path(path, FILE)
    if not report.is_file():
        raise UsageError(
            f"the folder holds no {FILE}",
            where=path,
            remedy="name a report file, or the folder of a run that wrote one",
        )
    return str(report)


def report_and_folder(path: str) -> tuple[Report, Path]:
    """Read the report that an argument names, with the folder of its recordings.

    If a run was killed before its report, the recordings of its finished scenarios are judged.
    Raises UsageError for a folder with neither, and for a file that is no report.
    """
    folder = Path(path)
    if folder.is_dir() and not (folder / FILE).is_file() and (recorded := recordings_in(folder)):
        return _judge_recordings(recorded), folder
    file = report_path(path)
    return read_report(file), Path(file).parent


def _judge_recordings(files: Iterable[Path]) -> Report:
    # Imported here: reading a report must not load the engine.
    from signet_conformance.outcome.broken_off import Shortfall
    from signet_conformance.outcome.conclusion import Judging, Terms
    from signet_conformance.reports.ending import RunEnding
    from signet_conformance.reports.json_document import JsonReport

    judging, document = Judging(Terms()), io.StringIO()
    report = JsonReport(document)
    # It leaves out the scenarios that the killed run did not finish.
    shortfall = Shortfall((), 0)
    for trace in shortfall.judged(list(_readable(files))):
        for judged in judging.judge_traces([trace]):
            report.add(judged, {})
            judging.add(judged)
    report.close(RunEnding(judging.conclude(shortfall=shortfall)))
    return demand(Report, json.loads(document.getvalue()), "the recordings of a run without a report")


def _readable(files: Iterable[Path]) -> Iterator[Trace]:
    for file in sorted(files):
        # A run that was killed leaves files that it had only just begun.
        with suppress(TraceError):
            yield read(file)


def report_paths(path: str) -> Sequence[str]:
    """The report that an argument names, or those of the runs in a folder of runs. Raises UsageError as report_path."""
    folder = Path(path)
    if not folder.is_dir() or (folder / FILE).is_file():
        return [report_path(path)]
    return [str(report) for report in reports_below(folder)] or [report_path(path)]


def reports_below(folder: Path) -> Iterator[Path]:
    """The reports in a folder at any depth, by name: those of runs, and other *.json that begin as a report does."""
    for path in sorted(folder.rglob("*.json")):
        if path.is_file() and (path.name == FILE or _is_report(path)):
            yield path


def _is_report(path: Path) -> bool:
    with path.open("rb") as stream:
        return b'"signet-report/1"' in stream.read(200)
