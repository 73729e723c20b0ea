"""Finds the files and the runtime of a target on this machine, from the current folder upwards."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signet_conformance.errors import TargetError, printable
from signet_conformance.files import parse_file
from signet_conformance.files.json_values import only_text
from signet_conformance.targets.face import find_face
from signet_conformance.targets.releases import numbers

if TYPE_CHECKING:
    from signet_conformance.targets import Target
    from signet_conformance.targets.program_document import FilePlace

_NODE = "node"
_BUN = "bun"
_RUNTIMES: Mapping[str, str] = {
    _NODE: "install Node.js 20 or later, or set runtime to its path",
    _BUN: "npm install bun, or set runtime to its path",
}
_CACHES_CODE = [22, 1]
"""The first release of node with NODE_COMPILE_CACHE."""
_PATIENCE_S = 20.0
_TYPESCRIPT = (".ts", ".mts", ".cts")
_DATA = (".json", ".toml", ".md", ".txt")


def searched(root: Path) -> Iterator[Path]:
    """Yield the folders in which files are searched: `root` and those above it.

    Files found there may be run. So the search ends at the repository's root, and before a folder of another owner, in
    which other users may put files.
    """
    for folder in (root, *root.parents):
        if folder != root and not is_trusted(folder, root):
            return
        yield folder
        if (folder / ".git").exists():
            return


def is_trusted(path: Path, root: Path) -> bool:
    """Return True if a path belongs to the user, to the owner of `root` (as in a container), or to the superuser.

    A symbolic link and its target must both belong to one of them, since other users may link to our files.
    """
    try:
        owners = {path.lstat().st_uid, path.stat().st_uid}
        return owners <= {0, os.geteuid(), root.stat().st_uid}
    except OSError:
        return False


def _is_trusted_below(folder: Path, path: Path, root: Path) -> bool:
    """Apply `is_trusted` to a path below a folder and to each folder between the two."""
    between = [each for each in path.parents if each != folder and folder in each.parents]
    return all(is_trusted(each, root) for each in (path, *between))


def find_file(target: Target) -> Path:
    """Find the connector's file: the setting `module`, or the first existing place of the profile.

    Raises TargetError if it is missing, with the places and how to build it, or if the driver cannot load it.
    """
    profile = target.profile
    if profile.module is not None:
        return _loadable(target, target.folder / profile.module)
    places = profile.files
    if (file := first_of(target, places)) is not None:
        return file
    if not places:
        raise TargetError("no connector is named", where=target.where, remedy=target.kind.named)
    names = ", ".join(f"{p.path} of package {p.package}" if p.package else p.path for p in places)
    raise TargetError(
        f"the connector {target.name} is not found at or above {printable(target.root)}: looked for {names}",
        where=f"--target {target.name}",
        remedy=f"{build_remedy(target)}; or set module in [targets.{target.name}] of signet-conformance.toml",
    )


def _loadable(target: Target, path: Path) -> Path:
    endings = target.kind.endings
    if path.is_file() and (path.suffix not in _DATA if endings is None else path.suffix in endings):
        return path.resolve()
    what, remedy = "does not exist", "build the connector, or fix the setting 'module'"
    if path.exists():
        kind = "a folder" if path.is_dir() else "not a file" if not path.is_file() else "not a program"
        what = f"is {kind}, the driver {target.driver} loads {'a program' if endings is None else ', '.join(endings)}"
        remedy = "set module to the file that the harness loads"
    raise TargetError(f"{printable(path, 400)} {what}", where=target.where, remedy=remedy)


def find_program(target: Target) -> str:
    """Find the program of a target's command. Raises TargetError if it is missing, with how to get it."""
    program = target.command[0]
    path = shutil.which(program)
    if path is None:
        place = "does not exist" if os.sep in program else "is not on PATH"
        place = "is no file that may be executed" if os.sep in program and os.path.lexists(program) else place
        raise TargetError(
            f"{printable(program)} {place}", where=target.where, remedy="install it, or fix the setting command"
        )
    return str(Path(path).absolute())


