"""Reduces a scenario for which a condition holds: fewer steps, then shorter prompts.

Hypothesis removes whole intents, and leaves the steps that an intent needs. Here a session, a fault, a resumed part or
a single step is removed if the condition still holds for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from signet_conformance.outcome.generated_summary import LONG
from signet_conformance.scenarios import steps
from signet_conformance.scenarios.scenario import Scenario

_ALONE = (steps.PromptStep, steps.ToolStep, steps.CompactStep, steps.ClearStep, steps.RestartDaemon)


def remove_steps(scenario: Scenario, shows: Callable[[Scenario], bool]) -> Scenario:
    """Remove parts as long as `shows` stays true; no part of the result can be removed alone.

    `shows` must be true of `scenario`, and deterministic. Sessions still start before they are used and end at the
    close; a fault is removed together with its end.
    """
    while (smaller := next(filter(shows, _smaller(scenario)), None)) is not None:
        scenario = smaller
    return scenario


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    # The largest parts first.
    seen: set[frozenset[int]] = set()
    for part in _parts(scenario.steps):
        left = [step for place, step in enumerate(scenario.steps) if place not in part]
        has_start = any(isinstance(step, steps.StartStep) for step in left)
        if part not in seen and has_start and not _calls_tools_unprompted(left):
            seen.add(part)
            yield replace(scenario, steps=tuple(_without_idle_faults(left)))


def _parts(planned: Sequence[steps.Step]) -> Iterator[frozenset[int]]:
    """Yield the places of steps that can be removed together and leave a scenario that a harness can perform."""
    starts = [step for step in planned if isinstance(step, steps.StartStep)]
    by_session = {start.session: _places(planned, start.session) for start in starts}
    for session, places in by_session.items():
        children = [child.session for child in starts if child.parent == session]
        yield frozenset(places).union(*(by_session[child] for child in children))
    for on, step in enumerate(planned):
        if isinstance(step, steps.SwitchFaultOn):
            off = next((n for n in range(on, len(planned)) if isinstance(planned[n], steps.SwitchFaultsOff)), on)
            yield frozenset({on, off})
    for places in by_session.values():
        for before, place in pairwise(places):
            match planned[before], planned[place]:
                case steps.EndStep(), steps.ResumeStep():
                    yield frozenset(other for other in places if other >= place)
                    yield frozenset({before, place})
                case steps.PreCompactionStep(), steps.CompactionCompleteStep():
                    yield frozenset({before, place})
    referred = {name for step in planned if isinstance(step, steps.ToolStep) for name in _names(step.arguments)}
    for place, step in enumerate(planned):
        if isinstance(step, _ALONE) and step.as_ not in referred:
            yield frozenset({place})


def _calls_tools_unprompted(planned: Sequence[steps.Step]) -> bool:
    """Return True if a session calls a tool before its first prompt since it was opened: no model does."""
    prompted: set[str] = set()
    for step in planned:
        if isinstance(step, steps.PromptStep):
            prompted.add(step.session)
        elif isinstance(step, steps.StartStep | steps.ResumeStep | steps.ClearStep):
            prompted.discard(step.session)
        elif isinstance(step, steps.ToolStep) and step.session not in prompted:
            return True
    return False


def _places(planned: Sequence[steps.Step], session: str) -> Sequence[int]:
    return [
        place for place, step in enumerate(planned) if isinstance(step, steps.ConnectorStep) and step.session == session
    ]


def _names(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("from"), str):
            yield value["from"]
        for member in value.values():
            yield from _names(member)
    elif isinstance(value, list):
        for member in value:
            yield from _names(member)


def _without_idle_faults(planned: Sequence[steps.Step]) -> Iterator[steps.Step]:
    kept: list[steps.Step] = []
    for step in planned:
        if isinstance(step, steps.SwitchFaultsOff) and kept and isinstance(kept[-1], steps.SwitchFaultOn):
            kept.pop()
        else:
            kept.append(step)
    yield from kept


def longest_prompt(scenario: Scenario) -> int:
    """Return the length of the longest prompt in characters; 0 without a prompt."""
    return max((len(step.whole_text) for step in scenario.steps if isinstance(step, steps.PromptStep)), default=0)


def shorten_prompts(scenario: Scenario, shows: Callable[[Scenario], bool]) -> Scenario:
    """Cut each long prompt to the fewest characters with which `shows` stays true, found by halving.

    `shows` must be true of `scenario`, and of every longer text where it is true of a shorter one.
    """
    for place, step in enumerate(scenario.steps):
        if not isinstance(step, steps.PromptStep) or len(step.whole_text) <= LONG:
            continue
        too_short, enough = 0, len(step.whole_text)
        while enough - too_short > 1:
            middle = (too_short + enough) // 2
            shorter = _with_text(scenario, place, step.whole_text[:middle])
            if shorter is not None and shows(shorter):
                enough = middle
                scenario = shorter
            else:
                too_short = middle
    return scenario


def _with_text(scenario: Scenario, place: int, text: str) -> Scenario | None:
    """Return the scenario with another text of one prompt; None if it is blank, or repeats another of the session."""
    step = scenario.steps[place]
    others = [other for other in scenario.steps if isinstance(other, steps.PromptStep) and other is not step]
    if not isinstance(step, steps.PromptStep) or not text.strip():
        return None
    if any(other.session == step.session and other.text.strip() == text.strip() for other in others):
        return None
    members = {name: value for name, value in step.to_json().items() if name != "repeat"}
    shorter = steps.PromptStep.model_validate({**members, "text": text})
    return replace(scenario, steps=(*scenario.steps[:place], shorter, *scenario.steps[place + 1 :]))
