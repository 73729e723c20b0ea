"""Where a target's files and its runtime are on this machine, looked for from the repository one stands in."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signet_conformance.errors import TargetError, printable

if TYPE_CHECKING:
    from signet_conformance.targets import Target
    from signet_conformance.targets.parts import FilePlace

_RUNTIMES: Mapping[str, str] = {
    "node": "install Node.js 20 or later, or set runtime to its path",
    "bun": "npm install bun, or set runtime to its path",
}
_NODE = "node"
_TYPESCRIPT = (".ts", ".mts", ".cts")
_DATA = (".json", ".toml", ".md", ".txt")


def searched(root: Path) -> Iterator[Path]:
    """The folders in which what belongs to a repository is looked for: `root`, and those above it.

    What is found there may be run. So the search ends at the root of the repository, and before a folder of another
    owner: anybody may put a file into a folder that all can write to.
    """
    for folder in (root, *root.parents):
        if folder != root and not is_trusted(folder, root):
            return
        yield folder
        if (folder / ".git").exists():
            return


def is_trusted(path: Path, root: Path) -> bool:
    """Whether a path belongs to who runs this, to the owner of `root`, as in a container, or to the system's owner.

    Of a link both it and what it leads to: anybody may link to a file of ours from a place of theirs.
    """
    try:
        owners = {path.lstat().st_uid, path.stat().st_uid}
        return owners <= {0, os.geteuid(), root.stat().st_uid}
    except OSError:
        return False


def _is_trusted_below(folder: Path, path: Path, root: Path) -> bool:
    """The same of a path below a folder, and of each folder on the way there."""
    on_the_way = [each for each in path.parents if each != folder and folder in each.parents]
    return all(is_trusted(each, root) for each in (path, *on_the_way))


def find_file(target: Target) -> Path:
    """The connector's file: the setting `module`, or the first of the profile's places that exists.

    Raises TargetError that lists the places and says how the file is made, or that the driver loads no such file.
    """
    profile = target.profile
    if profile.module is not None:
        return _loadable(target, target.folder / profile.module)
    places = profile.files
    if (file := first_of(target, places)) is not None:
        return file
    if not places:
        raise TargetError("no connector is named", where=target.where, remedy=target.kind.named)
    looked = ", ".join(f"{p.path} of package {p.package}" if p.package else p.path for p in places)
    raise TargetError(
        f"the connector {target.name} is not found at or above {printable(target.root)}: looked for {looked}",
        where=f"--target {target.name}",
        remedy=f"{build_remedy(target)}; or set module in [targets.{target.name}] of signet-conformance.toml",
    )


def _loadable(target: Target, path: Path) -> Path:
    """The file of the setting `module`, when the driver can load it."""
    endings = target.kind.endings
    if path.is_file() and (path.suffix not in _DATA if endings is None else path.suffix in endings):
        return path.resolve()
    what, remedy = "does not exist", "build the connector, or mend the setting 'module'"
    if path.exists():
        kind = "a folder" if path.is_dir() else "not a file" if not path.is_file() else "not a program"
        what = f"is {kind}, the driver {target.driver} loads {'a program' if endings is None else ', '.join(endings)}"
        remedy = "set module to the file that the harness loads"
    raise TargetError(f"{printable(path, 400)} {what}", where=target.where, remedy=remedy)


def find_program(target: Target) -> str:
    """Where the program of a target's command is. Raises TargetError that says how to get it."""
    program = target.command[0]
    path = shutil.which(program)
    if path is None:
        place = "does not exist" if os.sep in program else "is not on PATH"
        raise TargetError(
            f"{printable(program)} {place}", where=target.where, remedy="install it, or mend the setting command"
        )
    return str(Path(path).absolute())


def installed_program(target: Target, name: str) -> Path | str | None:
    """Where a program is that the connector installs by name: a file that was built, a program of PATH, or nowhere."""
    return first_of(target, target.profile.programs[name]) or shutil.which(name)


def build_remedy(target: Target) -> str:
    """How what a target needs is built, as an instruction."""
    return "build the connector" if target.profile.build is None else target.profile.build


def first_of(target: Target, places: Sequence[FilePlace]) -> Path | None:
    """The first of some places that exists, from the target's root upwards, or None."""
    return next((path.resolve() for path in _candidates(target.root, places) if path.exists()), None)


def _candidates(root: Path, places: Sequence[FilePlace]) -> Iterator[Path]:
    for folder in searched(root):
        name = package_name(folder)
        for place in places:
            if place.package in (None, name) and _is_trusted_below(folder, path := folder / place.path, root):
                yield path


def release_of(path: Path) -> str | None:
    """The version in the nearest package.json above a file, or None if no such file can be read."""
    for folder in path.parents:
        data = _package(folder)
        if data is not None:
            version = data.get("version")
            return version if isinstance(version, str) else None
    return None


def package_folder(path: Path) -> Path:
    """The nearest folder above a file that is a package, else the one that the file is in."""
    return next((folder for folder in path.parents if (folder / "package.json").is_file()), path.parent)


def connector_release(target: Target) -> str | None:
    """The release of a target's connector, by the package that its file is in; None where nobody says it."""
    try:
        return release_of(Path(find_file(target)))
    except TargetError:
        return None


def package_name(folder: Path) -> str | None:
    """What the package.json of a folder calls it, or None if that file cannot be read."""
    name = (_package(folder) or {}).get("name")
    return name if isinstance(name, str) else None


def _package(folder: Path) -> Mapping[str, Any] | None:
    try:
        data: Any = json.loads((folder / "package.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def find_runtime(target: Target, module: Path | None = None) -> str:
    """The program that runs a module of the connector's: the setting `runtime`, or the first known one on PATH.

    A `module` in TypeScript is left to bun where the target knows it: node takes only some of them. Raises
    TargetError that says how to get a runtime.
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


def runtimes(target: Target, module: Path | None) -> Sequence[str]:
    """The programs that can run a module of the connector's, the best first."""
    wanted = target.profile.runtime
    if module is None or module.suffix not in _TYPESCRIPT:
        return wanted
    return [name for name in wanted if Path(name).name != _NODE] or wanted


def _search_path(root: Path) -> str:
    """PATH, then what the repository itself has installed, then where bun's own installer puts it."""
    installed = ((folder, folder / "node_modules" / ".bin") for folder in searched(root))
    local = [str(programs) for folder, programs in installed if _is_trusted_below(folder, programs, root)]
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *local, str(Path.home() / ".bun" / "bin")])
