"""What `check` shows in a terminal; not loaded when only a document for programs is written."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from signet_conformance.engine import Judged
from signet_conformance.outcome.broken_off import broke_off
from signet_conformance.outcome.conclusion import Conclusion, Terms
from signet_conformance.reports import text
from signet_conformance.reports.known import known_lines
from signet_conformance.reports.terminal import terminal_width, wants_colour


@dataclass(slots=True)
class Shown:
    """The run as text on a stream. `replayed` are the words that named the traces."""

    stream: TextIO
    replayed: Sequence[str]
    show_all: bool
    quiet: bool
    coverage: bool
    _width: int = field(default_factory=terminal_width)
    _explained: set[str] = field(default_factory=set)

    @property
    def _colour(self) -> bool:
        return wants_colour(self.stream)

    def trace(self, judged: Judged, terms: Terms, known: Container[str]) -> None:
        """One trace: what it breaches and what it leaves open, without what is `known`."""
        if not self.quiet:
            for block in self._blocks(judged, terms, known):
                print(block, end="\n\n", file=self.stream)

    def _blocks(self, judged: Judged, terms: Terms, known: Container[str]) -> Iterator[str]:
        yield "\n".join(text.heading_lines(judged, self._width, self._colour))
        if broke_off(judged.trace) is not None:
            yield "the scenario was broken off: this trace decides nothing"
            return
        for name in text.breach_names(judged):
            # A known failure is told once, after the last recording.
            if name not in known:
                unexplained = name not in self._explained
                yield text.failure_text(
                    judged, name, self._width, self._colour, options=terms.words(), explained=unexplained
                )
                self._explained.add(name)
        lines = text.undecided_lines(judged, self._width, self._colour)
        if self.show_all:
            lines += text.settled_lines(judged, self._width, self._colour)
        if lines:
            yield "\n".join(lines)
        daemon = text.daemon_text(judged, self._width, self._colour) if terms.only is None else None
        if daemon is not None:
            yield daemon
        harness = text.harness_text(judged, self._width, self._colour) if terms.only is None else None
        if harness is not None:
            yield harness

    def end(self, conclusion: Conclusion) -> None:
        """The run as a whole, ending with the closing line."""
        if not self.quiet:
            self._whole_run(conclusion)
        if conclusion.known.fails or (conclusion.known.covered and not self.quiet):
            print(*known_lines(conclusion.known, self._width, self._colour), "", sep="\n", file=self.stream)
        if lines := self._coverage_lines(conclusion):
            print(*lines, "", sep="\n", file=self.stream)
        if self.stream is sys.stdout:
            print(closing_line(conclusion, self.stream))

    def _whole_run(self, conclusion: Conclusion) -> None:
        options, judged = conclusion.terms.words(), conclusion.judged
        whole = conclusion.run_level_breaches()
        if whole is not None:
            for name in text.breach_names(whole):
                block = text.failure_text(
                    whole, name, self._width, self._colour, options=options, replayed=self.replayed
                )
                print(block, end="\n\n", file=self.stream)
        if judged:
            rows = [(each.trace.path or "trace", each.verdicts) for each in judged]
            if len(rows) > 1:
                rows.append(("together", conclusion.verdicts))
            print(*text.summary_lines(rows, self._width, self._colour), "", sep="\n", file=self.stream)

    def _coverage_lines(self, conclusion: Conclusion) -> list[str]:
        """What the traces exercise; nothing where it was not asked for."""
        if conclusion.coverage is None or not (self.coverage or conclusion.terms.least_coverage is not None):
            return []
        note = conclusion.coverage_note()
        lines = text.coverage_lines(conclusion.coverage, self._width, self._colour, missed=self.coverage)
        return lines if note is None else [*lines, note]


def closing_line(conclusion: Conclusion, stream: TextIO) -> str:
    """The closing line: the conclusion of the run."""
    return text.closing_line(
        conclusion.verdicts,
        len(conclusion.judged),
        conclusion.status,
        wants_colour(stream),
        len(conclusion.unread),
        conclusion.because,
    )
