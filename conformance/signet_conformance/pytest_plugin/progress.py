"""How far a run has come, told often enough to be followed and seldom enough for a log."""

from __future__ import annotations

import time

import pytest

from signet_conformance.running.events import Event, Noted, WritesInto
from signet_conformance.running.progress import Progress

_LOG_S = 5.0
_TERMINAL_S = 0.5


class ProgressLine:
    """Writes a line now and then: on a terminal twice a second and over itself, elsewhere every five seconds."""

    def __init__(self, config: pytest.Config) -> None:
        self._reporter = config.pluginmanager.get_plugin("terminalreporter") if config.option.verbose >= 0 else None
        self._progress = Progress()
        self._began = self._told = time.monotonic()

    def __call__(self, event: Event) -> None:
        """Take in an event, and write a line unless that was done a moment ago."""
        self._progress.take(event)
        reporter, now = self._reporter, time.monotonic()
        if reporter is not None and isinstance(event, WritesInto | Noted):
            reporter.ensure_newline()
            reporter.write_line(f"signet: {event.words}")
        if reporter is None or now - self._told < (_TERMINAL_S if reporter.isatty else _LOG_S):
            return
        self._told = now
        line = f"signet: {self._progress.words()}, {now - self._began:.0f} s"
        if reporter.isatty:
            reporter.rewrite(line, erase=True)
        else:
            reporter.ensure_newline()
            reporter.write_line(line)
