"""The formats of a run's report, one line each. `check`, pytest and the CI lane read what there is from here.

A format is a module with a class that is a `Report` and takes the stream it writes to. Its line here gives it an option
of `check`, a file in the folder of a run's reports, and the tests that every format must pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, TextIO, cast

from msgspec import Struct

if TYPE_CHECKING:
    from signet_conformance.reports.ending import Report

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

    def open(self, stream: TextIO) -> Report:
        """A report that writes to `stream`."""
        return cast("Report", getattr(import_module(f"{_ROOM}.{self.module}"), self.writer)(stream))


_TABLE = (
    Format("json", ".json", "json_document", "JsonReport", "Write one JSON object (signet-report/1).", True),
    Format("markdown", ".md", "markdown", "MarkdownReport", "Write Markdown, for a step summary or a comment."),
    Format("junit", ".xml", "junit", "JunitReport", "Write JUnit XML, a test case a requirement, for CI systems."),
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
