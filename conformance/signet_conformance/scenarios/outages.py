"""Outages as users have them: the steps of each, and whether a recording shows that it took place.

The number of a session determines its outage, not chance. For n outages, in each 2n sessions the first has none, the
next n have one outage each, and the others have none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec import json

from signet_conformance.scenarios.features import HALVES, Features
from signet_conformance.scenarios.scenario import Scenario
from signet_conformance.scenarios.steps import ConnectorStep, Step, SwitchFaultOn, SwitchFaultsOff
from signet_conformance.trace import Exchange, Mark, Trace
from signet_conformance.trace.fault_kinds import SLOW
from signet_conformance.trace.marks import FaultMark, StepMark, read_mark

REFUSED, SLOWED = "refuse", "slow"
_HOOKS = {
    "start": "/api/hooks/session-start",
    "resume": "/api/hooks/session-start",
    "prompt": "/api/hooks/user-prompt-submit",
    "end": "/api/hooks/session-end",
}
_Event = tuple[str, str, str | None]
"""Session, kind of a step, and the fault met in it."""
_KIND_OF = {path: kind for kind, path in _HOOKS.items() if kind != "resume"}


@dataclass(frozen=True, slots=True)
class Outage:
    """An outage. Its `steps` are written in a session of their own.

    A step that ends in `?` is sometimes left out. `refuse`, `slow` and a status begin that fault, `off` ends it, `next`
    begins another session. `shows` are the steps by which a scenario, or a recording, is known to hold the outage, in
    their order, each with the fault that is met in it. `scripted` is the scripted scenario with the same outage.
    """

    name: str
    scripted: str
    steps: str
    shows: tuple[tuple[str, str | None], ...]


OUTAGES = json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=tuple[Outage, ...])


def obstacle(outage: Outage, features: Features) -> str | None:
    """Say why generated sessions of a target cannot hold an outage; None if they can."""
    words = outage.steps.replace("?", "").split()
    disturbed = next(step for step, fault in outage.shows if fault is not None)
    if (hook := _HOOKS[disturbed].rpartition("/")[2]) in features.undeclared:
        return f"the connector declares no {hook}"
    for step in ("compact", "resume"):
        if step in words and step not in features.steps:
            return f"there is no {step}: it is not declared, or its driver performs none"
    if "slow:prompt" in words and not features.slow:
        return f"its bound is long; scenario {outage.scripted} waits for it"
    if "next" in words and not features.lives_on:
        return f"its process ends with a session; scenario {outage.scripted} tests that"
    return None


def usable(features: Features) -> Sequence[Outage]:
    """Return the outages that generated sessions of a target can hold."""
    return [outage for outage in OUTAGES if obstacle(outage, features) is None]


def outage_of(features: Features, number: int) -> Outage | None:
    """Return the outage of the session with this number, from 0; None for one left to chance."""
    outages = usable(features)
    place = number % (2 * len(outages)) if outages else 0
    return outages[place - 1] if 1 <= place <= len(outages) else None


def recorded_outages(recorded: Trace) -> Counter[str]:
    """Return the names of the outages of a recording: an exchange carries the fault, or nothing listened."""
    events = list(_recorded_events(recorded))
    return Counter(outage.name for outage in OUTAGES if _show(events, outage))


def _recorded_events(recorded: Trace) -> Iterator[_Event]:
    """Yield session, kind and the fault met, for each step, or for each hook in it that met a fault."""
    refusing: set[str] = set()
    step: StepMark | None = None
    is_refused = False
    met: list[tuple[str, str]] = []

    def step_events() -> Iterator[_Event]:
        if step is not None and step.step is not None and step.session is not None:
            session = step.session
            own: str | None = REFUSED if is_refused else None
            yield from ((session, kind, fault) for kind, fault in met)
            if is_refused or not met:
                yield session, "compact" if step.step in HALVES else step.step, own

    lines: list[Mark | Exchange] = [*recorded.marks, *recorded.exchanges]
    for line in sorted(lines, key=lambda line: line.seq):
        if isinstance(line, Exchange):
            kind = _KIND_OF.get(line.request.path)
            if kind is not None and line.fault is not None:
                met.append((kind, _word_of(line.fault)))
            continue
        mark = read_mark(line)
        if isinstance(mark, FaultMark) and mark.kind == REFUSED:
            refusing = refusing | {mark.identity} if mark.is_on else refusing - {mark.identity}
        elif isinstance(mark, StepMark):
            yield from step_events()
            step, is_refused, met = mark, bool(refusing), []
    yield from step_events()


def holds(scenario: Scenario, outage: Outage) -> bool:
    """Return True if the steps of a scenario lead a connector into an outage."""
    return _show(list(_planned_events(scenario)), outage)


def _show(events: Sequence[_Event], outage: Outage) -> bool:
    """Return True if a session has the steps of an outage, in their order."""
    each_session = [_of_session(events, session) for session in dict.fromkeys(session for session, _, _ in events)]
    return any(all(wanted in rest for wanted in outage.shows) for rest in each_session)


def _of_session(events: Iterable[_Event], session: str) -> Iterator[tuple[str, str | None]]:
    """Yield kind and fault of a session's events; the start of another session is `next`."""
    for other, kind, met in events:
        if other == session:
            yield kind, met
        elif kind == "start":
            yield "next", met


def _planned_events(scenario: Scenario) -> Iterator[_Event]:
    fault: SwitchFaultOn | None = None
    for step in scenario.steps:
        if isinstance(step, SwitchFaultOn):
            fault = step
        elif isinstance(step, SwitchFaultsOff):
            fault = None
        elif isinstance(step, ConnectorStep):
            yield step.session, "compact" if step.step in HALVES else step.step, _outage_met_by(fault, step)


def _outage_met_by(fault: SwitchFaultOn | None, step: Step) -> str | None:
    if fault is None or step.step not in _HOOKS:
        return None
    pattern = (fault.match or {}).get("path", "*")
    if not fnmatchcase(_HOOKS[step.step], pattern):
        return None
    return _word_of(fault.fault)


def _word_of(fault: Mapping[str, Any]) -> str:
    kind = str(fault["kind"])
    return str(fault["status"]) if kind == "status" else SLOWED if kind in SLOW else kind


def fault_of(word: str) -> Mapping[str, Any] | None:
    """Return the fault that a word of an outage's steps begins; None for a step."""
    kind, _, step = word.partition(":")
    if kind == REFUSED:
        return {"fault": {"kind": "refuse"}}
    if kind == SLOWED:
        return {"fault": {"kind": "delay", "delay_s": "beyond"}, "match": {"path": _HOOKS[step]}}
    return {"fault": {"kind": "status", "status": int(kind)}, "match": {"path": _HOOKS[step]}} if step else None
