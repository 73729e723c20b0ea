"""A connector at a recorded daemon: it performs scenarios one by one, and each is judged at once."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from signet_conformance import engine, trace
from signet_conformance.contract import requirements
from signet_conformance.drivers.process import ConnectorDriver
from signet_conformance.drivers.watched_driver import WatchedDriver
from signet_conformance.errors import NothingTestedError, SignetConformanceError
from signet_conformance.facts import START, Recording
from signet_conformance.outcome.time_spent import TimePart
from signet_conformance.rules import rules
from signet_conformance.running.recorded_daemon import RecordedDaemon
from signet_conformance.scenarios.scenario import Scenario
from signet_conformance.trace.marks import SessionKeyMark

MOST_FAILURES = 2


class Patience:
    """Counts failures over all workers. A run ends after two scenarios without an answer, or two that never began.

    `why` says why the run gave up; None while it goes on.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._silent = 0
        self._unstarted = 0
        self._performed = 0
        self._under_way: dict[WatchedDriver, tuple[Scenario, float]] = {}
        """The drivers that perform now, with their scenario and the longest that they may take for a step."""
        self.why: str | None = None

    def begin(self, watched: WatchedDriver, scenario: Scenario, step_s: float) -> None:
        """Note that a scenario begins, whose steps may each take `step_s`."""
        with self._lock:
            self._under_way[watched] = scenario, step_s

    def long_waits(self) -> Sequence[str]:
        """Describe the requests that have had no answer for long, each once."""
        with self._lock:
            under_way = list(self._under_way.items())
        return [words for watched, step in under_way if (words := watched.long_wait(*step)) is not None]

    def note(self, watched: WatchedDriver, error: str | None) -> None:
        """Note the end of a scenario; after too many failures the run gives up."""
        with self._lock:
            self._under_way.pop(watched, None)
            if self.why is not None:
                return
            why = None
            if error is None:
                self._performed += 1
            elif watched.is_silent:
                self._silent += 1
            elif watched.is_unstarted:
                self._unstarted += 1
            if self._silent >= MOST_FAILURES:
                why = f"in {MOST_FAILURES} scenarios the program gave no answer"
            elif self._unstarted >= MOST_FAILURES and not self._performed:
                why = "the connector cannot be started"
        if why is not None:
            self.give_up(why)

    def give_up(self, why: str) -> None:
        """End the run early, and the scenarios under way with it."""
        with self._lock:
            self.why = self.why or why
            ended = tuple(self._under_way)
        if ended:
            # In parallel: each waits a moment for its program to end.
            with ThreadPoolExecutor(len(ended)) as ending:
                for future in [ending.submit(watched.give_up, self.why) for watched in ended]:
                    future.result()


def perform(
    recorded_daemon: RecordedDaemon,
    scenario: Scenario,
    watched: WatchedDriver,
    out: Path,
    patience: Patience,
    *,
    apart: str | None = None,
    earlier_keys: Iterable[str] = (),
    part: bool = False,
) -> str | None:
    """Perform a scenario as :meth:`RecordedDaemon.perform`. Return also the error of a start."""
    patience.begin(watched, scenario, recorded_daemon.step_timeout_s)
    try:
        error = recorded_daemon.perform(scenario, watched, out, apart=apart, earlier_keys=earlier_keys, part=part)
    except NothingTestedError as failure:
        error = str(failure)
    patience.note(watched, error)
    return error


class LiveConnector:
    """A connector process that performs one scenario after the other; a broken process is replaced by a new one.

    `only` are the requirements that count, None for all.
    """

    def __init__(self, recorded_daemon: RecordedDaemon, patience: Patience, only: frozenset[str] | None = None) -> None:
        self._recorded_daemon = recorded_daemon
        self._patience = patience
        self._only = only
        self._driver: ConnectorDriver | None = None
        self.hello: Mapping[str, Any] = {}
        self.watched: WatchedDriver | None = None
        """The process of the newest scenario."""
        self._keys: set[str] = set()
        """The keys of the sessions that the process has begun."""

    def greet(self) -> ConnectorDriver:
        """Return the process, launched and greeted first if needed.

        Raises SignetConformanceError if it cannot be started or does not answer.
        """
        if self._driver is None:
            self._driver, self._keys = self._recorded_daemon.launch({}), set()
            self.watched = WatchedDriver(self._driver)
            try:
                self.hello = self.watched.hello()
            except SignetConformanceError as failure:
                self._patience.note(self.watched, str(failure))
                self.close()
                raise
        return self._driver

    def perform_and_judge(self, scenario: Scenario, out: Path, apart: str | None) -> engine.JudgedTrace | str:
        """Perform a scenario and judge its trace. Return the error if it could not be performed.

        Without `apart`, and where a process serves one session, it has a process of its own.
        """
        if self._patience.why is not None:
            return self._patience.why
        if self._recorded_daemon.target.processes == "session":
            apart = None
        try:
            driver = self.greet() if apart is not None else self._recorded_daemon.launch({})
        except SignetConformanceError as failure:
            return str(failure)
        self.watched = WatchedDriver(driver)
        earlier = () if apart is None else sorted(self._keys)
        error = perform(
            self._recorded_daemon, scenario, self.watched, out, self._patience, apart=apart, earlier_keys=earlier
        )
        if error is not None:
            self.close()
            return error
        with self._recorded_daemon.stopwatch.on(TimePart.JUDGING):
            judged = engine.judge(trace.read(out), self._requirements_for(apart))
        self._keys |= _keys_begun(judged.recording)
        return judged

    def _requirements_for(self, apart: str | None) -> frozenset[str] | None:
        if apart is None:
            return self._only
        selected = frozenset(rules()) if self._only is None else self._only
        # One of several sessions does not show what a connector does once per process, or once per run.
        return selected - {name for name, entry in requirements().items() if entry.needs != "trace"}

    def close(self) -> None:
        """End the process, if one runs."""
        if self._driver is not None:
            self._recorded_daemon.end(self._driver)
            self._driver = None


def _keys_begun(recording: Recording) -> AbstractSet[str]:
    """The session keys of a recording: of starts, and those of the host, whose starts may have met a closed port."""
    started = {key for key, hooks in recording.hooks_of.items() if any(hook.operation == START for hook in hooks)}
    return started | {mark.key for mark in recording.marks(SessionKeyMark) if mark.key is not None}
