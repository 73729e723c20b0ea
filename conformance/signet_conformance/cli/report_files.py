"""The options that write a run's reports to files, beside what is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from signet_conformance.cli.output import report_stream
from signet_conformance.errors import UsageError
from signet_conformance.reports.ending import Report

_Command = TypeVar("_Command", bound=Callable[..., Any])


def report_options(command: _Command) -> _Command:
    """Add the options that name files for reports."""
    for option in (
        click.option(
            "--selftest",
            "selftest_file",
            metavar="FILE",
            help="Show the kill matrix of FILE (signet-selftest/1) in --html.",
        ),
        click.option("--html", metavar="FILE", help="Write a page with sessions and exchanges, for a browser."),
        click.option("--sarif", metavar="FILE", help="Write SARIF 2.1.0, findings at lines of the traces."),
        click.option("--markdown", metavar="FILE", help="Write Markdown, for a step summary or a comment."),
    ):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Which reports are written where. `files` are all that the run writes, that of --output first."""

    markdown: str | None
    sarif: str | None
    html: str | None
    selftest: Mapping[str, Any] | None
    files: Sequence[str]

    @classmethod
    def parse(
        cls, markdown: str | None, sarif: str | None, html: str | None, selftest: str | None, output: str | None
    ) -> ReportFiles:
        """Read the options. Raises UsageError when the kill matrix cannot be read."""
        files = [file for file in (output, markdown, sarif, html) if file is not None]
        if selftest is not None and html is None:
            raise UsageError("is shown in the page", where="--selftest", remedy="add --html FILE")
        matrix = None
        if selftest is not None:
            from signet_conformance.reports.matrix import kill_matrix

            matrix = kill_matrix.read(selftest)
        return cls(markdown, sarif, html, matrix, files)

    def open(self, stack: ExitStack, force: bool) -> list[Report]:
        """The reports, their files held open by `stack`. Raises UsageError for one that cannot be written."""
        # Imported when asked for: `check` must start fast.
        found: list[Report] = []
        if self.markdown is not None:
            from signet_conformance.reports.markdown import MarkdownReport

            found.append(MarkdownReport(stack.enter_context(report_stream(self.markdown, force))))
        if self.sarif is not None:
            from signet_conformance.reports.sarif import SarifReport

            found.append(SarifReport(stack.enter_context(report_stream(self.sarif, force))))
        if self.html is not None:
            from signet_conformance.reports.html.report import HtmlReport

            found.append(HtmlReport(stack.enter_context(report_stream(self.html, force, private=True)), self.selftest))
        return found
