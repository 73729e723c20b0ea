"""Drives a target in its real program: chooses the release, and builds the command of the driver."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from signet_conformance.errors import TargetError, UsageError, printable
from signet_conformance.files.json_values import fill_in, merge
from signet_conformance.targets.face import face_of_harness, find_face
from signet_conformance.targets.files import find_file, find_runtime, first_of, package_folder
from signet_conformance.targets.kinds import host_file, installed_programs, python_host
from signet_conformance.targets.program import Installation, find_program_profile, install
from signet_conformance.targets.releases import numbers

if TYPE_CHECKING:
    from pathlib import Path

    from signet_conformance.targets import Target

FAKE, REAL = "fake", "real"


@dataclass(frozen=True, slots=True)
class HarnessChoice:
    """The harness that a run asks for: `fake` (the default, None) or `real`, with the program's `release`."""

    harness: str | None = None
    release: str | None = None
    install: bool = False
    """Whether to install the program if it is missing."""
    every: bool = False
    """Whether to perform every scripted scenario, not only those made for real programs."""


def with_harness(target: Target, choice: HarnessChoice, option: str) -> Target:
    """Return the target as it is driven in the chosen harness.

    Raises UsageError for options that do not go together, TargetError if the kit knows no program of the target's
    harness or is to install one without a connector to test, and NothingTestedError if the program is not installed.
    """
    if choice.harness in (None, FAKE):
        if choice.release is not None or choice.install or choice.every:
            raise UsageError(
                "a release and its scenarios can be chosen only for a real program",
                where=option,
                remedy=f"add {option} {REAL}",
            )
        return target
    if choice.harness != REAL:
        raise UsageError(
            f"is {printable(choice.harness, 40)!r}", where=option, remedy=f"{FAKE} (the default) or {REAL}"
        )
    program = find_program_profile(program_of(target, option), choice.release)
    if choice.install:
        # Fail before minutes of downloads if the connector is missing.
        find_file(target)
    installation = install(program) if choice.install else program.find_installation(target.name)
    profile = target.profile.model_copy(update={"sessions": 0})
    return dataclasses.replace(target, real=installation, processes="one", profile=profile, every_scenario=choice.every)


def options_for(target: Target, face: str | None = None) -> Sequence[str]:
    """The options that drive a target in this harness again, and in this face if the option `face` chose it."""
    words = () if face is None else ("--face", target.face_name)
    return words if target.real is None else (*words, "--harness", REAL, "--harness-version", target.real.release)


def program_of(target: Target, option: str) -> str:
    """The program that the target's connector is made for."""
    if not target.kind.has_face:
        raise TargetError(
            f"{printable(target.name, 60)} has no harness that the kit could start: its driver is {target.driver}",
            where=option,
            remedy=f"leave {option} out",
        )
    return find_face(target).data.harness


_UNCHANGED = {
    *("speaks", "observer", "settles", "tool_prefix", "search", "beside_the_talk", "cannot", "cannot_call", "asks")
}
"""Members of a program's profile that its driver is given unchanged."""


def real_command_line(target: Target, installation: Installation) -> tuple[str, ...]:
    """The command of the program that speaks signet-driver/1 for a target in a real program."""
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
        **profile.model_dump(mode="json", include=_UNCHANGED),
        "command": fill_in(profile.command, known),
        "settings": fill_in(for_each_agent(_settings(installation), target.declared.agents), known),
        "env": fill_in(profile.env, known),
        "installer": None if installer is None else str(installer),
        "setup": {**profile.connector.model_dump(mode="json"), "then": fill_in(profile.connector.then, known)},
        "install": [find_runtime(target, installer), host_file("install.mjs")] if installer is not None else [],
        "module": str(module),
        "programs": installed_programs(target),
        "tools": target.profile.tools,
        "notes": [*profile.notes, *([installation.note] if installation.note else [])],
        **_registration(target, installation, module),
    }
    return python_host("real.harness", given)


def _registration(target: Target, installation: Installation, module: Path) -> Mapping[str, Any]:
    """The events that the program no longer knows, and the command of the kit's host that registers the connector.

    The command is empty unless the program registers a plugin in several modes. It does not report these itself.
    """
    try:
        face = face_of_harness(installation.program.profile.name, installation.release)
    except TargetError:
        return {"formerly": [], "registers": []}
    formerly = [] if face.data.registry is None else list(face.data.registry.formerly)
    known = numbers(installation.release) >= numbers(face.data.version)
    if target.driver != "node-plugin" or len(face.data.registration_modes or ()) < 2 or not known:
        return {"formerly": formerly, "registers": []}
    options = json.dumps({"registers_only": True, "tools": target.profile.tools})
    command = [find_runtime(target, module), host_file("node_host.mjs"), str(face.path), str(module), options]
    return {"formerly": formerly, "registers": command}


def for_each_agent(value: Any, agents: Sequence[str]) -> Any:
    """Repeat each list entry of settings that contains `{agent}` for each agent, in their order."""
    if isinstance(value, Mapping):
        return {name: for_each_agent(each, agents) for name, each in value.items()}
    if not isinstance(value, list):
        return value
    rows: list[Any] = []
    for each in value:
        if "{agent}" in json.dumps(each):
            rows += [fill_in(each, {"agent": agent}) for agent in agents]
        else:
            rows.append(for_each_agent(each, agents))
    return rows


def _settings(installation: Installation) -> Mapping[str, Any]:
    """The profile's settings and those for the installed release."""
    profile = installation.program.profile
    settings: Mapping[str, Any] = profile.settings
    for row in profile.varies:
        if row.holds_for(installation.release):
            settings = merge(settings, row.settings)
    return settings
