"""What people and programs read of a run, one format a module: judged traces in, lines or a document out.

Here are the formats of a run's report, one line each: `check`, pytest and the CI lane read what there is from here. A
format is a module with a class that is a `ReportWriter` and takes the stream it writes to. Its line gives it an option
of `check`, a file in the folder of a run's reports, and the tests that every format must pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from msgspec import Struct

from signet_conformance.files import private_opener

if TYPE_CHECKING:
    from signet_conformance.engine import JudgedTrace
    from signet_conformance.reports.ending import ReportWriter, RunEnding

_ROOM = "signet_conformance.reports"


class Format(Struct, frozen=True):
    """One format of report.

    `name` is its option (`--html FILE`). `module` and `writer` say which class writes it: it is imported when the
    format is asked for, `check` must start fast. `in_place_of_text` makes the option a flag: the document is then what
    the run prints, on stdout or in the file of --output. `shows` names options of `check` that only this format makes
    something of. A `private` file is readable by its owner alone, as recordings are: it holds bodies.
    """

    name: str
    suffix: str
    module: str
    writer: str
    help: str
    in_place_of_text: bool = False
    shows: frozenset[str] = frozenset()
    private: bool = False

    @property
    def file(self) -> str:
        """The name of its file in a folder of reports."""
        return f"report{self.suffix}"

    def open(self, stream: TextIO) -> ReportWriter:
        """A report that writes to `stream`."""
        return cast("ReportWriter", getattr(import_module(f"{_ROOM}.{self.module}"), self.writer)(stream))


_TABLE = (
    Format("json", ".json", "json_document", "JsonReport", "Write one JSON object (signet-report/1).", True),
    Format("markdown", ".md", "markdown", "MarkdownReport", "Write Markdown, for a step summary or a comment."),
    Format("junit", ".xml", "junit", "JunitReport", "Write JUnit XML, one test case per requirement, for CI systems."),
    Format("sarif", ".sarif", "sarif", "SarifReport", "Write SARIF 2.1.0, findings at lines of the traces."),
    Format(
        "html",
        ".html",
        "html.report",
        "HtmlReport",
        "Write a page with sessions and exchanges, for a browser.",
        shows=frozenset({"coverage", "selftest"}),
        private=True,
    ),
)

FORMATS: Mapping[str, Format] = {line.name: line for line in _TABLE}
"""Every format by its name."""


def write_reports(folder: Path, ending: RunEnding, known: Callable[[JudgedTrace], Mapping[str, str]]) -> None:
    """Write each report of a run whose traces are held whole; `known` is why failures of a trace may stand.

    Raises OSError when one cannot be written; then no report gets its final name.
    """
    unfinished = {kind: folder / f"{kind.file}.part" for kind in FORMATS.values()}
    with ExitStack() as stack:
        reports: list[ReportWriter] = [
            kind.open(stack.enter_context(_private(path))) for kind, path in unfinished.items()
        ]
        for judged in ending.conclusion.judged:
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
