"""Fixtures of the diff's tests: a comparison of exchanges given as lines."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from .recordings import Compare, compared


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    """Compare two lists of exchanges."""
    return partial(compared, tmp_path)