def installed_program(target: Target, name: str) -> Path | str | None:
    """Find a program that the connector installs by name: a built file, a program of PATH, or None."""
    return first_of(target, target.profile.programs[name]) or shutil.which(name)


def build_remedy(target: Target) -> str:
    """How to build what a target needs."""
    return "build the connector" if target.profile.build is None else target.profile.build


def first_of(target: Target, places: Sequence[FilePlace]) -> Path | None:
    """The first existing place, from the target's root upwards, or None."""
    return next((path.resolve() for path in _candidates(target.root, places) if path.exists()), None)


def _candidates(root: Path, places: Sequence[FilePlace]) -> Iterator[Path]:
    for folder in searched(root):
        name = package_name(folder)
        for place in places:
            if place.package in (None, name) and _is_trusted_below(folder, path := folder / place.path, root):
                yield path


def release_of(path: Path) -> str | None:
    """The version in the nearest package.json above a file; None if none can be read."""
    for folder in path.parents:
        data = _package(folder)
        if data is not None:
            return only_text(data.get("version"))
    return None


def package_folder(path: Path) -> Path:
    """The nearest folder above a file with a package.json, or else the file's folder."""
    return next((folder for folder in path.parents if (folder / "package.json").is_file()), path.parent)


def connector_release(target: Target) -> str | None:
    """The release of a target's connector, from its package; None if unknown."""
    try:
        return release_of(find_file(target))
    except TargetError:
        return None


def package_name(folder: Path) -> str | None:
    """The name in a folder's package.json; None if it cannot be read."""
    return only_text((_package(folder) or {}).get("name"))


def _package(folder: Path) -> Mapping[str, Any] | None:
    try:
        data = parse_file(folder / "package.json")
    except (OSError, ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def find_runtime(target: Target, module: Path | None = None) -> str:
    """Find the program that runs a module: the setting `runtime`, or the first known one on PATH.

    A `module` in TypeScript is run by bun if the target allows it, since node runs only some. Raises TargetError if
    there is no runtime, with how to get one.
    """
    wanted = runtimes(target, module)
    for name in wanted:
        program = shutil.which(name, path=_search_path(target.root))
        if program is not None:
            return program
    raise TargetError(
        f"{printable(' or '.join(wanted))} is not on this machine",
        where=f"--target {target.name}",
        remedy=_RUNTIMES.get(wanted[0], "set runtime to a program that exists"),
    )


def program_command(target: Target, program: Path) -> list[str]:
    """The command that runs a program of the connector, which each hook starts again.

    A node that can cache compiled code is preferred to bun, since it needs a third less CPU. Raises TargetError as
    `find_runtime` does.
    """
    if _NODE in runtimes(target, program):
        node = shutil.which(_NODE, path=_search_path(target.root))
        if node is not None and _version_of(node) >= _CACHES_CODE:
            cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
            compiled = cache / "signet-conformance" / "compiled"
            return ["env", f"NODE_COMPILE_CACHE={compiled}", node, str(program)]
    return [find_runtime(target, program), str(program)]


@cache
def _version_of(node: str) -> list[int]:
    try:
        process = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return numbers(process.stdout)


def runtimes(target: Target, module: Path | None) -> Sequence[str]:
    """The programs that can run a module, the best first: those of the target, or else those of its harness.

    TypeScript is run by bun, unless the target names only node, which cannot run all of it.
    """
    is_chosen = "runtime" in target.profile.model_fields_set
    harness = () if is_chosen or target.profile.face is None else find_face(target).data.runtime
    wanted = harness or target.profile.runtime
    if module is None or module.suffix not in _TYPESCRIPT:
        return wanted
    others = [name for name in wanted if Path(name).name != _NODE]
    return others or (wanted if is_chosen else (_BUN,))


def _search_path(root: Path) -> str:
    """PATH, then the programs installed in the repository, then the folder of bun's installer."""
    installed = ((folder, folder / "node_modules" / ".bin") for folder in searched(root))
    local = [str(programs) for folder, programs in installed if _is_trusted_below(folder, programs, root)]
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *local, str(Path.home() / ".bun" / "bin")])
