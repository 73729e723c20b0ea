"""Recordings of real connectors: every verdict as people judged it, every breach at a place they named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from signet_conformance.engine import judge
from signet_conformance.finding import BREACHES
from signet_conformance.trace import read
from tests.support.evidence import EXPECTED, recordings

DISPUTED = Path(__file__).parents[2] / "ci" / "tools" / "disputed-verdicts.md"
NOT_SCORED = {
    *("SIG-HTTP-013", "SIG-HTTP-014", "SIG-HTTP-015", "SIG-PROMPT-011"),
    *("SIG-LOAD-001", "SIG-LOAD-002", "SIG-LOAD-003", "SIG-LOAD-005"),
    "SIG-SESS-005",
    "SIG-MEM-006",
    "SIG-REC-005",
    "SIG-PROMPT-012",
    "SIG-PROMPT-013",
    "SIG-SEC-004",
    "SIG-AGENT-007",
    "SIG-END-013",
    "SIG-CMP-009",
}
"""Added to the catalogue after the recordings were judged."""


def disputed(recording: str) -> dict[str, str]:
    """The verdicts of a recording that changed since people judged it, by the table that gives the reasons."""
    rows = (re.findall(r"`([^`]+)`", line) for line in DISPUTED.read_text("utf-8").splitlines() if line[:3] == "| `")
    return {requirement: verdict for name, requirement, _, verdict in rows if name == recording}


@pytest.mark.parametrize("recording", [pytest.param(file, id=file.stem) for file in recordings()])
def test_a_recording_is_judged_as_people_did(recording: Path) -> None:
    """Each requirement has exactly the expected verdict, and a breach overlaps with the expected exchanges.

    One that came after the recordings were judged breaches none of them.
    """
    expected = json.loads((EXPECTED / f"{recording.stem}.json").read_text("utf-8"))["verdicts"]
    for name, verdict in disputed(recording.stem).items():
        assert expected.get(name, {}).get("verdict") != verdict, f"{name} is disputed, and nothing differs"
        expected[name] = {**expected.get(name, {}), "verdict": verdict}
    judgements = judge(read(recording)).judgements
    assert {name: judgements[name].verdict.value for name in expected} == {
        name: row["verdict"] for name, row in expected.items()
    }
    for name, row in expected.items():
        if row["verdict"] in ("FAIL", "WARN") and "seqs" in row:
            named = {number for finding in judgements[name].findings for number in finding.exchanges}
            assert named & set(row["seqs"]), f"{name} names {sorted(named)}, expected one of {row['seqs']}"
    for name in judgements.keys() - expected.keys():
        assert judgements[name].verdict not in BREACHES, (
            f"{name} came after the recordings were judged, and breaches {recording.name}: if that is right, "
            f"add its row to ci/tools/{DISPUTED.name}"
        )
