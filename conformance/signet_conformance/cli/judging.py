"""The files of one run of `check`, judged one after the other and shown to its reports as they come."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from signet_conformance.cli.commands import tell
from signet_conformance.cli.recordings import read_recording
from signet_conformance.engine import Judged
from signet_conformance.errors import SignetConformanceError
from signet_conformance.outcome.broken_off import broke_off
from signet_conformance.outcome.conclusion import Conclusion, Judging, Terms
from signet_conformance.reports.ending import Ending, Report


class Files:
    """What one run of `check` reads. What cannot be judged is told at once, and the rest of the run goes on."""

    def __init__(
        self, terms: Terms, *, measured: bool, selftest: Mapping[str, Any] | None = None, workers: int = 1
    ) -> None:
        self.judging = Judging(terms, measured=measured, workers=workers)
        self.reports: list[Report] = []
        self._selftest = selftest
        self._complaints: list[SignetConformanceError] = []
        self._notes: list[str] = []

    def complain(self, failure: SignetConformanceError) -> None:
        """Tell what cannot be judged."""
        sys.stdout.flush()
        tell(failure)
        self._complaints.append(failure)

    def pass_over(self, note: str) -> None:
        """Tell of a file that does not belong to the run."""
        sys.stdout.flush()
        print(f"note: {note}", file=sys.stderr)
        self._notes.append(note)

    def each(self, files: Iterable[str]) -> Iterator[Judged]:
        """Judge the files that can be read, in order."""
        for file in files:
            # Traces hold millions of objects and no cycles: looking for any takes as long as a third of the judging.
            gc.disable()
            try:
                judged = self.judging.judge(read_recording(file))
            except SignetConformanceError as failure:
                failure.where = failure.where or file
                self.complain(failure)
                continue
            finally:
                gc.enable()
            # A scenario that was broken off decides nothing, in a report no more than elsewhere.
            if broke_off(judged.trace) is None:
                known = self.judging.known_in(judged)
                for report in self.reports:
                    report.add(judged, known)
            yield judged

    def conclude(self) -> Conclusion:
        """What the run came to; the failures that it lets pass are written down."""
        conclusion = self.judging.conclude(unread=self._complaints, notes=self._notes)
        conclusion.write_audit()
        return conclusion

    def close_reports(self, conclusion: Conclusion) -> None:
        """Write the end of every report."""
        ending = Ending.of(conclusion, self._selftest)
        for report in self.reports:
            report.close(ending)
