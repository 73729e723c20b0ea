"""Scenarios as data: a name, a title and steps. Files of scenarios are read here; scripted.json holds the kit's own.

The module steps describes the steps. A scenario's `env` is given to the connector when it is launched.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema

from signet_conformance.errors import UsageError, printable
from signet_conformance.files import read_json
from signet_conformance.files.documents import Document, Items, Lenient, Maybe, demand, refusal, shown_value
from signet_conformance.scenarios.steps import (
    AnyStep,
    CloseStep,
    CompactionCompleteStep,
    CompactStep,
    ConnectorStep,
    EndStep,
    PreCompactionStep,
    RestartDaemon,
    ResumeStep,
    SessionlessPromptStep,
    StartStep,
    Step,
    SwitchFaultOn,
    ToolStep,
)

LONGEST_NAME = 100


def _name(name: str) -> str:
    if not name.replace("-", "").isalnum() or len(name) > LONGEST_NAME:
        raise refusal(f"is {shown_value(name)}, expected a name", f"use up to {LONGEST_NAME} letters, digits and -")
    return name


Name = Annotated[
    str,
    AfterValidator(_name),
    WithJsonSchema({"type": "string", "pattern": r"^[^\s./\\]+$", "maxLength": LONGEST_NAME}),
    Field(description=f"up to {LONGEST_NAME} letters, digits and -"),
]


class ScenarioDocument(Document, Lenient):
    """A scenario in a file. Other members, such as the seed of a generated session, are ignored."""

    model_config = ConfigDict(title="Scenario", extra="ignore")
    schema_file: ClassVar[str] = "scenario/signet-scenario.schema.json"

    name: Name
    title: Maybe[str] = None
    """a text: what the scenario shows"""
    env: dict[str, str] = Field(default_factory=dict)
    """an object such as {"SIGNET_BYPASS": "1"}: variables that are added to the connector's environment"""
    bypass: Maybe[str] = None
    """a text such as SIGNET_NO_HOOKS: the variable in env by which the user switches hooks off"""
    needs: Items[str] = ()
    """a list such as ["secrets-exec"]: operations that a connector must declare, or it does not perform the scenario"""
    own_tools: Items[str] = ()
    """a list such as ["memory"]: tools of the harness itself that the model calls; a harness without them does not
    perform the scenario
    """
    steps: Annotated[Items[AnyStep], Field(min_length=1)]
    """a list of steps such as [{"step": "start", "session": "s1"}]"""


class ScenarioList(Document):
    """Several scenarios in one file."""

    model_config = ConfigDict(title="Scenarios", extra="ignore")
    schema_file: ClassVar[str] = "scenario/signet-scenarios.schema.json"

    scenarios: Items[ScenarioDocument]


BYPASS = "SIGNET_BYPASS"
"""The variable with which every connector's hooks are switched off, by the value 1."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """An ordered list of steps. `needs` names the operations a connector must declare for it to make sense.

    `own_tools` are the tools of the harness itself that the model calls, without which it makes no sense either.
    `bypass` is the variable of `env` with which the user switches hooks off, None where hooks are on.
    """

    name: str
    title: str
    steps: tuple[Step, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    own_tools: tuple[str, ...] = ()
    bypass: str | None = None

    def __repr__(self) -> str:
        """Name and steps, each cut: a prompt may have 150 kB."""
        return f"Scenario({self.name!r}, [{', '.join(printable(step.to_json(), 300) for step in self.steps)}])"

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """Print as `repr` does: Hypothesis' printer would show every field in full."""
        printer.text(repr(self))

    @staticmethod
    def from_json(data: Mapping[str, Any], where: str) -> Scenario:
        """Read one scenario. Raises UsageError that names the wrong place."""
        return _scenario(demand(ScenarioDocument, data, where))

    def to_json(self) -> dict[str, Any]:
        """Return the object that :meth:`from_json` reads."""
        return {
            "name": self.name,
            "title": self.title,
            **({"env": dict(self.env)} if self.env else {}),
            **({"bypass": self.bypass} if self.bypass not in (None, BYPASS) else {}),
            **({"needs": list(self.needs)} if self.needs else {}),
            **({"own_tools": list(self.own_tools)} if self.own_tools else {}),
            "steps": [step.to_json() for step in self.steps],
        }


def _scenario(document: ScenarioDocument) -> Scenario:
    return Scenario(
        name=document.name,
        title=document.name if document.title is None else document.title,
        steps=document.steps,
        env=document.env,
        needs=document.needs,
        own_tools=document.own_tools,
        bypass=document.bypass or (BYPASS if document.env.get(BYPASS) == "1" else None),
    )


def identity(scenario: Scenario) -> str:
    """Return a digest of the steps: equal for scenarios that do the same under other names."""
    return hashlib.sha256(json.dumps([step.to_json() for step in scenario.steps], sort_keys=True).encode()).hexdigest()


