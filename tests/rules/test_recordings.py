"""Recordings of real connectors: every verdict as people judged it, every breach at a place they named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from signet_conformance.engine import judge
from signet_conformance.trace import read
from tests.support.evidence import EXPECTED, recordings

DISPUTED = Path(__file__).parents[2] / "docs" / "disputed-verdicts.md"
NOT_SCORED = {
    *("SIG-HTTP-013", "SIG-HTTP-014", "SIG-HTTP-015", "SIG-PROMPT-011"),
    *("SIG-LOAD-001", "SIG-LOAD-002", "SIG-LOAD-003", "SIG-LOAD-004", "SIG-LOAD-005"),
    "SIG-SESS-005",
}
"""Added to the catalogue after the recordings were judged."""


def disputed(recording: str) -> dict[str, str]:
    """The verdicts of a recording that changed since people judged it, by the table that gives the reasons."""
    rows = (re.findall(r"`([^`]+)`", line) for line in DISPUTED.read_text("utf-8").splitlines() if line[:3] == "| `")
    return {requirement: verdict for name, requirement, _, verdict in rows if name == recording}


@pytest.mark.parametrize("recording", [pytest.param(file, id=file.stem) for file in recordings()])
def test_a_recording_is_judged_as_people_did(recording: Path) -> None:
    """Each requirement has exactly the expected verdict, and a breach overlaps with the expected exchanges."""
    expected = json.loads((EXPECTED / f"{recording.stem}.json").read_text("utf-8"))["verdicts"]
    for name, verdict in disputed(recording.stem).items():
        assert expected[name]["verdict"] != verdict, f"{name} is disputed, and nothing differs"
        expected[name] = {**expected[name], "verdict": verdict}
    judgements = judge(read(recording)).judgements
    later = judgements.keys() - expected.keys() - NOT_SCORED
    assert not later, f"nobody judged the recordings by {', '.join(later)}: add it to NOT_SCORED of {__file__}"
    assert {name: j.verdict.value for name, j in judgements.items() if name not in NOT_SCORED} == {
        name: row["verdict"] for name, row in expected.items()
    }
    for name, row in expected.items():
        if row["verdict"] in ("FAIL", "WARN"):
            named = {number for finding in judgements[name].findings for number in finding.exchanges}
            assert named & set(row["seqs"]), f"{name} names {sorted(named)}, expected one of {row['seqs']}"
