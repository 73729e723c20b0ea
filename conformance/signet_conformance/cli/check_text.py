"""The text of `check` for a terminal. It is not imported if only a document for programs is written."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TextIO

from msgspec import Struct, field

from signet_conformance.engine import JudgedTrace
from signet_conformance.outcome.broken_off import broke_off
from signet_conformance.outcome.conclusion import Conclusion
from signet_conformance.reports import text
from signet_conformance.reports.cause_text import CauseText, Detail, run_summary
from signet_conformance.reports.causes import Causes
from signet_conformance.reports.remarks import warning_lines
from signet_conformance.reports.terminal import table_width, terminal_width, wants_colour
from signet_conformance.reports.text import Headings, OpenRequirements, known_lines


class CheckText(Struct):
    """Writes the run as text to a stream. `replayed` are the arguments that named the traces.

    With `summary`, each kind of breach takes one line.
    """

    stream: TextIO
    replayed: Sequence[str]
    show_all: bool
    summary: bool
    coverage: bool
    _width: int = field(default_factory=terminal_width)
    _causes: Causes = field(default_factory=Causes)
    _undecided: OpenRequirements = field(default_factory=OpenRequirements)
    _headings: Headings = field(default_factory=Headings)
    _warnings: dict[str, None] = field(default_factory=dict)

    @property
    def _colour(self) -> bool:
        return wants_colour(self.stream)

    def add(self, judged: JudgedTrace, known: Mapping[str, str]) -> None:
        """Add a trace. Nothing is printed before `end`, since one cause may show in several traces."""
        self._headings.add(judged)
        self._warnings.update(dict.fromkeys(warning_lines([judged.trace])))
        if broke_off(judged.trace) is None:
            self._causes.add(judged, known)
            self._undecided.add(judged)

    def end(self, conclusion: Conclusion) -> None:
        """Print the run, then the closing line."""
        self._causes.end(conclusion)
        if self.summary:
            summary = run_summary(self._causes, conclusion, table_width(self.stream), self._colour)
            self._print([*self._warnings, *summary], end="")
        else:
            for block in self._blocks(conclusion):
                self._print(block)
        if conclusion.known.fails or (conclusion.known.covered and not self.summary):
            self._print(known_lines(conclusion.known, self._width, self._colour))
        self._print(self._coverage_lines(conclusion))
        self._print(text.skipped_lines(conclusion.skipped, self._width))
        if self.stream is sys.stdout:
            print(closing_line(conclusion, self.stream))

    def _print(self, lines: Sequence[str], end: str = "\n") -> None:
        if lines:
            print(*lines, sep="\n", end=f"\n{end}", file=self.stream)

    def _blocks(self, conclusion: Conclusion) -> Iterator[Sequence[str]]:
        yield self._headings.lines(self._width, self._colour)
        drawing = CauseText(self._width, self._colour, conclusion.terms.words(), self.replayed)
        # A known failure is shown once, with the entry that lets it pass.
        causes = [cause for cause in self._causes.connector() if not cause.is_known]
        yield from drawing.blocks(causes)
        short = bool(causes) and not self.show_all
        lines = self._undecided.lines(conclusion.judgements, self._width, self._colour, short=short)
        if self.show_all:
            lines += text.settled_lines(conclusion.judgements, self._width, self._colour)
        yield lines
        if conclusion.terms.only is None and (daemon := self._causes.daemon()):
            yield text.daemon_side_lines(self._width)
            yield from drawing.blocks(daemon, detail=Detail.BRIEF)
        if conclusion.at_model:
            yield text.model_side_lines(conclusion.judged, conclusion.at_model, self._width, self._colour)
            yield from drawing.blocks(self._causes.harness(), detail=Detail.BRIEF)
        if conclusion.judged and not conclusion.is_about_model:
            rows = [(each.trace.path or "trace", each.verdicts) for each in conclusion.judged]
            yield text.summary_lines(rows, conclusion.verdicts, self._width, self._colour)

    def _coverage_lines(self, conclusion: Conclusion) -> list[str]:
        """The lines on coverage; empty unless the user asked for coverage."""
        if conclusion.coverage is None or not (self.coverage or conclusion.terms.least_coverage is not None):
            return []
        note = conclusion.coverage_note()
        lines = text.coverage_lines(conclusion.coverage, self._width, self._colour, missed=self.coverage)
        return lines if note is None else [*lines, note]


def closing_line(conclusion: Conclusion, stream: TextIO) -> str:
    """The closing line: the conclusion of the run."""
    return text.closing_line(conclusion, conclusion.status, wants_colour(stream))
