"""The recordings of a run in their order: what is shown as evidence is taken from the first."""

from __future__ import annotations

from pathlib import Path

from signet_conformance.outcome.broken_off import Recordings
from tests.support import session_recordings


def test_scripted_scenarios_come_before_generated_ones(tmp_path: Path) -> None:
    """A scripted scenario shows a breach at a glance; what a generated session confirmed stands behind them all."""
    for name in ("SIG-AGENT-002", "tools", "SIG-DAEMON-001", "plain"):
        session_recordings.write(tmp_path / f"{name}.jsonl", session_recordings.CONFORMING)
    names = [Path(str(recording.path)).stem for recording in Recordings(tmp_path).traces()]
    assert names == ["plain", "tools", "SIG-AGENT-002", "SIG-DAEMON-001"]


def test_recordings_that_are_named_count_as_they_were_named(tmp_path: Path) -> None:
    """What else lies in a folder then says nothing."""
    session_recordings.write(tmp_path / "other.jsonl", ())
    named = [session_recordings.write(tmp_path / f"{name}.jsonl", ()) for name in ("second", "first")]
    assert [recording.path for recording in Recordings(tmp_path, named).traces()] == [str(path) for path in named]
