"""Programs that people run: their profiles, and where a release of one is installed on this machine."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signet_conformance.errors import NothingTestedError, TargetError, printable
from signet_conformance.files.reading import read_json
from signet_conformance.targets.releases import numbers

if TYPE_CHECKING:
    from signet_conformance.targets.program_document import ProgramDocument

FOLDER = Path(__file__).parent / "programs"
PLACE_VARIABLE = "SIGNET_CONFORMANCE_PROGRAMS"
INSTALLED = "installed"
"""The file that says of a folder that its program was installed to the end."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program of a profile: `release` is the one that is meant, None for the newest that is installed."""

    profile: ProgramDocument
    path: Path
    release: str | None = None

    @property
    def name(self) -> str:
        """Its name, which is that of the harness in faces."""
        return self.profile.name

    def installed(self) -> Mapping[str, Path]:
        """The releases that are installed for the kit, newest first, each with its folder."""
        folder = programs_folder() / self.name
        there = [path for path in folder.iterdir() if (path / INSTALLED).exists()] if folder.is_dir() else []
        return {path.name: path for path in sorted(there, key=lambda path: numbers(path.name), reverse=True)}

    def found(self, target: str) -> Installation:
        """What drives `target`. Raises NothingTestedError, with the line that installs it, where it is missing."""
        releases = self.installed()
        release = self.release or next(iter(releases), None)
        if release is None or release not in releases:
            which = self.name if self.release is None else f"{self.name} {printable(self.release, 40)}"
            raise NothingTestedError(
                f"NOT-APPLICABLE: {which} is not installed"
                + (f"; installed: {', '.join(releases)}" if releases else ""),
                where="--harness real",
                remedy=f"install it: {self._install_line(target)}",
            )
        return Installation(self, release, releases[release])

    def _install_line(self, target: str) -> str:
        version = "" if self.release is None else f" --harness-version {self.release}"
        return f"signet-conformance run {printable(target, 60)} --harness real --install-harness{version}"


@dataclass(frozen=True, slots=True)
class Installation:
    """An installed release of a program, in a folder of its own. `note` says why it is not the newest, if it is not."""

    program: Program
    release: str
    folder: Path
    note: str = ""

    @property
    def packages(self) -> Path:
        """Where its packages are."""
        return self.folder / ("node_modules" if self.program.profile.registry == "npm" else "venv")

    @property
    def programs(self) -> Path:
        """Where the programs of its packages are."""
        return self.packages / (".bin" if self.program.profile.registry == "npm" else "bin")

    def _runtime(self, name: str) -> str:
        """A runtime that was installed with it, else that of this machine."""
        own = self.programs / name
        return str(own) if own.exists() else shutil.which(name) or name

    def known(self) -> Mapping[str, str]:
        """What words of its profile stand for, as far as the installation decides it."""
        return {
            **{name: self._runtime(name) for name in ("node", "bun")},
            "python": sys.executable,
            "packages": str(self.packages),
            "bin": str(self.programs),
        }


def programs_folder() -> Path:
    """Where programs are installed for the kit."""
    given = os.environ.get(PLACE_VARIABLE)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(cache) / "signet-conformance" / "programs"


def program_names() -> Sequence[str]:
    """The programs that the kit can launch, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def find_program_profile(name: str, release: str | None = None) -> Program:
    """The profile of a program. Raises TargetError for one that the kit has no profile of."""
    from signet_conformance.files.documents import demand
    from signet_conformance.targets.program_document import ProgramDocument

    if name not in program_names():
        raise TargetError(
            f"the kit cannot launch {printable(name, 60)!r}",
            where="--harness real",
            remedy=f"it launches {', '.join(program_names())}; leave --harness out to play the others",
        )
    path = FOLDER / f"{name}.json"
    data = read_json(path, "report it: the profile comes with the kit", error=TargetError)
    return Program(demand(ProgramDocument, data, str(path), error=TargetError), path, release)


def filled(value: Any, known: Mapping[str, str]) -> Any:
    """A value of a profile, with what its words stand for."""
    if isinstance(value, str):
        for name, meant in known.items():
            value = value.replace(f"{{{name}}}", meant)
        return value
    if isinstance(value, Mapping):
        return {name: filled(each, known) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [filled(each, known) for each in value]
    return value
