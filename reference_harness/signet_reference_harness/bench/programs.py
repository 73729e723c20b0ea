"""Prepares the database and starts the programs of a run, daemon and recorder, which all end with this process."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import shutil
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from signet_reference_harness import guardian
from signet_reference_harness.bench.log import BenchFailureError
from signet_reference_harness.errors import ConfigError, os_errors

INHERITED: Final = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"),
    *("PYTHONPATH", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV", "COVERAGE_PROCESS_START"),
)
"""The variables of our environment that a program may see: no credential, and nothing of the user's own Signet."""
DATABASE_ENDINGS: Final = ("", "-wal")
"""Endings of the files of an SQLite database."""


@dataclass(frozen=True, slots=True)
class DatabaseFolder:
    """The folder of one database: the daemon's workspace, its home and its temporary files."""

    folder: Path

    @property
    def workspace(self) -> Path:
        """The folder that SIGNET_PATH names to the daemon."""
        return self.folder / "workspace"

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a program that writes into this folder only."""
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
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
        return {**inherited, **places, "NO_COLOR": "1", **more}

    def prepare(self, initial_database: Database | None, where: str) -> None:
        """Create the folder anew, with a copy of a database at `where` in the workspace. Raises BenchFailureError."""
        with os_errors(self.folder, "make room, or name another --out", BenchFailureError):
            if self.folder.exists():
                # The remains of a killed attempt.
                shutil.rmtree(self.folder)
            for name in ("workspace", "home", "tmp"):
                (self.folder / name).mkdir(parents=True)
            if initial_database is not None:
                initial_database.copy_to(self.workspace / where)

    def holds(self, path: Path) -> bool:
        """Whether a path leads into this folder."""
        return path.resolve().is_relative_to(self.folder.resolve())

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Database:
    """An SQLite database that a run copies. It is not opened with SQLite, since that might write to it."""

    path: Path
    sha256: str

    @classmethod
    def load(cls, path: Path) -> Database:
        """The database in a file. Raises ConfigError if it cannot be read or is not SQLite."""
        with os_errors(f"--from-db {path}", "name a memories.db that can be read"):
            with path.open("rb") as file:
                if file.read(16) != b"SQLite format 3\0":
                    raise ConfigError(f"--from-db {path}: is not an SQLite database", remedy="name a memories.db")
            return cls(path, _digest(path))

    def copy_to(self, target: Path) -> None:
        """Put a copy at `target`. Raises BenchFailureError when the database has changed since it was read."""
        target.parent.mkdir(parents=True, exist_ok=True)
        for ending in DATABASE_ENDINGS:
            file = Path(f"{self.path}{ending}")
            if file.exists():
                shutil.copyfile(file, f"{target}{ending}")
        if _digest(target) != self.sha256:
            raise BenchFailureError(
                f"--from-db {self.path}: was changed while the run read it",
                remedy="end the daemon that writes it, or copy it",
            )


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    for ending in DATABASE_ENDINGS:
        file = Path(f"{path}{ending}")
        if file.exists():
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def folder_name(database: str, number: int) -> str:
    """A name for the folder of a suite's `number`-th database, valid on any file system."""
    return f"{number:04d}-{re.sub(r'[^A-Za-z0-9_-]+', '-', database)[:60]}"


READY_S: Final = 60.0
GRACE_S: Final = 5.0
"""How long a program may take to end by itself. After ENDING_S it is killed with its guardian."""
ENDING_S: Final = 10.0
LINE_LIMIT: Final = 1024 * 1024
TAIL: Final = 1_000
"""How many of the last bytes of a program's standard error a failure quotes."""


@contextlib.asynccontextmanager
async def running(
    program: str, command: Sequence[str], environment: Mapping[str, str], log: Path
) -> AsyncIterator[Process]:
    """Run a program within this context; append its standard error to the file `log`. Raises BenchFailureError."""
    with os_errors(f"{program} cannot be started", kind=BenchFailureError), log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-S", guardian.__file__, "0", str(GRACE_S)),
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=errors,
            env=dict(environment),
            limit=LINE_LIMIT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        assert process.stdin is not None  # noqa: S101 - asked for above
        process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), ENDING_S)
        if process.returncode is None:
            process.kill()
            await process.wait()


async def start_module(
    stack: AsyncExitStack, program: str, module: Sequence[str], environment: Mapping[str, str], log: Path
) -> str:
    """Start a Python module for as long as the stack is open; return the `url` that it prints as JSON when ready.

    Raises BenchFailureError.
    """
    process = await stack.enter_async_context(running(program, (sys.executable, "-P", "-m", *module), environment, log))
    assert process.stdout is not None  # noqa: S101 - asked for by running()
    try:
        line = await asyncio.wait_for(process.stdout.readline(), READY_S)
        return str(json.loads(line)["url"])
    except (TimeoutError, ValueError, TypeError, KeyError):
        raise failure_of(f"{program} did not come up", log) from None


def failure_of(program: str, log: Path, remedy: str | None = None) -> BenchFailureError:
    """The failure of a program, with the end of the file `log` that it wrote."""
    try:
        tail = log.read_bytes()[-TAIL:].decode("utf-8", "replace").strip()
    except OSError:
        tail = ""
    return BenchFailureError(f"{program}: {tail}" if tail else program, remedy=remedy)


def free_port() -> int:
    """A port of the loopback interface that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
