"""Watches the driver of a scenario: the step that it has reached, what broke it off, whether the run gave it up."""

from __future__ import annotations

import re
import sysconfig
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from signet_conformance.drivers.process import BrokenOffError, ConnectorDriver, DriverFault, OnEvent
from signet_conformance.errors import NothingTestedError, SignetConformanceError, TargetError, printable
from signet_conformance.outcome.broken_off import BrokenOff
from signet_conformance.scenarios.scenario import Scenario
from signet_conformance.scenarios.steps import ConnectorStep
from signet_conformance.targets import Target

T = TypeVar("T")

LONG_WAIT_S = 20.0
"""After how many seconds without an answer the run reports it; for a long step, after a sixth of its bound."""
_KIT = "the kit; please report this as a defect"
_PLACE = re.compile(r"(?:File \"|at .*?|\(|file://)(/[^\s\"():]+)")
_OWN = str(Path(__file__).resolve().parents[1])


def _is_defect_of_kit(tail: Sequence[str]) -> bool:
    """Whether a traceback at the end of standard error has only frames of the kit and of Python's library."""
    places = [place for line in tail for place in _PLACE.findall(line)]
    of_kit = [place for place in places if place.startswith(_OWN)]
    return bool(of_kit) and all(place in of_kit or place.startswith(sysconfig.get_path("stdlib")) for place in places)


class WatchedDriver:
    """A driver that performs one scenario.

    `failure` is the error that broke it off, or None. `given_up` says why the run ended it, or is None.
    """

    def __init__(self, driver: ConnectorDriver) -> None:
        self._driver = driver
        self._begun = 0
        self._flushing = False
        self.failure: SignetConformanceError | None = None
        self.given_up: str | None = None
        self._ending = threading.Lock()
        self._is_over = False
        self._asked_at: float | None = None
        """When the request was sent that has no answer yet; None without one, and after `long_wait` has reported it."""

    @property
    def tag(self) -> str:
        """The tag of the driver's connector."""
        return self._driver.tag

    def hello(self) -> Mapping[str, Any]:
        """Greet the connector."""
        return self._watch(self._driver.hello)

    def perform(self, step: Mapping[str, Any], on_event: OnEvent) -> Mapping[str, Any]:
        """Hand one step over."""
        self._begun += 1
        return self._watch(lambda: self._driver.perform(step, on_event))

    def flush(self) -> None:
        """Wait until all background work is done."""
        self._flushing = True
        self._watch(self._driver.flush)

    def close(self) -> None:
        """End the connector."""
        self._driver.close()
        with self._ending:
            self._is_over = True

    def give_up(self, why: str) -> None:
        """End the connector from another thread while it performs; its recording is then not judged.

        If the connector has already ended, do nothing: its recording is complete.
        """
        with self._ending:
            if self._is_over:
                return
            self.given_up = why
        self.close()

    def long_wait(self, scenario: Scenario, at_most_s: float) -> str | None:
        """Describe a request that has had no answer for long, once for each request; None without one."""
        # A real program may need more than LONG_WAIT_S to start, and has a bound of minutes.
        asked_at, long_s = self._asked_at, max(LONG_WAIT_S, at_most_s / 6)
        if asked_at is None or time.monotonic() - asked_at < long_s:
            return None
        where = f"{scenario.name}, {self._place(scenario)}"
        self._asked_at = None
        return f"{where}: no answer of the connector for {long_s:g} s; it is given up after about {at_most_s:g} s"

    def _watch(self, call: Callable[[], T]) -> T:
        self._asked_at = time.monotonic()
        try:
            return call()
        except SignetConformanceError as failure:
            self.failure = failure
            if self.given_up is not None:
                raise TargetError(self.given_up) from failure
            raise
        except Exception as torn:
            # `give_up` closed the processes while this thread was using them.
            if self.given_up is None:
                raise
            raise TargetError(self.given_up) from torn
        finally:
            self._asked_at = None

    @property
    def broken_off(self) -> BrokenOffError | None:
        """How the program broke off; None if it did not, or if the failure was not the program's."""
        failure = self.failure
        # An error of the start has the program's own as its cause.
        cause = failure.__cause__ if failure is not None and not isinstance(failure, BrokenOffError) else failure
        return cause if isinstance(cause, BrokenOffError) else None

    @property
    def is_silent(self) -> bool:
        """Whether it was broken off because the program gave no answer."""
        broken = self.broken_off
        return broken is not None and broken.how is DriverFault.SILENT

    @property
    def is_unstarted(self) -> bool:
        """Whether the program broke off at `hello`, which may come with the first step of a session."""
        greeted = self._begun == 0 or isinstance(self.failure, NothingTestedError)
        return greeted and self.broken_off is not None

    def describe(self, scenario: Scenario, error: str, target: Target, replay: str) -> BrokenOff:
        """Describe for the user how the scenario was broken off; `error` is the one in its recording."""
        broken = self.broken_off
        if broken is None:
            reason = "; ".join(map(str.strip, error.splitlines()))
            return BrokenOff(scenario.name, self._place(scenario), printable(reason, 600), (), _KIT, replay)
        own = target.kind.own_program
        if broken.how is DriverFault.DEFECT or (not own and _is_defect_of_kit(broken.tail)):
            fault = _KIT
        elif broken.how is DriverFault.GARBLED:
            fault = "the driver program, which breaks the protocol" if own else _KIT
        elif target.real is not None:
            title = target.real.program.profile.title
            fault = (
                f"{title}, as its message says, or the way in which the kit drives it; otherwise the connector in it"
            )
        else:
            fault = (
                "the driver program, or the connector in it"
                if own
                else "the connector; otherwise the kit's host for it"
            )
        return BrokenOff(scenario.name, self._place(scenario), broken.message, broken.tail, fault, replay)

    def _place(self, scenario: Scenario) -> str:
        """Number and kind of the step that was reached."""
        steps = [(n, step.step) for n, step in enumerate(scenario.steps) if isinstance(step, ConnectorStep)]
        if self._begun == 0:
            return "before its first step"
        number, kind = steps[self._begun - 1]
        if self._flushing:
            return f"after its last step, {number} ({kind})"
        is_within = self.failure is not None or self._asked_at is not None
        return f"{'' if is_within else 'after '}step {number} ({kind})"
