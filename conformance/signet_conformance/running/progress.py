"""The events of a run, and the display of its progress: live on a terminal, else a line every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO, TypeAlias

from signet_conformance.errors import printable
from signet_conformance.finding import Verdict

if TYPE_CHECKING:
    from rich.progress import ProgressColumn, TaskID

LINE_EVERY_S = 5.0
"""Seconds between two lines where none can be redrawn: few enough for a log."""


@dataclass(frozen=True, slots=True)
class RunNote:
    """A note in `words` on the surroundings of the run."""

    words: str


@dataclass(frozen=True, slots=True)
class DrivingStarted:
    """The run begins: the number of its `scenarios`, and of its generated `sessions`."""

    scenarios: int
    sessions: int


@dataclass(frozen=True, slots=True)
class ScenarioPerformed:
    """A scenario was performed; `error` says why it broke off, or is None."""

    name: str
    error: str | None = None

    @property
    def reason(self) -> str:
        """The first line of the error, without the remedy."""
        return (self.error or "").partition("\n")[0]


@dataclass(frozen=True, slots=True)
class SessionPerformed:
    """A generated session was performed, or broke off."""


@dataclass(frozen=True, slots=True)
class FollowingUp:
    """A breach that generated sessions showed is performed again with a fresh connector, shrunk first if `shrinks`.

    `daemon`: the daemon breaches it, not the connector.
    """

    requirement: str
    verdict: Verdict
    shrinks: bool = False
    daemon: bool = False


@dataclass(frozen=True, slots=True)
class DrivingFinished:
    """The run is over."""


Event: TypeAlias = RunNote | DrivingStarted | ScenarioPerformed | SessionPerformed | FollowingUp | DrivingFinished
Tell: TypeAlias = Callable[[Event], None]
"""Is called with every event, one at a time, from any thread of the run."""


def ignore_event(event: Event) -> None:
    """Ignore every event: for a run whose progress is not shown."""


class RunProgress:
    """Counts performed scenarios and sessions. `doing` describes the breach that is followed up; empty without one."""

    def __init__(self) -> None:
        self.scenarios = 0
        self.of_scenarios = 0
        self.sessions = 0
        self.of_sessions = 0
        self.broken = 0
        self.reasons: dict[str, int] = {}
        """Reason, the first line of an error, to the number of scenarios that broke off for it."""
        self.doing = ""
        self.last = ""
        """The name of the newest scenario performed."""

    def take(self, event: Event) -> None:
        """Count an event."""
        match event:
            case DrivingStarted():
                self.of_scenarios, self.of_sessions = event.scenarios, event.sessions
            case ScenarioPerformed():
                self.scenarios += 1
                self.last = event.name
                if event.error is not None:
                    self.broken += 1
                    self.reasons[event.reason] = self.reasons.get(event.reason, 0) + 1
            case SessionPerformed():
                self.sessions += 1
            case FollowingUp():
                self.doing = _following_up(event)
            case DrivingFinished():
                self.doing = ""

    def words(self) -> str:
        """Describe the progress: `13/21 scenarios, 20/60 generated sessions`, or the breach followed up."""
        if self.doing:
            return self.doing
        sessions = f", {self.sessions}/{self.of_sessions} generated sessions" if self.of_sessions else ""
        broken = f", {self.broken} broke off" if self.broken else ""
        return f"{self.scenarios}/{self.of_scenarios} scenarios{broken}{sessions}"


def _following_up(event: FollowingUp) -> str:
    if event.daemon:
        return f"performing again what showed {event.verdict} {event.requirement} on the daemon's side"
    how = "shrinking" if event.shrinks else "confirming"
    return f"{how} {event.verdict} {event.requirement}, found by a generated session"


@contextmanager
def show_progress(
    stream: TextIO, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic
) -> Iterator[Tell]:
    """Show the progress of a run on `stream` during the block; yields the function that takes its events."""
    if quiet:
        yield ignore_event
        return
    # Imported late: a run without a display needs no rich.
    from signet_conformance.reports.terminal import is_live

    if is_live(stream):
        display = _Display(stream)
        with display.progress:
            yield display.tell
    else:
        yield _Lines(stream, clock).tell


class _Lines:
    """Writes a line every few seconds, and one for each new reason for which a scenario breaks off."""

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        self._stream = stream
        self._clock = clock
        self._so_far = RunProgress()
        self._began = self._written = clock()

    def tell(self, event: Event) -> None:
        self._so_far.take(event)
        if (line := _immediate_line(event, self._so_far)) is not None:
            self._write(line)
        now = self._clock()
        if now - self._written >= LINE_EVERY_S:
            self._written = now
            self._write(f"{self._so_far.words()}, {now - self._began:.0f} s")

    def _write(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


class _Display:
    """Draws two bars, for scenarios and for generated sessions, and the breach followed up."""

    def __init__(self, stream: TextIO) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        from signet_conformance.reports.terminal import console

        columns: tuple[str | ProgressColumn, ...] = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[doing]}"),
        )
        self._so_far = RunProgress()
        self.progress = Progress(*columns, console=console(stream), transient=True)
        self._tasks: list[TaskID] = []

    def tell(self, event: Event) -> None:
        so_far = self._so_far
        so_far.take(event)
        if isinstance(event, DrivingStarted):
            totals = [("scenarios", event.scenarios), ("generated sessions", event.sessions)]
            self._tasks = [self.progress.add_task(name, total=total, doing="") for name, total in totals if total > 0]
            return
        if (line := _immediate_line(event, so_far)) is not None:
            self.progress.console.print(line, markup=False)
        counts = (so_far.scenarios, so_far.sessions) if so_far.of_scenarios else (so_far.sessions,)
        doing = (so_far.last, so_far.doing) if so_far.of_scenarios else (so_far.doing,)
        for task, count, task_doing in zip(self._tasks, counts, doing, strict=False):
            self.progress.update(task, completed=count, doing=task_doing)


def _immediate_line(event: Event, so_far: RunProgress) -> str | None:
    """A line about a note, or about the first scenario that broke off for its reason; None for other events."""
    if isinstance(event, RunNote):
        return event.words
    # A connector that throws breaks off all scenarios alike; the end of the run lists them.
    if isinstance(event, ScenarioPerformed) and event.error is not None and so_far.reasons[event.reason] == 1:
        return f"{printable(event.name, 100)} broke off: {printable(event.reason, 120)}"
    return None
