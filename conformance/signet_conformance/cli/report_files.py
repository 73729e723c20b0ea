"""The options that ask for a run's reports, one for each format of the registry, and the files they are written to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import wraps
from typing import TYPE_CHECKING, Any, TextIO

import click
from msgspec import Struct

from signet_conformance.cli.output import report_stream
from signet_conformance.errors import UsageError
from signet_conformance.reports.registry import FORMATS, Format

if TYPE_CHECKING:
    from signet_conformance.reports.ending import Report


def report_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that ask for reports, and --output; the command gets them as `reports`, a ReportFiles."""

    @wraps(command)
    def with_reports(*, output: str | None, selftest_file: str | None, **given: Any) -> int:
        asked = {name: given.pop(_variable(name)) for name in FORMATS}
        return command(reports=ReportFiles.parse(asked, output, selftest_file), **given)

    options = [
        click.option(
            "--selftest",
            "selftest_file",
            metavar="FILE",
            help="Show the kill matrix of FILE (signet-selftest/1) in --html.",
        ),
        *(_option(kind) for kind in reversed(list(FORMATS.values()))),
        click.option("--output", "-o", metavar="FILE", help="Write the report to FILE, which must not exist."),
    ]
    asking: Callable[..., int] = with_reports
    for option in options:
        asking = option(asking)
    return asking


def _option(kind: Format) -> Callable[[Any], Any]:
    if kind.in_place_of_text:
        return click.option(f"--{kind.name}", _variable(kind.name), is_flag=True, help=kind.help)
    return click.option(f"--{kind.name}", _variable(kind.name), metavar="FILE", help=kind.help)


def _variable(name: str) -> str:
    return f"{name}_report"


class ReportFiles(Struct, frozen=True):
    """Which reports are written where.

    `document` is the format that is written in place of the text, to `output` or stdout. `beside` are the other
    formats that were asked for, each with its file. `selftest` is the kill matrix to show in them, read from
    `selftest_file`.
    """

    document: Format | None
    output: str | None
    beside: Mapping[Format, str]
    selftest: Mapping[str, Any] | None
    selftest_file: str | None

    @classmethod
    def parse(cls, asked: Mapping[str, Any], output: str | None, selftest: str | None) -> ReportFiles:
        """Read the options, `asked` by the names of formats. Raises UsageError when they do not go together."""
        kinds = [kind for name, kind in FORMATS.items() if asked[name] not in (None, False)]
        instead = [kind for kind in kinds if kind.in_place_of_text]
        if len(instead) > 1:
            raise UsageError(
                "only one of them can replace the text",
                where=", ".join(f"--{kind.name}" for kind in instead),
                remedy=f"leave --{instead[1].name} out",
            )
        beside = {kind: asked[kind.name] for kind in kinds if not kind.in_place_of_text}
        matrix = None
        if selftest is not None:
            if not any("selftest" in kind.shows for kind in kinds):
                raise UsageError("is only shown in a page", where="--selftest", remedy="add --html FILE")
            from signet_conformance.reports.html import kill_matrix

            matrix = kill_matrix.read(selftest)
        return cls(instead[0] if instead else None, output, beside, matrix, selftest)

    @property
    def files(self) -> Sequence[str]:
        """All files that the run writes reports to, that of --output first."""
        return [*([] if self.output is None else [self.output]), *self.beside.values()]

    @property
    def shows_coverage(self) -> bool:
        """Whether coverage is to be measured for a report, whatever else was asked for."""
        return any("coverage" in kind.shows for kind in (*self.beside, *([self.document] if self.document else [])))

    def open(self, stream: TextIO, stack: ExitStack, force: bool) -> list[Report]:
        """The reports, that in place of the text writing to `stream`; `stack` holds the files of the others open.

        Raises UsageError for a file that cannot be written.
        """
        reports = [
            kind.open(stack.enter_context(report_stream(file, force, private=kind.private)))
            for kind, file in self.beside.items()
        ]
        return reports if self.document is None else [*reports, self.document.open(stream)]
