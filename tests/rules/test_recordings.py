"""Recordings of real connectors: every verdict as people judged it, every breach at a place they named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from signet_conformance.engine import judge
from signet_conformance.trace import read
from tests.support.evidence import EXPECTED, recordings

NOT_SCORED = {"SIG-HTTP-013"}
"""Added to the catalogue after the recordings were judged."""


@pytest.mark.parametrize("recording", [pytest.param(file, id=file.stem) for file in recordings()])
def test_a_recording_is_judged_as_people_did(recording: Path) -> None:
    """Each requirement has exactly the expected verdict, and a breach overlaps with the expected exchanges."""
    expected = json.loads((EXPECTED / f"{recording.stem}.json").read_text("utf-8"))["verdicts"]
    judgements = judge(read(recording)).judgements
    assert {name: j.verdict.value for name, j in judgements.items() if name not in NOT_SCORED} == {
        name: row["verdict"] for name, row in expected.items()
    }
    for name, row in expected.items():
        if row["verdict"] in ("FAIL", "WARN"):
            named = {number for finding in judgements[name].findings for number in finding.exchanges}
            assert named & set(row["seqs"]), f"{name} names {sorted(named)}, expected one of {row['seqs']}"
