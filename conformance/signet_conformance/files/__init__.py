"""Files of users: read within size limits, written atomically."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from signet_conformance.errors import SignetConformanceError, UsageError, printable


def private_opener(path: str, flags: int) -> int:
    """An opener for `open` that creates files which only their owner can read."""
    return os.open(path, flags, 0o600)


def create_file(path: Path, parts: Iterable[bytes], opener: Callable[[str, int], int] | None = None) -> None:
    """Write a new file; raise OSError if it exists, or if it cannot be written completely.

    A partly written file is removed: it would block the next attempt.
    """
    with open(path, "xb", opener=opener) as stream:
        try:
            stream.writelines(parts)
            stream.flush()
        except BaseException:
            with contextlib.suppress(OSError):
                path.unlink()
            raise


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Write or replace a file that only its owner reads; raise OSError when it cannot be written.

    A stopped writer leaves PATH.part, which the next one overwrites.
    """
    draft = path.with_name(f"{path.name}.part")
    with open(draft, "wb", opener=private_opener) as stream:
        stream.writelines(parts)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(path)


MOST_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
_OPENED = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
"""Paths of files that a shell has opened for us. Such a pipe, as `<(zcat FILE)`, already has its writer."""


def read_json(
    path: str | Path,
    remedy: str,
    *,
    where: str | None = None,
    most_bytes: int = MOST_BYTES,
    error: type[SignetConformanceError] = UsageError,
) -> Any:
    """The value in a JSON file of at most `most_bytes` bytes.

    Raises `error` with the `remedy` when the file cannot be read, is larger, or is not JSON; `where` names the file
    in it, and is its path unless given.
    """
    from pydantic_core import from_json

    where = where or str(path)
    try:
        raw = _read(Path(path), most_bytes)
    except (OSError, ValueError) as failure:
        reason = printable(getattr(failure, "strerror", None) or failure)
        raise error(f"cannot be read: {reason}", where=where, remedy=remedy) from None
    if raw is None:
        raise error(f"is larger than {most_bytes >> 20} MiB", where=where, remedy=remedy)
    with contextlib.suppress(ValueError):
        return from_json(raw)
    try:
        # Slower, but it also reads half a surrogate pair, which some programs write.
        return json.loads(raw)
    except (ValueError, RecursionError) as failure:
        several = isinstance(failure, json.JSONDecodeError) and failure.msg == "Extra data" and failure.lineno > 1
        problem = "holds several JSON values, one on each line, as a recording does" if several else "is not JSON"
        raise error(f"{problem}: {printable(failure, 160)}", where=where, remedy=remedy) from None


def parse_file(path: Path, most_bytes: int = MOST_BYTES) -> Any:
    """The value in a TOML or JSON file. Raises OSError, ValueError or RecursionError where it cannot be read."""
    import tomllib

    raw = _read(path, most_bytes)
    if raw is None:
        raise ValueError(f"is larger than {most_bytes} bytes")
    return tomllib.loads(raw.decode()) if path.suffix == ".toml" else json.loads(raw)


def _read(path: Path, most_bytes: int) -> bytearray | None:
    """The content of a file, or None if it is larger than the limit.

    Raises OSError and ValueError as opening does, and ValueError for a named pipe or a device, which may never end.
    """
    if is_special(str(path)):
        kind = "named pipe" if path.is_fifo() else "device"
        raise ValueError(f"it is a {kind}, and reading it might never end")
    if path.stat().st_size > most_bytes:
        return None
    raw = bytearray()
    # A pipe that a shell opened has no size beforehand.
    with path.open("rb") as stream:
        while len(raw) <= most_bytes and (chunk := stream.read(_CHUNK_BYTES)):
            raw += chunk
    return raw if len(raw) <= most_bytes else None


def real_path(path: str | Path) -> Path:
    """A path without symbolic links. One that leads to itself stays; `Path.resolve` raises RuntimeError for it."""
    return Path(os.path.realpath(path))


def is_special(path: str) -> bool:
    """Whether a path names a pipe, a device or a socket that no shell opened for us: reading one may wait for ever."""
    if path.startswith(_OPENED):
        return False
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def shown_path(path: str | Path) -> str:
    """A path for a message: relative to the current folder if it is below it."""
    file, here = Path(os.path.normpath(path)), Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)
