"""Files that are written whole or not at all, and files that only their owner may read."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path


def private_opener(path: str, flags: int) -> int:
    """An opener for `open`, for a file that is made anew."""
    return os.open(path, flags, 0o600)


def create_file(path: Path, text: str) -> None:
    """Write a file that is not there yet; raise OSError when it is, or when it cannot be written whole.

    A file that was begun is removed: half a file would block the next attempt.
    """
    stream = path.open("x", encoding="utf-8")
    try:
        with stream:
            stream.write(text)
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
