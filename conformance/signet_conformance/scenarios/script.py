"""A scenario is data: a name, what it shows, and steps. The scripted ones stand in scripted.json beside this file.

What a step may hold stands in scenario_document. A scenario's `env` is given to the connector when it is launched.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from signet_conformance.errors import printable
from signet_conformance.files.json_file import read_json

CONNECTOR_STEPS = frozenset(
    {"start", "prompt", "tool", "compact", "pre_compaction", "compaction_complete", "resume", "clear", "end"}
)
KIT_STEPS = frozenset({"fault", "fault_off", "restart_daemon"})


@dataclass(frozen=True, slots=True)
class Scenario:
    """An ordered list of steps. `needs` names the operations a connector must declare for it to make sense."""

    name: str
    title: str
    steps: tuple[Mapping[str, Any], ...]
    env: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Name and steps, each cut: a prompt may have 100 kB."""
        return f"Scenario({self.name!r}, [{', '.join(printable(dict(step), 300) for step in self.steps)}])"

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """The same for pretty printers, Hypothesis' own among them, which else show every field in full."""
        printer.text(repr(self))

    @staticmethod
    def from_json(data: Mapping[str, Any], where: str) -> Scenario:
        """Read one scenario; raise UsageError naming the place that is off."""
        from signet_conformance.files.documents import demand
        from signet_conformance.scenarios.scenario_document import ScenarioDocument

        demand(ScenarioDocument, data, where)
        return _scenario(data)

    def to_json(self) -> dict[str, Any]:
        """The scenario as :meth:`from_json` reads it."""
        return {
            "name": self.name,
            "title": self.title,
            **({"env": dict(self.env)} if self.env else {}),
            **({"needs": list(self.needs)} if self.needs else {}),
            "steps": [dict(step) for step in self.steps],
        }


def _scenario(data: Mapping[str, Any]) -> Scenario:
    """The scenario that an object holds which is known to be sound."""
    return Scenario(
        name=data["name"],
        title=data.get("title", data["name"]),
        steps=tuple(data["steps"]),
        env=data.get("env", {}),
        needs=tuple(data.get("needs", ())),
    )


def read_scenarios(path: Path) -> Sequence[Scenario]:
    """The scenarios of a JSON file: one object, or `{"scenarios": [...]}`."""
    from signet_conformance.files.documents import demand
    from signet_conformance.scenarios.scenario_document import ScenarioDocument, ScenarioList

    data = read_json(path, "check the path, or mend the file")
    several = isinstance(data, dict) and "scenarios" in data
    demand(ScenarioList if several else ScenarioDocument, data, printable(path))
    return tuple(map(_scenario, data["scenarios"] if several else [data]))


@cache
def scripted() -> Sequence[Scenario]:
    """The scripted scenarios, in the order they are run."""
    # They come with the kit, and its tests hold them against the model: no run pays for that.
    rows = json.loads(Path(__file__).with_name("scripted.json").read_bytes())["scenarios"]
    return tuple(map(_scenario, rows))
