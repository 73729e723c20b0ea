"""The reports of a run: each format is a module that takes judged traces and writes lines or a document.

FORMATS lists them, for `check`, pytest and the CI lane. A format is a module with a `ReportWriter` class, which takes
the stream that it writes to. Its entry gives it an option of `check`, a file in the folder of a run's reports, and the
tests that every format must pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
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

    `name` is its option (`--html FILE`). `module` and `writer` name its class, which is imported only when the format
    is asked for, so that `check` starts fast. `in_place_of_text` makes the option a flag: the document then replaces
    the printed text, on stdout or in the file of --output. `shows` names the options of `check` that only this format
    uses. A `private` file is readable by its owner alone, as recordings are: it holds bodies.
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
    """Write every report of a run whose traces are in memory; `known` gives the known failures of a trace with reasons.

    Raises OSError if one cannot be written; then none is left.
    """
    unfinished = {kind: folder / f"{kind.file}.part" for kind in FORMATS.values()}
    try:
        _write_each(unfinished, ending, known)
    except BaseException:
        for path in unfinished.values():
            with suppress(OSError):
                path.unlink()
        raise
    # Renamed when all are complete, so that nobody reads an unfinished report.
    for kind, path in unfinished.items():
        path.rename(folder / kind.file)


def _write_each(
    paths: Mapping[Format, Path], ending: RunEnding, known: Callable[[JudgedTrace], Mapping[str, str]]
) -> None:
    with ExitStack() as stack:
        reports: list[ReportWriter] = [kind.open(stack.enter_context(_private(path))) for kind, path in paths.items()]
        for judged in ending.conclusion.judged:
            reasons = known(judged)
            for report in reports:
                report.add(judged, reasons)
        for report in reports:
            report.close(ending)


def _private(path: Path) -> TextIO:
    return open(path, "x", encoding="utf-8", errors="backslashreplace", opener=private_opener)
