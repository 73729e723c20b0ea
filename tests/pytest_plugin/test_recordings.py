"""The recordings of a run in their order: what is shown as evidence is taken from the first."""

from __future__ import annotations

from pathlib import Path

import pytest

from signet_conformance.pytest_plugin.recordings import Recordings
from signet_conformance.running.request import Request

from . import recordings


@pytest.fixture
def driven(tmp_path: Path) -> Recordings:
    """What a driven run left: scripted scenarios, and recordings that confirm what generated sessions showed."""
    for name in ("SIG-AGENT-002", "tools", "SIG-DAEMON-001", "plain"):
        recordings.write(tmp_path / f"{name}.jsonl", recordings.CONFORMING)
    return Recordings(Request(None, "embedded", (), tmp_path, report=False, strict=False))


def test_scripted_scenarios_come_before_generated_ones(driven: Recordings) -> None:
    """A scripted scenario shows a breach at a glance; what a generated session confirmed stands behind them all."""
    names = [Path(str(one.path)).stem for one in driven.traces()]
    assert names == ["plain", "tools", "SIG-AGENT-002", "SIG-DAEMON-001"]
    assert driven.hold_anything()


def test_recordings_without_a_request_hold_nothing(tmp_path: Path) -> None:
    """Neither does a folder without any."""
    recordings.write(tmp_path / "silent.jsonl", ())
    found = Recordings(Request(None, "embedded", (), tmp_path, report=False, strict=False))
    assert len(found.traces()) == 1
    assert not found.hold_anything()
