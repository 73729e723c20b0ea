"""A scenario is data: a name, what it shows, and steps. The scripted ones stand in scripted.json beside this file.

Steps for the connector have a `session` (a name local to the scenario): start (agent: a number among the
target's agents or an id, project), prompt (text, reply), tool (tool, arguments), compact (summary) or its
halves pre_compaction and compaction_complete (summary), resume, clear, end. In arguments {"agent": number}
stands for one of the target's agents, {"key": session} for the native key of a session, {"from": name,
"pointer": …} for a part of an earlier result. Steps for the kit: fault (switch a fault of the recorder on;
match and count as the recorder takes them), fault_off, restart_daemon. A scenario's `env` is given to the
connector when it is launched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from signet_conformance.errors import UsageError, printable
from signet_conformance.files.json_file import read_json

CONNECTOR_STEPS = frozenset(
    {"start", "prompt", "tool", "compact", "pre_compaction", "compaction_complete", "resume", "clear", "end"}
)
KIT_STEPS = frozenset({"fault", "fault_off", "restart_daemon"})
LONGEST_NAME = 100

_MEMBERS: Mapping[str, tuple[type, ...]] = {
    "text": (str,),
    "reply": (str,),
    "summary": (str,),
    "project": (str,),
    "agent": (int, str),
    "tool": (str,),
    "arguments": (dict,),
    "fault": (dict,),
    "match": (dict,),
    "count": (int,),
    "as": (str,),
}
"""The JSON types of a step's members; a member that is not named here goes to the connector as it is."""
_REQUIRED: Mapping[str, str] = {"prompt": "text", "tool": "tool", "fault": "fault"}


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

    @classmethod
    def from_json(cls, data: Mapping[str, Any], where: str) -> Scenario:
        """Read one scenario; raise UsageError naming the step that is off."""
        name = data.get("name")
        steps = data.get("steps")
        if not isinstance(name, str) or not name.replace("-", "").isalnum() or len(name) > LONGEST_NAME:
            raise UsageError(
                f"a scenario's name is {printable(name)!r}", where=where, remedy="use up to 100 letters, digits and -"
            )
        if not isinstance(steps, list) or not steps:
            raise UsageError(f"scenario {name} has no steps", where=where, remedy='add "steps": [...]')
        for index, step in enumerate(steps):
            _check(step, f"scenario {name}, step {index}", where)
        env, needs = data.get("env", {}), data.get("needs", [])
        if not isinstance(env, dict) or not isinstance(needs, list):
            raise UsageError(
                f"scenario {name}: env is no object, or needs is no list",
                where=where,
                remedy='such as "env": {"SIGNET_BYPASS": "1"}, "needs": ["secrets-exec"]; both may lack',
            )
        return cls(
            name=name,
            title=str(data.get("title", name)),
            steps=tuple(steps),
            env={str(k): str(v) for k, v in env.items()},
            needs=tuple(map(str, needs)),
        )

    def to_json(self) -> dict[str, Any]:
        """The scenario as :meth:`from_json` reads it."""
        return {
            "name": self.name,
            "title": self.title,
            **({"env": dict(self.env)} if self.env else {}),
            **({"needs": list(self.needs)} if self.needs else {}),
            "steps": [dict(step) for step in self.steps],
        }


def _check(step: object, which: str, where: str) -> None:
    kind = step.get("step") if isinstance(step, dict) else None
    if not isinstance(step, dict) or not isinstance(kind, str) or kind not in CONNECTOR_STEPS | KIT_STEPS:
        raise UsageError(
            f"{which}: {printable(kind)!r} is no step",
            where=where,
            remedy=f"one of {', '.join(sorted(CONNECTOR_STEPS | KIT_STEPS))}",
        )
    if kind in CONNECTOR_STEPS and not isinstance(step.get("session"), str):
        raise UsageError(f"{which}: no session", where=where, remedy='add "session": "s1"')
    needed = _REQUIRED.get(kind)
    if needed is not None and needed not in step:
        raise UsageError(f"{which}: a {kind} without {needed}", where=where, remedy=f'add "{needed}"')
    for member, types in _MEMBERS.items():
        if member in step and (not isinstance(step[member], types) or isinstance(step[member], bool)):
            raise UsageError(
                f"{which}: {member} is {printable(repr(step[member]), 60)}",
                where=where,
                remedy=f"write it as {' or '.join(_JSON_TYPES[t] for t in types)}",
            )


_JSON_TYPES: Mapping[type, str] = {str: "a string", int: "a whole number", dict: "an object"}


def read_scenarios(path: Path) -> Sequence[Scenario]:
    """The scenarios of a JSON file: one object, or `{"scenarios": [...]}`."""
    data = read_json(path, "check the path, or mend the file")
    rows = data.get("scenarios", [data]) if isinstance(data, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError("holds no scenario", where=printable(path), remedy='write {"name": …, "steps": […]}')
    return tuple(Scenario.from_json(row, printable(path)) for row in rows)


@cache
def scripted() -> Sequence[Scenario]:
    """The scripted scenarios, in the order they are run."""
    return read_scenarios(Path(__file__).with_name("scripted.json"))
