"""Takes out of a scenario, step by step, what it can do without and still show something.

Hypothesis makes a scenario smaller as it was drawn, by whole intents; what an intent brought along stays. Here nothing
is known of intents: a session, a fault, a resumed part or a single step goes if the rest still shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from signet_conformance.scenarios.script import Scenario
from signet_conformance.scenarios.steps import (
    Clear,
    Compact,
    CompactionComplete,
    ConnectorStep,
    End,
    PreCompaction,
    Prompt,
    RestartDaemon,
    Resume,
    Start,
    Step,
    SwitchFaultOn,
    SwitchFaultsOff,
    ToolCall,
)

_ALONE = (Prompt, ToolCall, Compact, Clear, RestartDaemon)


def reduced(scenario: Scenario, shows: Callable[[Scenario], bool]) -> Scenario:
    """The scenario without all that `shows` does not need: no part of what is left can be taken away alone.

    `shows` is true of the scenario as it is given, and gives the same answer whenever it is asked the same. Sessions
    are started before they are used and ended at the close, as before; a fault goes together with its end.
    """
    while (smaller := next(filter(shows, _smaller(scenario)), None)) is not None:
        scenario = smaller
    return scenario


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """The scenario without each of its parts, the largest first."""
    seen: set[frozenset[int]] = set()
    for part in _parts(scenario.steps):
        left = [step for place, step in enumerate(scenario.steps) if place not in part]
        if part not in seen and any(isinstance(step, Start) for step in left) and not _calls_tools_unasked(left):
            seen.add(part)
            yield replace(scenario, steps=tuple(_without_idle_faults(left)))


def _parts(steps: Sequence[Step]) -> Iterator[frozenset[int]]:
    """The places of what can be taken away together: the rest is a scenario that a harness can perform."""
    starts = [step for step in steps if isinstance(step, Start)]
    by_session = {start.session: _places(steps, start.session) for start in starts}
    for session, places in by_session.items():
        children = [child.session for child in starts if child.parent == session]
        yield frozenset(places).union(*(by_session[child] for child in children))
    for on, step in enumerate(steps):
        if isinstance(step, SwitchFaultOn):
            off = next((n for n in range(on, len(steps)) if isinstance(steps[n], SwitchFaultsOff)), on)
            yield frozenset({on, off})
    for places in by_session.values():
        for before, place in pairwise(places):
            if isinstance(steps[place], Resume) and isinstance(steps[before], End):
                yield frozenset(other for other in places if other >= place)
                yield frozenset({before, place})
            elif isinstance(steps[place], CompactionComplete) and isinstance(steps[before], PreCompaction):
                yield frozenset({before, place})
    referred = {name for step in steps if isinstance(step, ToolCall) for name in _names(step.arguments)}
    for place, step in enumerate(steps):
        if isinstance(step, _ALONE) and step.as_ not in referred:
            yield frozenset({place})


def _calls_tools_unasked(steps: Sequence[Step]) -> bool:
    """Whether a tool is called in a session in which the user has said nothing since it was opened: no model does."""
    asked: set[str] = set()
    for step in steps:
        if isinstance(step, Prompt):
            asked.add(step.session)
        elif isinstance(step, Start | Resume | Clear):
            asked.discard(step.session)
        elif isinstance(step, ToolCall) and step.session not in asked:
            return True
    return False


def _places(steps: Sequence[Step], session: str) -> Sequence[int]:
    return [place for place, step in enumerate(steps) if isinstance(step, ConnectorStep) and step.session == session]


def _names(value: object) -> Iterator[str]:
    """The names of earlier results that arguments refer to."""
    if isinstance(value, dict):
        if isinstance(value.get("from"), str):
            yield value["from"]
        for member in value.values():
            yield from _names(member)
    elif isinstance(value, list):
        for member in value:
            yield from _names(member)


def _without_idle_faults(steps: Sequence[Step]) -> Iterator[Step]:
    """The steps without faults that are switched off again before anything happens."""
    kept: list[Step] = []
    for step in steps:
        if isinstance(step, SwitchFaultsOff) and kept and isinstance(kept[-1], SwitchFaultOn):
            kept.pop()
        else:
            kept.append(step)
    yield from kept
