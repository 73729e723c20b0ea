"""One run: a request that is performed, judged and written down. `run` and the CI lane are faces of it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TextIO

from msgspec.structs import replace

from signet_conformance.errors import UsageError, printable
from signet_conformance.outcome.broken_off import Recordings
from signet_conformance.outcome.conclusion import Conclusion, Judging
from signet_conformance.outcome.time_spent import TimeSpent
from signet_conformance.reports.ending import Ending
from signet_conformance.reports.registry import Format, write_reports
from signet_conformance.running.events import Tell
from signet_conformance.running.plan import Invocation
from signet_conformance.running.request import Request
from signet_conformance.running.stopwatch import DRIVING, JUDGING, REPORTS
from signet_conformance.running.untouched import Untouched
from signet_conformance.running.warm import warmed

_SWITCH_INTERVAL_S = 0.001


@contextmanager
def _many_threads() -> Iterator[None]:
    """Within it, the interpreter suits threads that mostly wait for processes.

    Garbage collections leave alone what has been loaded by now: Hypothesis collects in each thread that draws. Who has
    been waiting takes over soon from who draws or judges.
    """
    interval_s = sys.getswitchinterval()
    gc.freeze()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        sys.setswitchinterval(interval_s)
        gc.unfreeze()


class Performance:
    """One performance of a request, or the judging of the recordings that it names."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.recordings = Recordings(request.folder, request.recordings)

    def drive(self, invocation: Invocation, tell: Tell) -> None:
        """Drive the target's connector, which leaves recordings in the folder of the request.

        `invocation` is what replays begin with. Raises SignetConformanceError when no scenario can be performed.
        """
        plan = self.request.plan(invocation)
        self.request.demand_consent(tell)
        real = plan.target.real
        own = () if real is None else real.program.profile.user_folders
        with Untouched(Path.home(), own), warmed(plan.target.name, plan.daemon):
            # Imported when something is driven: who only asks for help has no use for Hypothesis.
            from signet_conformance.running.run import drive

            with self.request.stopwatch.phase(DRIVING), _many_threads():
                self.recordings.performed = drive(plan, self.request.folder, tell)

    @cached_property
    def judging(self) -> Judging:
        """The judging of every recording. Raises TraceError for one that cannot be read."""
        judging = Judging(self.request.terms(), measured=True, whole=True)
        with self.request.stopwatch.phase(JUDGING):
            for judged in judging.judged_alone(self.recordings.traces()):
                judging.add(judged)
        return judging

    @cached_property
    def conclusion(self) -> Conclusion:
        """The conclusion over the recordings. Raises TraceError for one that cannot be read."""
        return self.judging.conclude(generated=self.recordings.generated(), shortfall=self.recordings.shortfall())

    @property
    def time_spent(self) -> TimeSpent | None:
        """Where the time of the run went until now; None unless that was asked for."""
        return self.request.stopwatch.read() if self.request.stopwatch.detailed else None

    def ending(self, conclusion: Conclusion, status: int | None = None) -> Ending:
        """What the reports are told of the run, which ends with `status`, or else with that of the conclusion."""
        ending = replace(Ending.of(conclusion), time_spent=self.time_spent)
        return ending if status is None else replace(ending, status=status)

    def write(self) -> str | None:
        """Write the audit, and the baseline and the reports that were asked for.

        Returns in words which baseline was written, None without. Raises UsageError when something cannot be written.
        """
        self.conclusion.write_audit()
        baseline = self.conclusion.write_baseline()
        if self.request.report:
            try:
                with self.request.stopwatch.phase(REPORTS):
                    write_reports(self.request.folder, self.ending(self.conclusion), self.judging.known_in)
            except OSError as failure:
                raise UsageError(
                    f"the report cannot be written: {failure.strerror}",
                    where=printable(self.request.folder),
                    remedy="name a folder on a disk that has room",
                ) from None
        return baseline

    def write_report(self, form: Format, stream: TextIO) -> None:
        """Write one report of the run."""
        report = form.open(stream)
        for judged in self.conclusion.judged:
            report.add(judged, self.judging.known_in(judged))
        report.close(self.ending(self.conclusion))
