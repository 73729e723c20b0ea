"""The faces of plugins beside what the programs themselves told one: recordings of real releases, marks alone."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from signet_conformance.targets.program import program_names
from tests.support.command_line import Invoke, invoke

__all__ = ["invoke"]
RECORDINGS = Path(__file__).parents[1] / "evidence" / "faces"
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not on PATH")


@needs_node
@pytest.mark.parametrize("file", sorted(RECORDINGS.glob("*.gz")), ids=lambda file: file.name.partition(".jsonl")[0])
def test_a_played_host_tells_plugins_what_the_program_does(file: Path, invoke: Invoke) -> None:
    """Each release that a face plays: the same events, in the same order, with the same members."""
    name = next(name for name in program_names() if file.name.startswith(f"{name}-"))
    done = invoke("face", "check", name, str(file))
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "no drift"), done.stdout


@needs_node
def test_what_a_program_does_otherwise_is_drift_and_updates_a_face(invoke: Invoke, tmp_path: Path) -> None:
    """A member more, and an event that nobody knew: told, and written down by the update; the order is left."""
    lines = gzip.decompress((RECORDINGS / "pi-0.73.1-away-at-start.jsonl.gz").read_bytes()).decode()
    lines = lines.replace('"reason"]', '"reason","why"]').replace('"resources_discover"', '"woken"')
    (tmp_path / "run.jsonl").write_text(lines.replace('"turn_end"', '"turn_begins"', 1))
    drifted = invoke("face", "check", "pi", "run.jsonl")
    told = " ".join(drifted.stdout.split())
    assert drifted.exit_code == 1
    assert "members of session_start: face: never sent; program: why" in told
    assert "woken: face: not fired" in told
    assert "events after context: face: turn_end; program: nothing" in told
    made = invoke("face", "update", "pi", "run.jsonl", "--output", "face.json")
    assert "to change by hand: events after context" in " ".join(made.stdout.split())
    face = json.loads((tmp_path / "face.json").read_text())
    assert face["events"]["session_start"] == ["reason", "previousSessionFile", "why"]
    assert {"woken", "turn_begins", "message_start"} <= set(face["unplayed"])
