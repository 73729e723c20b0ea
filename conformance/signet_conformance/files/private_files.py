"""Files that nobody but their owner may read: what holds bodies is as private as the recording that they are from."""

from __future__ import annotations

import os


def private_opener(path: str, flags: int) -> int:
    """An opener for `open`, for a file that is made anew."""
    return os.open(path, flags, 0o600)
