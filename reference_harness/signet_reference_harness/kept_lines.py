"""Files of JSON lines that the harness keeps: appended a line at a time, locked while a process has one open."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from signet_reference_harness.errors import ConfigError

SUFFIX: Final = ".jsonl"
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
"""Names of sessions and runs, which are names of files too."""

Scrub = Callable[[str], str]


def file_of(folder: Path, name: str, option: str) -> Path:
    """The file of a session or run. Raises ConfigError, with the option, for a name that is not valid for a file."""
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"{option} {name[:80]!r} cannot name a file",
            remedy="use letters, digits, and . _ : - after the first, 128 of them at most",
        )
    return folder / f"{name}{SUFFIX}"


def as_line(members: Mapping[str, Any], scrub: Scrub) -> bytes:
    """The line with these members; `scrub` removes from it what may not be stored."""
    text = scrub(json.dumps(members, ensure_ascii=False, separators=(",", ":")))
    return text.encode("utf-8", "backslashreplace") + b"\n"


def append(handle: int, line: bytes) -> None:
    """Write a line at the end of an open file. Raises OSError."""
    rest = memoryview(line)
    while rest:
        rest = rest[os.write(handle, rest) :]


def whole_lines(path: Path) -> list[bytes]:
    """The lines of a file, without a last one that a crash has cut off. Raises OSError."""
    return [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def lock(handle: int) -> bool:
    """Lock an open file for this process alone; return False if another process has locked it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def put_in_place(path: Path, lines: Iterable[bytes], *, new: bool = False) -> int:
    """Replace the file at `path` by one of these lines, locked, and return its handle. Raises OSError.

    A process that has the old file open then writes to a nameless one. With `new`, an old one must not exist. A crash
    leaves the old file, or none, and perhaps a part of the new one, which the next call overwrites.
    """
    part = path.with_name(f".{path.name}.part")
    handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if not lock(handle) or os.fstat(handle).st_ino != part.stat().st_ino:
            raise BlockingIOError(errno.EWOULDBLOCK, "another process writes it")
        os.ftruncate(handle, 0)
        append(handle, b"".join(lines))
        if new:
            os.link(part, path)
            part.unlink()
        else:
            part.replace(path)
    except BaseException:
        os.close(handle)
        raise
    return handle


class HeldFile:
    """A file that this process has open, and other processes may replace or remove meanwhile. Close it."""

    def __init__(self, path: Path, handle: int, scrub: Scrub = str) -> None:
        self.path = path
        self._handle, self._scrub = handle, scrub

    @property
    def is_held(self) -> bool:
        """Whether the file at the path is still the one that is open."""
        try:
            return os.fstat(self._handle).st_ino == self.path.stat().st_ino
        except OSError:
            return False

    def append(self, members: Mapping[str, Any]) -> None:
        """Write a line. Raises OSError."""
        append(self._handle, as_line(members, self._scrub))

    def remove(self) -> None:
        """Remove the file, unless another has taken its place."""
        with suppress(OSError):
            if self.is_held:
                self.path.unlink()

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)


def now() -> str:
    """The current time, in UTC, as written in files."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
