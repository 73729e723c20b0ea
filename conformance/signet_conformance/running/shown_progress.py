"""Shows the progress of a run: a live display on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self, TextIO

from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from signet_conformance.errors import printable
from signet_conformance.reports.terminal import console, is_live
from signet_conformance.running.events import Event, Noted, RunStarted, ScenarioBrokeOff, Tell, WritesInto, unheard
from signet_conformance.running.progress import Progress as SoFar

LINE_EVERY_S = 5.0
"""How often a line is written where none can be drawn over: seldom enough for a log."""


@contextmanager
def shown_progress(
    stream: TextIO, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic
) -> Iterator[Tell]:
    """Show the progress of a run while the block lasts, on `stream`; nothing when `quiet`."""
    if quiet:
        yield unheard
    elif is_live(stream):
        with _Display(stream) as display:
            yield display.tell
    else:
        yield _Lines(stream, clock).tell


class _Lines:
    """A line every few seconds, and one for the first scenario that broke off for a reason."""

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        self._stream = stream
        self._clock = clock
        self._so_far = SoFar()
        self._began = self._told = clock()

    def tell(self, event: Event) -> None:
        """Take in an event, and write a line unless that was done a moment ago."""
        self._so_far.take(event)
        if isinstance(event, ScenarioBrokeOff) and _is_first(event, self._so_far):
            self._write(_broke_off(event))
        if isinstance(event, WritesInto | Noted):
            self._write(event.words)
        now = self._clock()
        if now - self._told >= LINE_EVERY_S:
            self._told = now
            self._write(f"{self._so_far.words()}, {now - self._began:.0f} s")

    def _write(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


class _Display:
    """Two bars, for scenarios and for generated sessions, and what is being followed up."""

    def __init__(self, stream: TextIO) -> None:
        columns: tuple[str | ProgressColumn, ...] = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[doing]}"),
        )
        self._so_far = SoFar()
        self._progress = Progress(*columns, console=console(stream), transient=True)
        self._tasks: list[TaskID] = []

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def tell(self, event: Event) -> None:
        """Take in an event."""
        so_far = self._so_far
        so_far.take(event)
        if isinstance(event, RunStarted):
            totals = [("scenarios", event.scenarios), ("generated sessions", event.sessions)]
            self._tasks = [self._progress.add_task(name, total=total, doing="") for name, total in totals if total > 0]
            return
        if isinstance(event, ScenarioBrokeOff) and _is_first(event, so_far):
            self._progress.console.print(_broke_off(event))
        if isinstance(event, WritesInto | Noted):
            self._progress.console.print(event.words, markup=False)
        counts = (so_far.scenarios, so_far.sessions) if so_far.of_scenarios else (so_far.sessions,)
        doing = (so_far.last, so_far.doing) if so_far.of_scenarios else (so_far.doing,)
        for task, count, what in zip(self._tasks, counts, doing, strict=False):
            self._progress.update(task, completed=count, doing=what)


def _is_first(event: ScenarioBrokeOff, so_far: SoFar) -> bool:
    # A connector that throws breaks all scenarios off alike; the end of the run names each.
    return so_far.reasons[event.reason] == 1


def _broke_off(event: ScenarioBrokeOff) -> str:
    return f"{printable(event.name, 100)} broke off: {printable(event.reason, 120)}"
