"""A scenario is data: a name, what it shows, and steps. The scripted ones stand in scripted.json beside this file.

What a step may hold stands in steps. A scenario's `env` is given to the connector when it is launched.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from signet_conformance.errors import printable
from signet_conformance.files.documents import demand
from signet_conformance.files.reading import read_json
from signet_conformance.scenarios.scenario_document import ScenarioDocument, ScenarioList
from signet_conformance.scenarios.steps import Step

BYPASS = "SIGNET_BYPASS"
"""The variable with which every connector's hooks are switched off, by the value 1."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """An ordered list of steps. `needs` names the operations a connector must declare for it to make sense.

    `bypass` is the variable of `env` with which the user switches hooks off, None where hooks are on.
    """

    name: str
    title: str
    steps: tuple[Step, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    bypass: str | None = None

    def __repr__(self) -> str:
        """Name and steps, each cut: a prompt may have 150 kB."""
        return f"Scenario({self.name!r}, [{', '.join(printable(step.to_json(), 300) for step in self.steps)}])"

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """The same for pretty printers, Hypothesis' own among them, which else show every field in full."""
        printer.text(repr(self))

    @staticmethod
    def from_json(data: Mapping[str, Any], where: str) -> Scenario:
        """Read one scenario; raise UsageError naming the wrong place."""
        return _scenario(demand(ScenarioDocument, data, where))

    def to_json(self) -> dict[str, Any]:
        """The scenario as :meth:`from_json` reads it."""
        return {
            "name": self.name,
            "title": self.title,
            **({"env": dict(self.env)} if self.env else {}),
            **({"bypass": self.bypass} if self.bypass not in (None, BYPASS) else {}),
            **({"needs": list(self.needs)} if self.needs else {}),
            "steps": [step.to_json() for step in self.steps],
        }


def _scenario(document: ScenarioDocument) -> Scenario:
    return Scenario(
        name=document.name,
        title=document.name if document.title is None else document.title,
        steps=document.steps,
        env=document.env,
        needs=document.needs,
        bypass=document.bypass or (BYPASS if document.env.get(BYPASS) == "1" else None),
    )


def identity(scenario: Scenario) -> str:
    """A digest of the steps."""
    return hashlib.sha256(json.dumps([step.to_json() for step in scenario.steps], sort_keys=True).encode()).hexdigest()


def read_scenarios(path: Path) -> Sequence[Scenario]:
    """The scenarios of a JSON file: one object, or `{"scenarios": [...]}`."""
    data = read_json(path, "check the path, or mend the file")
    if isinstance(data, dict) and "scenarios" in data:
        return tuple(map(_scenario, demand(ScenarioList, data, printable(path)).scenarios))
    return (_scenario(demand(ScenarioDocument, data, printable(path))),)


@cache
def scripted() -> Sequence[Scenario]:
    """The scripted scenarios, in the order they are run."""
    return read_scenarios(Path(__file__).with_name("scripted.json"))


def with_each_bypass(scenarios: Sequence[Scenario], variables: Mapping[str, str]) -> Sequence[Scenario]:
    """The scenarios, with that of the bypass once for each of the variables, which have the value that is given."""
    return [
        replace(
            scenario,
            name=scenario.name + ("" if name == BYPASS else f"-{name.lower().replace('_', '-')}"),
            title=scenario.title if name == BYPASS else f"{scenario.title}: {name}={value}",
            env={name: value},
            bypass=name,
        )
        if name is not None
        else scenario
        for scenario in scenarios
        for name, value in (variables.items() if scenario.bypass == BYPASS else [(None, "")])
    ]


@cache
def remembered() -> Sequence[Scenario]:
    """What is performed beside them where the model is recorded: the daemon then knows of what the user asks."""
    return read_scenarios(Path(__file__).with_name("remembered.json"))


@cache
def real() -> Sequence[Scenario]:
    """The few that a real program performs unless more is asked: its processes cost seconds each."""
    return read_scenarios(Path(__file__).with_name("real.json"))
