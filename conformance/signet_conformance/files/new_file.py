"""New files: written whole, in the place of nothing."""

from __future__ import annotations

import contextlib
from pathlib import Path


def create_file(path: Path, text: str) -> None:
    """Write a file that is not there yet; raise OSError when it is, or when it cannot be written whole.

    What was begun is taken away again: half a file would stand in the way of the next try.
    """
    stream = path.open("x", encoding="utf-8")
    try:
        with stream:
            stream.write(text)
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise
