"""A connector at a station: performs one scenario after the other, each judged at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from signet_conformance import engine, trace
from signet_conformance.contract import requirements
from signet_conformance.drivers.process import ConnectorDriver, WatchedDriver
from signet_conformance.errors import SignetConformanceError
from signet_conformance.outcome.time_spent import Part
from signet_conformance.rules import rules
from signet_conformance.running.patience import Patience, perform
from signet_conformance.running.station import Station
from signet_conformance.scenarios.scenario import Scenario


class Connector:
    """Performs one scenario after the other; a process that broke is replaced by a new one.

    `only` are the requirements that count, None for all. A context manager: the process ends with it.
    """

    def __init__(self, station: Station, patience: Patience, only: frozenset[str] | None = None) -> None:
        self._station = station
        self._patience = patience
        self._only = only
        self._driver: ConnectorDriver | None = None
        self.hello: Mapping[str, Any] = {}
        self.watched: WatchedDriver | None = None
        """What performed last, or was to."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def greet(self) -> ConnectorDriver:
        """The process, launched and greeted unless it was already.

        Raises SignetConformanceError when it cannot be started or does not answer.
        """
        if self._driver is None:
            self._driver = self._station.launch({})
            self.watched = WatchedDriver(self._driver)
            try:
                self.hello = self.watched.hello()
            except SignetConformanceError as failure:
                self._patience.note(self.watched, str(failure))
                self._close()
                raise
        return self._driver

    def judged(self, scenario: Scenario, out: Path, apart: str | None) -> engine.Judged | str:
        """Perform a scenario and judge its trace; the error when it could not be performed.

        Without `apart` it has a process of its own, as everything has where a process serves one session.
        """
        if self._patience.why is not None:
            return self._patience.why
        if self._station.target.processes == "session":
            apart = None
        try:
            driver = self.greet() if apart is not None else self._station.launch({})
        except SignetConformanceError as failure:
            return str(failure)
        self.watched = WatchedDriver(driver)
        error = perform(self._station, scenario, self.watched, out, self._patience, apart=apart)
        if error is not None:
            self._close()
            return error
        with self._station.stopwatch.on(Part.JUDGING):
            return engine.judge(trace.read(out), self._judged_by(apart))

    def _judged_by(self, apart: str | None) -> frozenset[str] | None:
        if apart is None:
            return self._only
        asked = frozenset(rules()) if self._only is None else self._only
        # One session in the middle does not show what a connector does once a process, or once a run.
        return asked - {name for name, entry in requirements().items() if entry.needs != "trace"}

    def _close(self) -> None:
        if self._driver is not None:
            with self._station.stopwatch.on(Part.ENDING):
                self._driver.close()
            self._driver = None