def read_scenarios(path: Path) -> Sequence[Scenario]:
    """Read a JSON file that holds one scenario, or `{"scenarios": [...]}`. Raises UsageError."""
    data = read_json(path, "check the path, or correct the file")
    if isinstance(data, dict) and "scenarios" in data:
        return tuple(map(_scenario, demand(ScenarioList, data, printable(path)).scenarios))
    return (_scenario(demand(ScenarioDocument, data, printable(path))),)


def demand_open_sessions(scenario: Scenario, where: str) -> None:
    """Raise UsageError for a step in a session that is not open: no harness could perform it."""
    opened: set[str] = set()
    for index, step in enumerate(scenario.steps):
        if not isinstance(step, ConnectorStep) or isinstance(step, SessionlessPromptStep):
            continue
        if isinstance(step, StartStep | ResumeStep):
            opened.add(step.session)
        elif step.session not in opened:
            name = printable(step.session, 60)
            raise UsageError(
                f"scenario {scenario.name}, step {index}: {step.step} in session {name}, which is not open",
                where=where,
                remedy=f'put {{"step": "start", "session": "{name}"}} before it',
            )
        elif isinstance(step, EndStep | CloseStep):
            opened.discard(step.session)


@cache
def scripted() -> Sequence[Scenario]:
    """Return the scripted scenarios in the order in which they run."""
    return read_scenarios(Path(__file__).with_name("scripted.json"))


def with_each_bypass(scenarios: Sequence[Scenario], variables: Mapping[str, str]) -> Sequence[Scenario]:
    """Repeat the scenario of the bypass for each variable (name to the value that switches hooks off)."""
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
    """Return the scenario that is added if the model is recorded: its prompts ask for facts that the daemon stores."""
    return read_scenarios(Path(__file__).with_name("remembered.json"))


@cache
def installed() -> Sequence[Scenario]:
    """Return the scenario that is added if the connector has an installer: it is installed in each way users do it."""
    return read_scenarios(Path(__file__).with_name("installed.json"))


@cache
def real() -> Sequence[Scenario]:
    """Return the few scenarios that a real program performs by default: each of its processes takes seconds."""
    return read_scenarios(Path(__file__).with_name("real.json"))


def _any(_scenario: Scenario) -> bool:
    return True


def _has_step(*kinds: type[Step]) -> Callable[[Scenario], bool]:
    return lambda scenario: any(isinstance(step, kinds) for step in scenario.steps)


def _has_bypass(scenario: Scenario) -> bool:
    return scenario.bypass is not None


def _compacts(scenario: Scenario) -> bool:
    # Under the bypass no compaction is reported.
    return not _has_bypass(scenario) and _has_step(CompactStep, PreCompactionStep, CompactionCompleteStep)(scenario)


_calls_tools = _has_step(ToolStep)
_is_disturbed = _has_step(SwitchFaultOn, RestartDaemon)

_DECIDED_WHERE: Mapping[str, Callable[[Scenario], bool]] = {
    # It forbids compactions that the user did not ask for, which may occur anywhere.
    "SIG-CMP-007": _any,
    "SIG-CMP-*": _compacts,
    # A handler may be slow by itself, in any scenario.
    "SIG-FAIL-002": _any,
    "SIG-FAIL-004": _has_bypass,
    "SIG-FAIL-*": _is_disturbed,
    "SIG-MEM-*": _calls_tools,
    "SIG-SEC-001": _calls_tools,
    "SIG-SEC-002": _calls_tools,
}
"""Requirement (an id or a glob; the first match counts) to the scenarios in which its subject may occur.

Only events that the steps of a scenario cause, and no connector causes by itself, narrow the choice. Every scenario may
decide a requirement that is not listed here.
"""


def deciding(scenarios: Sequence[Scenario], requirements: Iterable[str] | None) -> Sequence[Scenario]:
    """Choose the scenarios, in their order, that can decide one of some requirements; all for None.

    If none can decide one, choose all: a connector may do something unexpected.
    """
    if requirements is None:
        return scenarios
    wanted = [_decides(requirement) for requirement in requirements]
    chosen = [scenario for scenario in scenarios if any(decides(scenario) for decides in wanted)]
    if all(map(_has_bypass, chosen)):
        # Silence under the bypass proves something only if the connector speaks without it.
        speaking = [scenario for scenario in scenarios if not _has_bypass(scenario)]
        return [*speaking[:1], *chosen] if chosen else scenarios
    return chosen


def _decides(requirement: str) -> Callable[[Scenario], bool]:
    fitting = (decides for pattern, decides in _DECIDED_WHERE.items() if fnmatchcase(requirement, pattern))
    return next(fitting, _any)
