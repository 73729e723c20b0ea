"""What a selftest performs: every mutant in its scenario, and the reference itself in every scenario there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from signet_conformance.errors import ContractError
from signet_conformance.rules import run_rules
from signet_conformance.scenarios.script import Scenario, scripted
from signet_conformance.selftest.mutants import DAEMON, Mutant, mutants

CONTRACT = "0.145"
"""The contract version at which the reference performs everything; at others only what mutants need."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One scenario to perform, by a mutant or, where `mutant` is None, by the reference."""

    name: str
    scenario: Scenario
    contract: str
    mutant: Mutant | None = None

    @property
    def needs_broken_daemon(self) -> bool:
        """Whether it meets a daemon that is broken."""
        return self.mutant is not None and self.mutant.side == DAEMON


@cache
def scenarios() -> Mapping[str, Scenario]:
    """The scripted scenarios and those that only mutants need, by name."""
    own = [Scenario.from_json(row, "schemas/mutants.json") for row in mutants().scenarios]
    return {scenario.name: scenario for scenario in (*scripted(), *own)}


def scenario_of(mutant: Mutant) -> Scenario:
    """The scenario that a mutant performs. Raises ContractError when there is none of that name."""
    scenario = scenarios().get(mutant.scenario)
    if scenario is None:
        raise ContractError(
            f"mutant {mutant.id} performs {mutant.scenario!r}, which is not a scenario",
            where="schemas/mutants.json",
            remedy="name a scripted scenario, or add it under scenarios",
        )
    return scenario


def trials(wanted: Sequence[Mutant]) -> Sequence[Trial]:
    """The trials of these mutants, those of the reference first."""
    return [*_controls(wanted), *(Trial(mutant.id, scenario_of(mutant), mutant.contract, mutant) for mutant in wanted)]


def _controls(wanted: Sequence[Mutant]) -> Iterator[Trial]:
    whole = len(wanted) == len(mutants().mutants)
    needed = {(mutant.contract, mutant.scenario) for mutant in wanted}
    if whole or any(mutant.breaks in run_rules() for mutant in wanted):
        needed |= {(CONTRACT, scenario.name) for scenario in scripted()}
    for contract, name in sorted(needed):
        yield Trial(f"reference-{contract.replace('.', '-')}-{name}", scenarios()[name], contract)
