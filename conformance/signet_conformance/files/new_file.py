"""New files: written whole, never over an existing file."""

from __future__ import annotations

import contextlib
from pathlib import Path


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
