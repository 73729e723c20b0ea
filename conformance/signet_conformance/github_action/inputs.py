"""The inputs of a lane: environment variables, each checked by a strict pattern before anything is started."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from itertools import count
from pathlib import Path

from msgspec import Struct, json
from msgspec.structs import replace

from signet_conformance.errors import UsageError, printable
from signet_conformance.files import real_path
from signet_conformance.targets.real import REAL, HarnessChoice

PREFIX = "SIGNET_LANE_"
_INTERPRETER = "SIGNET_LANE_PYTHON"
"""Only lane.sh, which starts the lane, reads it."""


class Field(Struct, frozen=True, forbid_unknown_fields=True):
    """One input: its name in the action, the pattern of its value, and the default if it is left out or blank."""

    name: str
    pattern: str
    """A regular expression that the whole value matches."""
    meaning: str
    example: str
    default: str = ""

    @property
    def variable(self) -> str:
        """The environment variable that carries it."""
        return variable(self.name)


FIELDS = json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=tuple[Field, ...])
"""Every input of the lane. The action and the reusable workflow offer these and no others."""


class Inputs(Struct, frozen=True):
    """The checked inputs of a lane. Paths are absolute and inside the workspace."""

    target: str
    face: str | None
    harness: HarnessChoice
    daemon: str
    allow_writes: bool
    allow_default_port: bool
    scenarios: str | None
    seed: str
    contract: str | None
    strict: bool
    baseline: Path | None
    report: Path
    artifact: str
    folder: Path
    workspace: Path


def read_inputs(environment: Mapping[str, str], here: Path) -> Inputs:
    """Read the inputs from the environment of a process whose folder is `here`.

    Raises UsageError naming the variable whose value has another shape, or whose path leads out of the workspace.
    """
    values = {field.name: _value(field, environment) for field in FIELDS}
    variables = {_INTERPRETER, *(field.variable for field in FIELDS)}
    unknown = sorted(name for name in environment if name.startswith(PREFIX) and name not in variables)
    if unknown:
        raise UsageError("is not an input of the lane", where=unknown[0], remedy="signet-conformance lane --help")
    workspace = Path(environment.get("GITHUB_WORKSPACE") or here).resolve()
    folder = _inside(workspace, workspace, values["working-directory"], "working-directory")
    if not folder.is_dir():
        raise UsageError(
            "is not a folder", where=_where("working-directory", folder), remedy="name one of the workspace"
        )
    baseline = _inside(workspace, folder, values["baseline"], "baseline") if values["baseline"] else None
    if baseline is not None and not baseline.is_file():
        raise UsageError(
            "is not a file", where=_where("baseline", baseline), remedy="commit the baseline, or leave the input out"
        )
    return Inputs(
        target=values["target"],
        face=values["face"] or None,
        harness=_harness(values["harness"], values["harness-version"]),
        daemon=values["daemon"],
        allow_writes=values["allow-writes"] == "true",
        allow_default_port=values["allow-default-port"] == "true",
        scenarios=values["scenarios"] or None,
        seed=values["seed"],
        contract=values["contract"] or None,
        strict=values["strict"] == "true",
        baseline=baseline,
        report=_inside(workspace, folder, values["report"], "report"),
        artifact=values["artifact"],
        folder=folder,
        workspace=workspace,
    )


def _harness(harness: str, release: str) -> HarnessChoice:
    """Which harness is driven. A real one is always installed, since CI runners lack it."""
    return HarnessChoice(harness, release or None, install=True) if harness == REAL else HarnessChoice()


def with_new_report(inputs: Inputs, *, ci: bool) -> Inputs:
    """The inputs with an empty report folder: an earlier report could be mistaken for this run's.

    On a developer's machine a used folder is replaced by the next free name beside it. Raises UsageError in `ci`, where
    a later step uploads the folder by its name.
    """
    report = inputs.report
    if not _holds_something(report):
        return inputs
    if ci:
        raise UsageError("is there already", where=_where("report", report), remedy="remove it, or name another folder")
    names = (report.with_name(f"{report.name}-{number}") for number in count(2))
    return replace(inputs, report=next(name for name in names if not _holds_something(name)))


def _holds_something(report: Path) -> bool:
    return os.path.lexists(report) and not (report.is_dir() and next(report.iterdir(), None) is None)


def _value(field: Field, environment: Mapping[str, str]) -> str:
    value = environment.get(field.variable, "").strip() or field.default
    if not value and field.name == "target":
        raise UsageError("is not set", where=field.variable, remedy="name a target: signet-conformance targets")
    if re.fullmatch(field.pattern, value, re.ASCII) is None:
        raise UsageError(
            f"{printable(value, 80)!r} does not fit: {field.name} is {field.meaning}",
            where=field.variable,
            remedy=f"write it like {field.variable}={field.example}",
        )
    return value


def _inside(workspace: Path, folder: Path, path: str, name: str) -> Path:
    # Resolved: a symbolic link of the repository must not lead the lane elsewhere.
    place = real_path(folder / path)
    if not place.is_relative_to(workspace):
        raise UsageError(
            "leads out of the workspace", where=_where(name, path), remedy="name a path inside the repository"
        )
    return place


def _where(name: str, value: object) -> str:
    return f"{variable(name)} {printable(value, 200)}"


def variable(name: str) -> str:
    """The environment variable that carries an input."""
    return PREFIX + name.upper().replace("-", "_")
