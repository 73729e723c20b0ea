"""Where a target's files and its runtime are on this machine, looked for from the repository one stands in."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signet_conformance.errors import TargetError, printable
from signet_conformance.targets import Target

_RUNTIMES: Mapping[str, str] = {
    "node": "install Node.js 20 or later, or set runtime to its path",
    "bun": "npm install bun, or set runtime to its path",
}


@dataclass(frozen=True, slots=True)
class Place:
    """One place where a file may be: `path` below the package of a name, or below any folder upwards."""

    path: str
    package: str | None = None


def find_file(target: Target, member: str = "files", own: str = "module") -> Path:
    """The connector's file: the setting `own`, or the first of the profile's places that exists.

    Raises TargetError that lists the places and says how the file is made.
    """
    if own in target.profile:
        path = target.folder / str(target.profile[own])
        if path.exists():
            return path.resolve()
        raise TargetError(
            "does not exist", where=printable(path), remedy=f"build the connector, or mend the setting {own!r}"
        )
    places = [Place(**one) for one in target.profile.get(member, ())]
    if (found := first_of(target, target.profile.get(member, ()))) is not None:
        return found
    looked = ", ".join(f"{p.path} of package {p.package}" if p.package else p.path for p in places)
    made = target.profile.get("build", "build the connector")
    raise TargetError(
        f"the connector {target.name} is not found at or above {printable(target.root)}: looked for {looked}",
        where=f"--target {target.name}",
        remedy=f"{made}; or set {own} in [tool.signet-conformance.targets.{target.name}]",
    )


def first_of(target: Target, places: Sequence[Mapping[str, str]]) -> Path | None:
    """The first of some places that exists, from the target's root upwards; None when there is none."""
    known = [Place(**one) for one in places]
    return next((path.resolve() for path in _candidates(target.root, known) if path.exists()), None)


def _candidates(root: Path, places: Sequence[Place]) -> Iterator[Path]:
    for folder in (root, *root.parents):
        name = package_name(folder)
        for place in places:
            if place.package is None or place.package == name:
                yield folder / place.path


def package_name(folder: Path) -> str | None:
    """What the package.json of a folder calls it; None where there is none that can be read."""
    try:
        data: Any = json.loads((folder / "package.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    name = data.get("name") if isinstance(data, dict) else None
    return name if isinstance(name, str) else None


def find_runtime(target: Target) -> str:
    """The program that runs the connector's module: the setting `runtime`, or the first known one on PATH.

    Raises TargetError that says how to get one.
    """
    wanted = target.profile.get("runtime", ["node"])
    for name in [wanted] if isinstance(wanted, str) else wanted:
        found = shutil.which(name, path=_search_path(target.root))
        if found is not None:
            return found
    names = wanted if isinstance(wanted, str) else " or ".join(wanted)
    first = wanted if isinstance(wanted, str) else wanted[0]
    raise TargetError(
        f"{printable(names)} is not on this machine",
        where=f"--target {target.name}",
        remedy=_RUNTIMES.get(first, "set runtime to a program that exists"),
    )


def _search_path(root: Path) -> str:
    """PATH, then what the repository itself has installed, then where bun's own installer puts it."""
    local = [str(folder / "node_modules" / ".bin") for folder in (root, *root.parents)]
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *local, str(Path.home() / ".bun" / "bin")])
