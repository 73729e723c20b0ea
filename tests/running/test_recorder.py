"""The recorder of a run as its client sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from signet_conformance.errors import NothingTestedError
from signet_conformance.running.recorder import RecorderClient
from signet_conformance.running.stopwatch import Stopwatch


def test_recorder_that_nobody_can_reach_tests_nothing(tmp_path: Path) -> None:
    """A machine without loopback is told as that: the connector, whose calls are all lost, is not to blame."""
    recorder = RecorderClient("http://127.0.0.1:9", tmp_path, {}, Stopwatch())
    try:
        recorder.demand_reachable()
    finally:
        recorder.close()
    with pytest.raises(NothingTestedError, match="cannot be reached") as caught:
        recorder.demand_reachable()
    assert "loopback" in str(caught.value.remedy)
