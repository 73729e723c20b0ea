"""The user's own home: what a real program keeps there must be after a run what it was before."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from signet_conformance.errors import KitError


class Untouched:
    """A context: at its end, KitError is raised when any of the `folders` of a `home` has changed."""

    def __init__(self, home: Path, folders: Sequence[str]) -> None:
        self._home = home
        self._folders = folders

    def __enter__(self) -> Self:
        self._before = {name: fingerprint(self._home / name) for name in self._folders}
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        changed = [name for name, before in self._before.items() if fingerprint(self._home / name) != before]
        if changed and kind is None:
            raise KitError(
                f"{', '.join(changed)} changed meanwhile: the program left the home that it was given",
                where=str(self._home),
                remedy="close the same program if you use it yourself, and run again; else report it",
            )


def fingerprint(place: Path) -> str:
    """A hash of the names, sizes and times of every file at and below a place."""
    whole = hashlib.sha256()
    for path in _below(place):
        facts = path.lstat()
        whole.update(f"{path}\0{facts.st_size}\0{facts.st_mtime_ns}\0{facts.st_mode}\0".encode("utf-8", "replace"))
    return whole.hexdigest()


def _below(place: Path) -> Iterator[Path]:
    if os.path.lexists(place):
        yield place
    for folder, folders, files in os.walk(place):
        folders.sort()
        yield from (Path(folder, name) for name in sorted([*folders, *files]))
