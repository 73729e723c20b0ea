"""Where a run keeps a daemon's data, and what a program that it starts sees of our environment."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from signet_reference_harness.bench.records import BenchFailureError
from signet_reference_harness.errors import ConfigError

INHERITED: Final = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "PYTHONPATH",
    "PYTHONHASHSEED",
    "PYTHONDONTWRITEBYTECODE",
    "VIRTUAL_ENV",
    "COVERAGE_PROCESS_START",
)
"""What a program may see of our environment: no credential, and nothing of the user's own Signet."""
BESIDE: Final = ("", "-wal")
"""What belongs to an SQLite database, as endings of its name."""


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of one database: the daemon's workspace, its home and its temporary files."""

    folder: Path

    @property
    def workspace(self) -> Path:
        """What the daemon is told as SIGNET_PATH."""
        return self.folder / "workspace"

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a program that keeps to this folder."""
        kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
        home = str(self.folder / "home")
        own = str(self.workspace)
        places = {
            "HOME": home,
            "TMPDIR": str(self.folder / "tmp"),
            "XDG_CONFIG_HOME": f"{home}/.config",
            "XDG_DATA_HOME": f"{home}/.local/share",
            "XDG_STATE_HOME": f"{home}/.local/state",
            "XDG_CACHE_HOME": f"{home}/.cache",
            "SIGNET_PATH": own,
            "SIGNET_WORKSPACE": own,
        }
        return {**kept, **places, "NO_COLOR": "1", **more}

    def prepare(self, begin_with: Database | None, where: str) -> None:
        """Make the folder anew; `where` in the workspace a copy of a database is put. Raises BenchFailureError."""
        try:
            if self.folder.exists():
                # What an attempt has left that was killed.
                shutil.rmtree(self.folder)
            for name in ("workspace", "home", "tmp"):
                (self.folder / name).mkdir(parents=True)
            if begin_with is not None:
                begin_with.copy_to(self.workspace / where)
        except OSError as error:
            raise BenchFailureError(
                f"{error.filename or self.folder}: {error.strerror or error}", remedy="make room, or name another --out"
            ) from None

    def holds(self, path: Path) -> bool:
        """Whether a path leads into this folder."""
        return path.resolve().is_relative_to(self.folder.resolve())

    def remove(self) -> None:
        """Take the folder away."""
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Database:
    """An SQLite database that a run begins with a copy of. It is read, never opened by SQLite: that might write."""

    path: Path
    sha256: str

    @classmethod
    def read(cls, path: Path) -> Database:
        """The database in a file. Raises ConfigError for one that cannot be read, or is being written."""
        try:
            with path.open("rb") as file:
                if file.read(16) != b"SQLite format 3\0":
                    raise ConfigError(f"--from-db {path}: is not an SQLite database", remedy="name a memories.db")
            return cls(path, _digest(path))
        except OSError as error:
            raise ConfigError(
                f"--from-db {path}: {error.strerror or error}", remedy="name a memories.db that can be read"
            ) from None

    def copy_to(self, target: Path) -> None:
        """Put a copy at `target`. Raises BenchFailureError when the database has changed since it was read."""
        target.parent.mkdir(parents=True, exist_ok=True)
        for ending in BESIDE:
            beside = Path(f"{self.path}{ending}")
            if beside.exists():
                shutil.copyfile(beside, f"{target}{ending}")
        if _digest(target) != self.sha256:
            raise BenchFailureError(
                f"--from-db {self.path}: was changed while the run read it",
                remedy="end the daemon that writes it, or copy it",
            )


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    for ending in BESIDE:
        beside = Path(f"{path}{ending}")
        if beside.exists():
            with beside.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def folder_name(database: str, number: int) -> str:
    """A name for the folder of a suite's `number`-th database that any file system takes."""
    return f"{number:04d}-{re.sub(r'[^A-Za-z0-9_-]+', '-', database)[:60]}"
