"""What tests of several rules share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signet_conformance.facts import Recording
from tests.support.case_traces import build


@pytest.fixture
def recorded(tmp_path: Path) -> Any:
    """Makes a recording of some items, numbered from 1."""
    return lambda *items: Recording(build(tmp_path / "trace.jsonl", items, shared=False))
