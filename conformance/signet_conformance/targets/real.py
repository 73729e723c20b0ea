"""A target in the real lane: which program of which release its connector is put into, and what is launched for it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from signet_conformance.errors import TargetError, UsageError, printable
from signet_conformance.files.json_values import merge
from signet_conformance.targets.face import find_face
from signet_conformance.targets.files import find_file, find_runtime, first_of, package_folder
from signet_conformance.targets.kinds import host_file, installed_programs, python_host
from signet_conformance.targets.program import Installation, fill, find_program_profile, install

if TYPE_CHECKING:
    from signet_conformance.targets import Target
    from signet_conformance.targets.program_document import Variation

FAKE, REAL = "fake", "real"


@dataclass(frozen=True, slots=True)
class HarnessChoice:
    """Which harness a run was asked to have: `fake`, which None means, or `real`, in the `release` of its program."""

    harness: str | None = None
    release: str | None = None
    install: bool = False
    """Whether the program is installed first, unless it is."""
    every: bool = False
    """Whether every scripted scenario is performed, and not the few that are made for real programs."""


def with_harness(target: Target, choice: HarnessChoice, option: str) -> Target:
    """The target as it is driven in the chosen harness.

    Raises UsageError for a choice that makes no sense, TargetError where the kit knows no program of the target's
    harness, and NothingTestedError where it is not installed.
    """
    if choice.harness in (None, FAKE):
        if choice.release is not None or choice.install or choice.every:
            raise UsageError(
                "a release and its scenarios are chosen of a real program only",
                where=option,
                remedy=f"add {option} {REAL}",
            )
        return target
    if choice.harness != REAL:
        raise UsageError(
            f"is {printable(choice.harness, 40)!r}", where=option, remedy=f"{FAKE} (the default) or {REAL}"
        )
    program = find_program_profile(program_of(target, option), choice.release)
    installation = install(program) if choice.install else program.find_installation(target.name)
    profile = target.profile.model_copy(update={"sessions": 0})
    return dataclasses.replace(target, real=installation, processes="one", profile=profile, every_scenario=choice.every)


def harness_words(target: Target) -> Sequence[str]:
    """The words of a command that drives a target in the same harness."""
    return () if target.real is None else ("--harness", REAL, "--harness-version", target.real.release)


def program_of(target: Target, option: str) -> str:
    """The program that the target's connector is made for."""
    if not target.kind.has_face:
        raise TargetError(
            f"{printable(target.name, 60)} is made for no program of the kit's: its driver is {target.driver}",
            where=option,
            remedy=f"leave {option} out",
        )
    return find_face(target).data.harness


def real_command_line(target: Target, installation: Installation) -> tuple[str, ...]:
    """The program that speaks signet-driver/1 for a target in the real program."""
    profile = installation.program.profile
    module = find_file(target)
    known = {**installation.placeholders(), "connector": str(package_folder(module))}
    installer = first_of(target, profile.connector.installer)
    if installer is None and target.driver == "command-hooks":
        installer = module
    if installer is None and profile.connector.place is None:
        raise TargetError(
            f"the connector's installer for {profile.title} was not found",
            where=target.where,
            remedy=target.profile.build or "build the connector with its installer",
        )
    given = {
        "program": profile.name,
        "release": installation.release,
        "speaks": profile.speaks,
        "command": fill(profile.command, known),
        "settings": fill(for_each_agent(_settings(installation), target.declared.agents), known),
        "env": fill(profile.env, known),
        "installer": None if installer is None else str(installer),
        "installer_told_daemon": profile.connector.told_daemon,
        "installer_options": profile.connector.options,
        "installer_names_agent": profile.connector.names_agent,
        "then": fill(profile.connector.then, known),
        "install": [find_runtime(target, installer), host_file("install.mjs")] if installer is not None else [],
        "place": profile.connector.place,
        "observer": None if profile.observer is None else profile.observer.model_dump(mode="json"),
        "module": str(module),
        "settles": None if profile.settles is None else profile.settles.model_dump(mode="json"),
        "programs": installed_programs(target),
        "tools": target.profile.tools,
        "tool_prefix": profile.tool_prefix,
        "search": None if profile.search is None else profile.search.model_dump(mode="json"),
        "beside_the_talk": profile.beside_the_talk,
        "cannot": profile.cannot,
        "notes": [*profile.notes, *([installation.note] if installation.note else [])],
        "asks": profile.asks,
    }
    return *python_host("real.harness"), json.dumps(given)


def for_each_agent(value: Any, agents: Sequence[str]) -> Any:
    """Settings in which what a list says of `{agent}` is said of each of the target's agents, the first one first."""
    if isinstance(value, Mapping):
        return {name: for_each_agent(each, agents) for name, each in value.items()}
    if not isinstance(value, list):
        return value
    rows: list[Any] = []
    for each in value:
        if "{agent}" in json.dumps(each):
            rows += [fill(each, {"agent": agent}) for agent in agents]
        else:
            rows.append(for_each_agent(each, agents))
    return rows


def _settings(installation: Installation) -> Mapping[str, Any]:
    """The settings of a release: those of the profile, and what only some releases know."""
    settings: Mapping[str, Any] = installation.program.profile.settings
    for row in _variations(installation):
        settings = merge(settings, row.settings)
    return settings


def _variations(installation: Installation) -> Sequence[Variation]:
    """What the profile says of the release alone."""
    return [row for row in installation.program.profile.varies if row.holds_for(installation.release)]
