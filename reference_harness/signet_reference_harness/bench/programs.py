"""Prepare the database and start the programs of a run: the daemon, and the recorder before it. All end with us."""

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
BESIDE: Final = ("", "-wal")
"""Endings of the files that make up an SQLite database."""


@dataclass(frozen=True, slots=True)
class DatabaseFolder:
    """The folder of one database: the daemon's workspace, its home and its temporary files."""

    folder: Path

    @property
    def workspace(self) -> Path:
        """The folder that SIGNET_PATH names to the daemon."""
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
        with os_errors(self.folder, "make room, or name another --out", BenchFailureError):
            if self.folder.exists():
                # The remains of a killed attempt.
                shutil.rmtree(self.folder)
            for name in ("workspace", "home", "tmp"):
                (self.folder / name).mkdir(parents=True)
            if begin_with is not None:
                begin_with.copy_to(self.workspace / where)

    def holds(self, path: Path) -> bool:
        """Whether a path leads into this folder."""
        return path.resolve().is_relative_to(self.folder.resolve())

    def remove(self) -> None:
        """Take the folder away."""
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Database:
    """An SQLite database of which a run begins with a copy. SQLite itself does not open it, since that might write."""

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


READY_S: Final = 60.0
GRACE_S: Final = 5.0
"""How long a program may take to end after it was asked to."""
ENDING_S: Final = 10.0
LINE_LIMIT: Final = 1024 * 1024
TAIL: Final = 1_000
"""Bytes of what a program said on standard error that a failure quotes."""


@contextlib.asynccontextmanager
async def running(
    what: str, command: Sequence[str], environment: Mapping[str, str], said: Path
) -> AsyncIterator[Process]:
    """The program while it runs; its standard error goes to the file `said`. Raises BenchFailureError."""
    with os_errors(f"{what} cannot be started", kind=BenchFailureError), said.open("ab") as errors:
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


async def address_of(
    stack: AsyncExitStack, what: str, module: Sequence[str], environment: Mapping[str, str], said: Path
) -> str:
    """Start a Python module for as long as the stack is open; return the `url` that it prints as JSON when ready.

    Raises BenchFailureError.
    """
    process = await stack.enter_async_context(running(what, (sys.executable, "-P", "-m", *module), environment, said))
    assert process.stdout is not None  # noqa: S101 - asked for by running()
    try:
        line = await asyncio.wait_for(process.stdout.readline(), READY_S)
        return str(json.loads(line)["url"])
    except (TimeoutError, ValueError, TypeError, KeyError):
        raise failed(f"{what} did not come up", said) from None


def failed(what: str, said: Path, remedy: str | None = None) -> BenchFailureError:
    """The failure of a program, with the last words that it wrote to the file `said`."""
    try:
        tail = said.read_bytes()[-TAIL:].decode("utf-8", "replace").strip()
    except OSError:
        tail = ""
    return BenchFailureError(f"{what}: {tail}" if tail else what, remedy=remedy)


def free_port() -> int:
    """A port of the loopback interface that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
