"""Facts about the run of a lane as a child."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from signet_conformance.github_action.inputs import read_inputs
from signet_conformance.github_action.performing import CANCELLED, perform


@pytest.mark.parametrize(("name", "status"), [("SIGKILL", 4), ("SIGTERM", CANCELLED)])
def test_a_run_that_was_killed_was_not_cancelled(tmp_path: Path, name: str, status: int) -> None:
    """A signal that no CI system cancels with is a failure, and the complaint names it."""
    (tmp_path / "conftest.py").write_text(f"import os, signal\nos.kill(os.getpid(), signal.{name})\n")
    performed = perform(read_inputs({"SIGNET_LANE_TARGET": "reference"}, tmp_path), os.environ)
    assert (performed.unreported, name in performed.complaint) == (status, name == "SIGKILL")
