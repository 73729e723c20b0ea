"""One run: a request that is performed, judged and reported. `run`, pytest and the CI lane use it."""

from __future__ import annotations

import gc
import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from signet_conformance.children.forks import warmed
from signet_conformance.errors import EXIT_INTERRUPTED, KitError, os_errors, printable
from signet_conformance.finding import BREACHES
from signet_conformance.outcome.broken_off import Recordings
from signet_conformance.outcome.conclusion import Conclusion, Judging
from signet_conformance.outcome.time_spent import TimeSpent
from signet_conformance.reports import Format, write_reports
from signet_conformance.reports.ending import RunEnding
from signet_conformance.running.progress import Tell
from signet_conformance.running.request import DrivenRequest, Invocation, RunRequest
from signet_conformance.running.stopwatch import DRIVING, JUDGING, REPORTS
from signet_conformance.trace.recordings import recordings_in

if TYPE_CHECKING:
    from signet_conformance.running.connector import Patience
    from signet_conformance.running.workers import RunWorkers

_SWITCH_INTERVAL_S = 0.001


@contextmanager
def _many_threads() -> Iterator[None]:
    """Tune the interpreter for threads that mostly wait for processes.

    Objects that exist by now are left out of garbage collections, which Hypothesis runs in each thread that draws. A
    short switch interval lets a thread that was waiting soon take over from one that draws or judges.
    """
    interval_s = sys.getswitchinterval()
    gc.freeze()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        sys.setswitchinterval(interval_s)
        gc.unfreeze()


@contextmanager
def guarded(home: Path, folders: Sequence[str]) -> Iterator[None]:
    """Raise KitError at the end of the block if one of the `folders` of a `home` has changed meanwhile.

    A real program must leave the user's own files as they were.
    """
    before = {name: fingerprint(home / name) for name in folders}
    yield
    changed = [name for name in folders if fingerprint(home / name) != before[name]]
    if changed:
        raise KitError(
            f"{', '.join(changed)} changed meanwhile: the program left the home that it was given",
            where=str(home),
            remedy="close the same program if you use it yourself, and run again; else report it",
        )


def fingerprint(place: Path) -> str:
    """Return a hash of the names, sizes and times of every file at and below a place."""
    digest = hashlib.sha256()
    for path in _below(place):
        facts = path.lstat()
        digest.update(f"{path}\0{facts.st_size}\0{facts.st_mtime_ns}\0{facts.st_mode}\0".encode("utf-8", "replace"))
    return digest.hexdigest()


def _below(place: Path) -> Iterator[Path]:
    if os.path.lexists(place):
        yield place
    for folder, folders, files in os.walk(place):
        folders.sort()
        yield from (Path(folder, name) for name in sorted([*folders, *files]))


class RunPerformance:
    """Judges the recordings of a request, and writes its reports."""

    def __init__(self, request: RunRequest) -> None:
        self.request = request
        self.recordings = Recordings(request.folder, request.recordings)

    @cached_property
    def judging(self) -> Judging:
        """The judging of all recordings. Raises TraceError for one that cannot be read."""
        judging = Judging(self.request.terms(), measured=True, whole=True)
        with self.request.stopwatch.phase(JUDGING):
            for judged in judging.judge_traces(self.recordings.traces()):
                judging.add(judged)
        return judging

    @cached_property
    def conclusion(self) -> Conclusion:
        """The conclusion over the recordings. Raises TraceError for one that cannot be read."""
        return self.judging.conclude(generated=self.recordings.generated(), shortfall=self.recordings.shortfall())

    @property
    def status(self) -> int:
        """The exit status: that of an interrupted program where the user stopped the run, else the conclusion's."""
        return EXIT_INTERRUPTED if self.conclusion.is_interrupted else self.conclusion.status

    @property
    def time_spent(self) -> TimeSpent | None:
        """The time of the run until now, by part and phase; None unless the request asks for it."""
        return self.request.stopwatch.time_spent() if self.request.stopwatch.detailed else None

    @property
    def keeps_traces(self) -> bool:
        """Whether the traces are kept: in a report, or because the output names them for a replay."""
        if self.request.report:
            return True
        generated = self.conclusion.generated
        unconfirmed = generated is not None and generated.has_unconfirmed
        broken = any(verdict in BREACHES for verdict in self.conclusion.verdicts.values())
        named = unconfirmed or self.conclusion.lacks_scenarios or broken
        return named and bool(recordings_in(self.request.folder))

    def ending(self, conclusion: Conclusion, status: int | None = None) -> RunEnding:
        """Return what the reports say of the run, with `status` (default: that of the conclusion)."""
        return RunEnding(conclusion, time_spent=self.time_spent, ended_with=status)

    def remember(self) -> None:
        """Remember the breaches for later runs of the target. Judged recordings leave none."""

    def write(self) -> str | None:
        """Write the audit, and the baseline and the reports of the request.

        Returns a sentence on the baseline written, None without. Raises UsageError if a file cannot be written.
        """
        self.remember()
        self.conclusion.write_audit()
        # An interrupted run has not seen all failures, so it writes no baseline.
        baseline = None if self.conclusion.is_interrupted else self.conclusion.write_baseline()
        if self.request.report:
            where, remedy = printable(self.request.folder), "name a folder on a disk that has room"
            with (
                os_errors("the report cannot be written", where=where, remedy=remedy),
                self.request.stopwatch.phase(REPORTS),
            ):
                write_reports(self.request.folder, self.ending(self.conclusion), self.conclusion.terms.known_in)
        return baseline

    def write_report(self, form: Format, stream: TextIO) -> None:
        """Write one report of the run."""
        report = form.open(stream)
        for judged in self.conclusion.judged:
            report.add(judged, self.conclusion.terms.known_in(judged))
        report.close(self.ending(self.conclusion))


class DrivenPerformance(RunPerformance):
    """One performance of a request that drives a connector."""

    request: DrivenRequest

    def __init__(self, request: DrivenRequest) -> None:
        super().__init__(request)

    def drive(
        self,
        invocation: Invocation,
        tell: Tell,
        workers: RunWorkers | None = None,
        patience: Patience | None = None,
    ) -> None:
        """Drive the target's connector, which leaves recordings in the folder of the request.

        A caller may lend `workers`, which continue after the run, and the `patience` by which another thread ends the
        run. The commands for replays begin with `invocation`. Raises SignetConformanceError if no scenario can be
        performed.
        """
        request = self.request
        with ExitStack() as around:
            if workers is None:
                request.demand_consent(tell)
                real = request.target.real
                own = () if real is None else real.program.profile.user_folders
                around.enter_context(guarded(Path.home(), own))
                around.enter_context(warmed(request.target.name, request.daemon))
            # Imported late: only a driven run needs Hypothesis, and what forks programs warms up meanwhile.
            from signet_conformance.running.run import drive

            around.enter_context(request.stopwatch.phase(DRIVING))
            around.enter_context(_many_threads())
            self.recordings.performed = drive(request, invocation, tell, workers, patience)

    def remember(self) -> None:
        """Remember which scenario showed which breach."""
        # Imported late: it reads scenarios, which import pydantic, and a run over recordings has none.
        from signet_conformance.running.scenario_choice import EarlierBreaches

        EarlierBreaches.of(self.request.target).note(self.conclusion)
