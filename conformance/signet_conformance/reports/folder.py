"""The reports of a driven run: one file a format, in the folder that takes its traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from signet_conformance.engine import Judged
from signet_conformance.files.whole_file import private_opener
from signet_conformance.reports.ending import Ending, Report
from signet_conformance.reports.registry import FORMATS


def write_reports(folder: Path, ending: Ending, known: Callable[[Judged], Mapping[str, str]]) -> None:
    """Write each report of a run whose traces are held whole; `known` is why failures of a trace may stand.

    Raises OSError when one cannot be written; then no report gets its final name.
    """
    unfinished = {kind: folder / f"{kind.file}.part" for kind in FORMATS.values()}
    with ExitStack() as stack:
        reports: list[Report] = [kind.open(stack.enter_context(_private(path))) for kind, path in unfinished.items()]
        for judged in ending.judged:
            reasons = known(judged)
            for report in reports:
                report.add(judged, reasons)
        for report in reports:
            report.close(ending)
    # Renamed when all are whole, so that nobody reads half a report.
    for kind, path in unfinished.items():
        path.rename(folder / kind.file)


def _private(path: Path) -> TextIO:
    return open(path, "x", encoding="utf-8", errors="backslashreplace", opener=private_opener)
