"""A driver that remembers where it broke off, for the message about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from signet_conformance.drivers.launch import Driver
from signet_conformance.drivers.process import Broken, BrokenOffError, OnEvent
from signet_conformance.errors import NothingTestedError, SignetConformanceError, printable
from signet_conformance.outcome.broken_off import BrokenOff
from signet_conformance.scenarios.scenario import Scenario
from signet_conformance.scenarios.steps import ConnectorStep
from signet_conformance.targets import Target

T = TypeVar("T")

_KIT = "the kit, which then has a defect that deserves a report"


class Watched:
    """A driver that performs one scenario.

    `failure` is what broke it off, None as long as nothing did; `given_up` tells that it was ended with the run.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._begun = 0
        self._flushing = False
        self.failure: SignetConformanceError | None = None
        self.given_up = False

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

    def give_up(self) -> None:
        """End the connector while it performs, from another thread: what comes of it says nothing."""
        self.given_up = True
        self.close()

    def _watch(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except SignetConformanceError as failure:
            self.failure = failure
            raise

    @property
    def broken_off(self) -> BrokenOffError | None:
        """How the program broke off; None when it did not, or when it was not the program."""
        failure = self.failure
        # That a connector cannot be started says beside it how its program ended.
        cause = failure.__cause__ if failure is not None and not isinstance(failure, BrokenOffError) else failure
        return cause if isinstance(cause, BrokenOffError) else None

    @property
    def is_silent(self) -> bool:
        """Whether it was broken off because the program gave no answer."""
        broken = self.broken_off
        return broken is not None and broken.how is Broken.SILENT

    @property
    def is_unstarted(self) -> bool:
        """Whether the program broke off when it was greeted, which may be at the first step of a session of its own."""
        greeted = self._begun == 0 or isinstance(self.failure, NothingTestedError)
        return greeted and self.broken_off is not None

    def told(self, scenario: Scenario, error: str, target: Target, replay: str) -> BrokenOff:
        """How the scenario was broken off, `error` as its recording has it, for the reader of the run."""
        broken = self.broken_off
        if broken is None:
            reason = "; ".join(map(str.strip, error.splitlines()))
            return BrokenOff(scenario.name, self._place(scenario), printable(reason, 600), (), _KIT, replay)
        own = target.kind.own_program
        if broken.how is Broken.GARBLED:
            fault = "the driver program, which breaks the protocol" if own else _KIT
        elif target.real is not None:
            title = target.real.program.profile.title
            fault = f"{title}, as its words tell, or how the kit drives it; else the connector in it"
        else:
            fault = "the driver program, or the connector in it" if own else "the connector, else the kit's host for it"
        return BrokenOff(scenario.name, self._place(scenario), broken.message, broken.tail, fault, replay)

    def _place(self, scenario: Scenario) -> str:
        """The step of the scenario that it came to: number and kind."""
        steps = [(n, step.step) for n, step in enumerate(scenario.steps) if isinstance(step, ConnectorStep)]
        if self._begun == 0:
            return "before its first step"
        number, kind = steps[self._begun - 1]
        if self._flushing:
            return f"after its last step, {number} ({kind})"
        return f"step {number} ({kind})" if self.failure is not None else f"after step {number} ({kind})"
