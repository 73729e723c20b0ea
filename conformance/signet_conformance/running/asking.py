"""Which steps a driver performs: what its answer to hello lists, and else what comes of handing them over.

The protocol has no question for it. So a compaction is performed in halves once, in a session that no trace holds: a
driver that skips a half, or refuses it, is given none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from signet_conformance.drivers.process import ConnectorDriver
from signet_conformance.errors import SignetConformanceError, printable
from signet_conformance.running.station import Station
from signet_conformance.scenarios.features import HALVES, WHOLE_STEPS, said_steps
from signet_conformance.scenarios.steps import (
    CompactionCompleteStep,
    ConnectorStep,
    EndStep,
    PreCompactionStep,
    PromptStep,
    StartStep,
)
from signet_conformance.trace import Trace
from signet_conformance.trace.marks import SkippedMark, StepMark, marks_of

_SESSION = "asked-for-steps"
_ASKED: tuple[ConnectorStep, ...] = (
    PromptStep.model_validate({"session": _SESSION, "text": "What is next?", "reply": "Nothing."}),
    PreCompactionStep(session=_SESSION),
    CompactionCompleteStep(session=_SESSION, summary="Nothing was changed."),
    EndStep(session=_SESSION),
)


@dataclass(frozen=True, slots=True)
class Performs:
    """The steps that a driver performs. `listed` tells whether it said so; `lacks` why it was given no halves."""

    steps: frozenset[str]
    listed: bool
    lacks: str | None = None

    def lost(self, possible: frozenset[str], *, own_program: bool) -> str | None:
        """What generated sessions do not hold because of it, and what to do; None where nothing is lost.

        `possible` are the steps that make sense with what the target declares.
        """
        advice = 'list its steps in the answer to hello ("steps": docs/driver-protocol.md)'
        missing = ", ".join(sorted(possible - self.steps))
        if not missing:
            if self.listed or not own_program:
                return None
            return f"the driver does not say which steps it performs; it was asked by trying: {advice}"
        if self.listed:
            return f"no generated session holds {missing}: the driver does not list it among its steps"
        told = (
            f"no generated session holds {missing}: the driver does not say what it performs, and tried, {self.lacks}"
        )
        return f"{told}; {advice}" if own_program else told


def performed_steps(station: Station, hello: Mapping[str, Any]) -> Performs:
    """What a driver performs, by its answer to hello or, where that says nothing, by a session of its own."""
    said = said_steps(hello)
    if said is not None:
        return Performs(said, listed=True)
    try:
        driver = station.launch({})
    except SignetConformanceError as failure:
        return Performs(WHOLE_STEPS, listed=False, lacks=_words(failure))
    try:
        return _asked(driver, station)
    except SignetConformanceError as failure:
        return Performs(WHOLE_STEPS, listed=False, lacks=_words(failure))
    finally:
        driver.close()


def _asked(driver: ConnectorDriver, station: Station) -> Performs:
    greeted: list[Mapping[str, Any]] = [driver.hello()]

    def on_event(event: Mapping[str, Any]) -> None:
        # A process for each session is greeted when the session begins.
        if event.get("event") == "hello" and isinstance(event.get("about"), dict):
            greeted.append(event["about"])

    agents = station.target.declared.agents
    start = StartStep(session=_SESSION, agent=agents[0] if agents else None, project="/workspace/src/acme-api")
    driver.perform({name: value for name, value in start.to_json().items() if value is not None}, on_event)
    for about in greeted:
        if (said := said_steps(about)) is not None:
            return Performs(said, listed=True)
    for step in _ASKED:
        result = driver.perform(step.to_json(), on_event)
        if "skipped" in result and step.step in HALVES:
            return Performs(
                WHOLE_STEPS, listed=False, lacks=f"it skips {step.step}: {printable(result['skipped'], 200)}"
            )
    return Performs(WHOLE_STEPS | HALVES, listed=False)


def _words(failure: SignetConformanceError) -> str:
    return printable(failure.message, 200)


def skipped_steps(recorded: Trace) -> Counter[str]:
    """How many steps of each kind were skipped in a scenario, as its marks say."""
    kinds = {step.index: step.step or "a step" for step in marks_of(recorded, StepMark)}
    return Counter(kinds.get(mark.index, "a step") for mark in marks_of(recorded, SkippedMark))
