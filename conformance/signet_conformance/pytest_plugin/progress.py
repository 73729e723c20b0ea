"""How far a run has come, told through pytest's own terminal: the display of `run`, or its lines for a log."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from signet_conformance.reports.terminal import is_live
from signet_conformance.running.events import Tell
from signet_conformance.running.shown_progress import shown_progress


@contextmanager
def progress_told(config: pytest.Config) -> Iterator[Tell]:
    """Tell the progress of a run while the block lasts; nothing where pytest was asked to be quiet."""
    reporter = config.pluginmanager.get_plugin("terminalreporter") if config.option.verbose >= 0 else None
    if reporter is not None:
        reporter.ensure_newline()
    with shown_progress(_Terminal(reporter), quiet=reporter is None) as tell:
        yield tell


class _Terminal(io.StringIO):
    """pytest's terminal as a stream: drawn on as it is, or written to in lines that say whose they are."""

    def __init__(self, reporter: pytest.TerminalReporter | None) -> None:
        super().__init__()
        self._reporter = reporter
        self._line = ""

    def isatty(self) -> bool:
        """Whether a person looks at it."""
        return self._reporter is not None and bool(self._reporter.isatty)

    def write(self, text: str, /) -> int:
        """Write it at once where it is drawn on, else as soon as the line is whole."""
        assert self._reporter is not None  # noqa: S101 - a quiet run writes nothing
        if is_live(self):
            self._reporter.write(text, flush=True)
            return len(text)
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._reporter.ensure_newline()
            self._reporter.write_line(f"signet: {line}")
        return len(text)
