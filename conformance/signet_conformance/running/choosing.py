"""Which scenarios a run performs, about how long each takes, and which few show again what was seen before."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from signet_conformance.drivers.installing import has_installer
from signet_conformance.running.request import RunRequest
from signet_conformance.running.workers import StationWorkers
from signet_conformance.scenarios.scenario import (
    BYPASS,
    Scenario,
    deciding,
    installed,
    real,
    remembered,
    scripted,
    with_each_bypass,
)
from signet_conformance.scenarios.steps import SwitchFaultOn, SwitchFaultsOff
from signet_conformance.targets import Target
from signet_conformance.trace.fault_kinds import SLOW

_STEP_S = 0.05
_SOME_BOUND_S = 1.0
"""For a step without a declared bound."""
_HIDDEN_S = 5.0
"""The other scenarios of a run take about as long: shorter waits hide behind them."""


def scenarios_of(request: RunRequest, workers: StationWorkers) -> Sequence[Scenario]:
    """Return the scenarios of a run: those of its files, or the scripted ones that can decide what was asked for."""
    assert request.target is not None  # noqa: S101 - only a request for recordings has none
    return workers.usable(deciding(request.scenarios or _usual(request.target), request.only))


def _usual(target: Target) -> Sequence[Scenario]:
    every = with_each_bypass(scripted(), target.profile.bypass_env or {BYPASS: "1"})
    if target.real is None:
        return (*every, *installed()) if has_installer(target) else every
    return (*real(), *remembered(), *(every if target.every_scenario else ()))


def cost_s(scenario: Scenario, target: Target) -> float:
    """Return about how many seconds a scenario takes."""
    return _STEP_S * (len(scenario.steps) + 1) + waiting_s(scenario, target)


def waiting_s(scenario: Scenario, target: Target) -> float:
    """Return how many seconds a scenario waits for answers that a fault holds back: the bounds of its steps."""
    waits_s, slow = 0.0, False
    for step in scenario.steps:
        if isinstance(step, SwitchFaultOn):
            slow = step.fault["kind"] in SLOW
        elif isinstance(step, SwitchFaultsOff):
            slow = False
        elif slow:
            waits_s += target.declared.bounds_s.get(step.step, _SOME_BOUND_S)
    return waits_s


def waits_at_once(waits_s: Iterable[float]) -> int:
    """Return how many waits must run side by side: short ones follow each other while the other scenarios run."""
    return math.ceil(sum(min(wait_s, _HIDDEN_S) for wait_s in waits_s) / _HIDDEN_S)


def fewest_showing(
    shown: Mapping[str, Collection[str]], scenarios: Sequence[Scenario], cost: Callable[[Scenario], float]
) -> Sequence[Scenario]:
    """Choose few and cheap scenarios that show every requirement again.

    `shown` is requirement to the names of the scenarios that breached it; one that none of `scenarios` breached is
    left out.
    """
    names = {scenario.name for scenario in scenarios}
    missing = {requirement for requirement, where in shown.items() if not names.isdisjoint(where)}
    chosen: list[Scenario] = []
    while missing:
        worth = {
            each.name: sum(each.name in shown[requirement] for requirement in missing) / cost(each)
            for each in scenarios
        }
        chosen.append(max(scenarios, key=lambda each: worth[each.name]))
        missing = {requirement for requirement in missing if chosen[-1].name not in shown[requirement]}
    return chosen
