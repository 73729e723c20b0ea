"""A scenario is data: a name, what it shows, and steps. The scripted ones stand in scripted.json beside this file.

Steps for the connector have a `session` (a name local to the scenario): start, prompt, tool, compact,
resume, clear, end. Steps for the kit: fault (switch a fault of the recorder on), fault_off,
restart_daemon. A scenario's `env` is given to the connector when it is launched.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from signet_conformance.errors import UsageError, printable

CONNECTOR_STEPS = frozenset({"start", "prompt", "tool", "compact", "resume", "clear", "end"})
KIT_STEPS = frozenset({"fault", "fault_off", "restart_daemon"})


@dataclass(frozen=True, slots=True)
class Scenario:
    """An ordered list of steps. `needs` names the operations a connector must declare for it to make sense."""

    name: str
    title: str
    steps: tuple[Mapping[str, Any], ...]
    env: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: Mapping[str, Any], where: str) -> Scenario:
        """Read one scenario; raise UsageError naming the step that is off."""
        name = data.get("name")
        steps = data.get("steps")
        if not isinstance(name, str) or not name.replace("-", "").isalnum():
            raise UsageError(f"a scenario's name is {printable(name)!r}", where=where, remedy="use letters, digits and -")
        if not isinstance(steps, list) or not steps:
            raise UsageError(f"scenario {name} has no steps", where=where, remedy='add "steps": [...]')
        for index, step in enumerate(steps):
            kind = step.get("step") if isinstance(step, dict) else None
            if kind not in CONNECTOR_STEPS | KIT_STEPS:
                raise UsageError(
                    f"scenario {name}, step {index}: {printable(kind)!r} is no step",
                    where=where,
                    remedy=f"one of {', '.join(sorted(CONNECTOR_STEPS | KIT_STEPS))}",
                )
            if kind in CONNECTOR_STEPS and not isinstance(step.get("session"), str):
                raise UsageError(f"scenario {name}, step {index}: no session", where=where, remedy='add "session": "s1"')
        return cls(
            name=name,
            title=str(data.get("title", name)),
            steps=tuple(steps),
            env={str(k): str(v) for k, v in data.get("env", {}).items()},
            needs=tuple(data.get("needs", ())),
        )


def read_scenarios(path: Path) -> Sequence[Scenario]:
    """The scenarios of a JSON file: one object, or `{"scenarios": [...]}`."""
    try:
        data = json.loads(path.read_bytes())
    except OSError as failure:
        raise UsageError(f"cannot be read: {failure.strerror}", where=str(path), remedy="check the path") from None
    except (ValueError, RecursionError) as failure:
        raise UsageError(f"is not JSON: {failure}", where=str(path), remedy="mend the file") from None
    rows = data.get("scenarios", [data]) if isinstance(data, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError("holds no scenario", where=str(path), remedy='write {"name": …, "steps": […]}')
    return tuple(Scenario.from_json(row, str(path)) for row in rows)


@cache
def scripted() -> Sequence[Scenario]:
    """The scripted scenarios, in the order they are run."""
    return read_scenarios(Path(__file__).with_name("scripted.json"))
