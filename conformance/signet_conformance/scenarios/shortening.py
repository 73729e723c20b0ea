"""Shortens what users say in a scenario, down to what still shows something."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from signet_conformance.outcome.generated_summary import LONG
from signet_conformance.scenarios.script import Scenario
from signet_conformance.scenarios.steps import Prompt


def longest_prompt(scenario: Scenario) -> int:
    """How many characters the longest prompt of a scenario has; 0 without a prompt."""
    return max((len(step.whole_text) for step in scenario.steps if isinstance(step, Prompt)), default=0)


def with_short_prompts(scenario: Scenario, shows: Callable[[Scenario], bool]) -> Scenario:
    """The scenario with each long prompt cut to the fewest characters with which `shows` is still true of it.

    `shows` is true of the scenario as it is given. It is taken to be true of more characters wherever it is of fewer.
    """
    for place, step in enumerate(scenario.steps):
        if not isinstance(step, Prompt) or len(step.whole_text) <= LONG:
            continue
        too_short, enough = 0, len(step.whole_text)
        while enough - too_short > 1:
            middle = (too_short + enough) // 2
            shorter = _cut(scenario, place, step.whole_text[:middle])
            if shorter is not None and shows(shorter):
                enough = middle
                scenario = shorter
            else:
                too_short = middle
    return scenario


def _cut(scenario: Scenario, place: int, text: str) -> Scenario | None:
    """The scenario with another text of one prompt; None where it would be blank, or said twice in the session."""
    step = scenario.steps[place]
    others = [other for other in scenario.steps if isinstance(other, Prompt) and other is not step]
    if not isinstance(step, Prompt) or not text.strip():
        return None
    if any(other.session == step.session and other.text.strip() == text.strip() for other in others):
        return None
    said = {name: value for name, value in step.to_json().items() if name != "repeat"}
    shorter = Prompt.model_validate({**said, "text": text})
    return replace(scenario, steps=(*scenario.steps[:place], shorter, *scenario.steps[place + 1 :]))
