"""When a run gives a connector up: after two scenarios without an answer, or two that never began."""

from __future__ import annotations

import threading
from pathlib import Path

from signet_conformance.drivers.process import WatchedDriver
from signet_conformance.errors import NothingTestedError
from signet_conformance.running.station import Station
from signet_conformance.scenarios.scenario import Scenario

MOST_FAILURES = 2


class Patience:
    """Counts over all workers. `why` says what the run is given up for; None as long as it goes on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._silent = 0
        self._unstarted = 0
        self._performed = 0
        self._under_way: set[WatchedDriver] = set()
        self.why: str | None = None

    def begin(self, watched: WatchedDriver) -> None:
        """Take in that a scenario is under way."""
        with self._lock:
            self._under_way.add(watched)

    def note(self, watched: WatchedDriver, error: str | None) -> None:
        """Take in how a scenario ended. When the run is given up, the other workers' scenarios end too."""
        with self._lock:
            self._under_way.discard(watched)
            if self.why is not None:
                return
            if error is None:
                self._performed += 1
            elif watched.is_silent:
                self._silent += 1
            elif watched.is_unstarted:
                self._unstarted += 1
            if self._silent >= MOST_FAILURES:
                self.why = f"in {MOST_FAILURES} scenarios the program gave no answer"
            elif self._unstarted >= MOST_FAILURES and not self._performed:
                self.why = "the connector cannot be started"
            ended = () if self.why is None else tuple(self._under_way)
        for other in ended:
            other.give_up()


def perform(
    station: Station,
    scenario: Scenario,
    watched: WatchedDriver,
    out: Path,
    patience: Patience,
    *,
    apart: str | None = None,
    part: bool = False,
) -> str | None:
    """Perform a scenario as :meth:`Station.perform` does; the error too where the connector could not be started."""
    patience.begin(watched)
    try:
        error = station.perform(scenario, watched, out, apart=apart, part=part)
    except NothingTestedError as failure:
        error = str(failure)
    patience.note(watched, error)
    return error
