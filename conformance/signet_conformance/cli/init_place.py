"""Where `init` writes: the connector's folder in its repository, and files that are never replaced."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from signet_conformance.errors import UsageError, printable
from signet_conformance.files.whole_file import create_file
from signet_conformance.github_action.inputs import FIELDS, Inputs, read_inputs
from signet_conformance.github_action.language import build_lines
from signet_conformance.github_action.workflow import Driven

BASELINE = "signet-baseline.json"
IGNORE = ".gitignore"
_IGNORED = ("signet-failures/",)
_SPELT = {
    "SIGNET_LANE_TARGET": ("--target", "call it by letters, digits, dots, dashes and underscores in the settings"),
    "SIGNET_LANE_SCENARIOS": ("--scenarios", "a whole number, such as --scenarios 200"),
    "SIGNET_LANE_WORKING_DIRECTORY": ("FOLDER", "a lane takes paths of letters, digits, dots, dashes and underscores"),
}
"""Input of the lane to the name that `init` uses for it, and the remedy for a value that the lane refuses."""


class Place(Struct, frozen=True):
    """The connector's folder, and the root of the repository that it is in."""

    folder: Path
    root: Path

    @classmethod
    def find(cls, given: str) -> Place:
        """The connector's folder, as the user gave it. Raises UsageError when it is not a folder."""
        folder = Path(given).resolve()
        if not folder.is_dir():
            raise UsageError("is not a folder", where=printable(given, 400), remedy="name the folder of the connector")
        return cls(folder, next((p for p in (folder, *folder.parents) if (p / ".git").exists()), folder))

    @property
    def directory(self) -> str:
        """The folder, from the root of the repository."""
        return self.folder.relative_to(self.root).as_posix()

    def inputs(self, target: str, scenarios: str | None) -> Inputs:
        """What the lane would be given. Raises UsageError in the words of `init`."""
        known = BASELINE if (self.folder / BASELINE).is_file() else ""
        given = {"target": target, "working-directory": self.directory, "scenarios": scenarios or "", "baseline": known}
        variables = {field.variable: given.get(field.name, "") for field in FIELDS}
        try:
            return read_inputs({**variables, "GITHUB_WORKSPACE": str(self.root)}, self.root)
        except UsageError as failure:
            # The caller of `init` has set no variable of the lane.
            option, remedy = _SPELT.get(str(failure.where), (failure.where, failure.remedy))
            raise UsageError(failure.message, where=option, remedy=remedy) from None

    def driven(self, target: str, scenarios: str | None) -> Driven:
        """A connector of this folder, as the lane drives it."""
        inputs = {"target": target}
        if scenarios is not None:
            # What the baseline was written from is what the lane has to perform.
            inputs["scenarios"] = scenarios
        if (self.folder / BASELINE).is_file():
            inputs["baseline"] = BASELINE
        if self.directory != ".":
            inputs["working-directory"] = self.directory
        # A repository of many packages has one lock file, at its root.
        build = build_lines(self.folder)
        if self.folder != self.root and (of_root := build_lines(self.root)):
            return Driven(inputs, of_root)
        return Driven(inputs, build, self.directory)

    @property
    def ignored(self) -> Sequence[str]:
        """What runs leave in the repository and git should not see, by the lines that its .gitignore lacks."""
        try:
            there = (self.root / IGNORE).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            there = []
        return [line for line in _IGNORED if line not in {known.strip().strip("/") + "/" for known in there}]


class Writer:
    """Writes files that do not exist yet, and reports what it did with each."""

    def __init__(self, root: Path, dry_run: bool) -> None:
        self._root = root
        self._dry_run = dry_run
        self.left: list[Path] = []
        """The files that are as they were."""

    def write(self, path: Path, text: str) -> None:
        """Write a file; an existing one stays as it is."""
        name = printable(path.relative_to(self._root), 400)
        if os.path.lexists(path):
            print(f"left      {name}: it exists already")
            self.left.append(path)
        elif self._dry_run:
            print(f"would write {name}:")
            print("".join(f"    {line}\n" for line in text.splitlines()), end="")
        else:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                create_file(path, text)
            except OSError as failure:
                raise UsageError(
                    f"cannot be written: {failure.strerror}", where=str(path), remedy="check the permissions"
                ) from None
            print(f"wrote     {name}")

    def extend(self, path: Path, lines: Sequence[str]) -> None:
        """Add lines at the end of a file that people keep, or begin it with them."""
        name = printable(path.relative_to(self._root), 400)
        if not lines or path.is_symlink():
            return
        if self._dry_run:
            print(f"would add to {name}: {', '.join(lines)}")
            return
        try:
            before = path.read_bytes() if path.exists() else b""
            gap = b"\n" if before and not before.endswith(b"\n") else b""
            with path.open("ab") as stream:
                stream.write(gap + "".join(f"{line}\n" for line in lines).encode())
        except OSError as failure:
            raise UsageError(
                f"cannot be written: {failure.strerror}", where=str(path), remedy="check the permissions"
            ) from None
        print(f"added to  {name}: {', '.join(lines)}")
