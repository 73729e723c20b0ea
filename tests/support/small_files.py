"""A file system on which no file grows over a size, as a full disk would have it.

Python then leaves compiled modules cut off beside their sources, and every later program that imports one fails. So
while a limit holds, in this process or in a child, none is written.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

NOTHING_COMPILED: Final = {"PYTHONDONTWRITEBYTECODE": "1"}
"""What the environment of a child holds that is limited later."""


@contextmanager
def small_files(most: int) -> Iterator[None]:
    """No file of this process can grow over `most` bytes while this lasts."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "dont_write_bytecode", True)
        for name, value in NOTHING_COMPILED.items():
            patched.setenv(name, value)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
