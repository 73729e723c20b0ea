"""What a selftest performs: mutants and variants in their scenarios, and the reference itself in every one there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from signet_conformance import targets
from signet_conformance.errors import ContractError
from signet_conformance.rules import run_rules
from signet_conformance.scenarios.scenario import Scenario, scripted, with_each_bypass
from signet_conformance.scenarios.steps import CompactStep
from signet_conformance.selftest.mutants import CONNECTOR, DAEMON, HARNESS, Base, Mutant, mutants
from signet_conformance.selftest.variants import FILE, Variant, grouped, variants

CONTRACT = "0.145"
"""The contract version at which the reference performs everything; at others only what mutants need."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One scenario to perform: by a mutant, by what a few variants make of the reference, or by the reference.

    `base` is the conforming connector that stands in the reference's place, None for the reference itself.
    """

    name: str
    scenario: Scenario
    contract: str
    mutant: Mutant | None = None
    variants: tuple[Variant, ...] = ()
    side: str = CONNECTOR
    base: Base | None = None

    @property
    def needs_broken_daemon(self) -> bool:
        """Whether it meets a daemon that is broken, or odd."""
        broken = self.mutant is not None and self.mutant.side == DAEMON
        return broken or any(variant.side == DAEMON for variant in self.variants)

    @property
    def needs_model(self) -> bool:
        """Whether what reaches the model is recorded, too."""
        return self.side == HARNESS

    @property
    def is_control(self) -> bool:
        """Whether the reference, or a base, performs it as it is."""
        return self.mutant is None and not self.variants


@cache
def reference_scenarios() -> Sequence[Scenario]:
    """The scripted scenarios as a run of the reference performs them."""
    return with_each_bypass(scripted(), targets.load("reference").profile.bypass_env)


@cache
def scenarios() -> Mapping[str, Scenario]:
    """The scripted scenarios and those that only mutants or variants need, by name."""
    own = [Scenario.from_json(row, "schemas/mutants.json") for row in mutants().scenarios]
    odd = [Scenario.from_json(row, FILE) for row in variants().scenarios]
    return {scenario.name: scenario for scenario in (*reference_scenarios(), *own, *odd)}


def told_apart(scenario: Scenario, name: str) -> Scenario:
    """The scenario with summaries of its own: a daemon keeps each, and tells later sessions of it."""
    steps = (
        step.model_copy(update={"summary": f"{step.summary} So it was in {name}."})
        if isinstance(step, CompactStep)
        else step
        for step in scenario.steps
    )
    return replace(scenario, steps=tuple(steps))


def scenario_of(change: Mutant | Variant) -> Scenario:
    """The scenario that a mutant or variant performs. Raises ContractError for an unknown scenario."""
    scenario = scenarios().get(change.scenario)
    if scenario is None:
        kind, file = ("mutant", "schemas/mutants.json") if isinstance(change, Mutant) else ("variant", FILE)
        raise ContractError(
            f"{kind} {change.id} performs {change.scenario!r}, which is not a scenario",
            where=file,
            remedy="name a scripted scenario, or add it under scenarios",
        )
    return scenario


def trials(wanted: Sequence[Mutant], odd: Sequence[Variant] = ()) -> Sequence[Trial]:
    """The trials of these mutants and variants, those of the reference first."""
    return [
        *_controls(wanted),
        *(Trial(mutant.id, scenario_of(mutant), mutant.contract, mutant, side=mutant.side) for mutant in wanted),
        *(of_variants(group) for group in grouped(odd)),
        *(trial for base in mutants().bases.values() for trial in _of_base(base, wanted)),
    ]


def _of_base(base: Base, wanted: Sequence[Mutant]) -> Iterator[Trial]:
    """The trials of mutants that make sense in a base, after those of the base itself."""
    tried = [mutant for mutant in wanted if base.is_tried_with(mutant)]
    needed = {(mutant.contract, mutant.scenario) for mutant in tried}
    if len(wanted) == len(mutants().mutants) or any(mutant.breaks in run_rules() for mutant in tried):
        needed |= {(CONTRACT, scenario.name) for scenario in reference_scenarios()}
    for contract, name in sorted(needed):
        yield Trial(f"{base.id}-{contract.replace('.', '-')}-{name}", scenarios()[name], contract, base=base)
    for mutant in tried:
        yield Trial(f"{base.id}-{mutant.id}", scenario_of(mutant), mutant.contract, mutant, base=base)


def of_variants(group: tuple[Variant, ...]) -> Trial:
    """The trial of variants that change one connector, or one daemon, together."""
    first = group[0]
    together = f"{first.group}-{first.scenario}-{first.contract}-{first.side}".replace(".", "-")
    name = first.id if len(group) == 1 else together
    return Trial(f"variant-{name}", scenario_of(first), first.contract, variants=group, side=first.side)


def _controls(wanted: Sequence[Mutant]) -> Iterator[Trial]:
    whole = len(wanted) == len(mutants().mutants)
    needed = {(mutant.contract, mutant.scenario, mutant.side == HARNESS) for mutant in wanted}
    if whole or any(mutant.breaks in run_rules() for mutant in wanted):
        needed |= {(CONTRACT, scenario.name, False) for scenario in reference_scenarios()}
    for contract, name, with_model in sorted(needed):
        trial = f"reference-{contract.replace('.', '-')}-{name}{'-model' if with_model else ''}"
        yield Trial(trial, scenarios()[name], contract, side=HARNESS if with_model else CONNECTOR)
