"""Defects that no single session shows are found by the default number of generated sessions, and shrunk."""

from __future__ import annotations

from pathlib import Path

from signet_conformance.finding import Verdict
from signet_conformance.running.request import DEFAULT_SEED, DEFAULT_SESSIONS

from .live import broken_target, generate, steps_of

DEFECTS = {
    "SIG-AGENT-001": "last_started_agent",
    "SIG-HTTP-005": "legacy_after_clear",
    "SIG-CMP-002": "empty_repeat",
}


def test_seeded_defects_are_found_and_shrunk(tmp_path: Path) -> None:
    """An interleaving, a resume after a clear and a fault inside a compaction are each shown by six steps or fewer."""
    broken, only = broken_target(*DEFECTS.values()), frozenset(DEFECTS)
    summary = generate(tmp_path, broken, DEFAULT_SESSIONS, seed=DEFAULT_SEED, only=only)
    failed = {breach.requirement: breach for breach in summary.breaches if breach.verdict is Verdict.FAIL}
    assert failed.keys() >= DEFECTS.keys()
    for requirement in DEFECTS:
        breach = failed[requirement]
        assert breach.confirmed
        assert breach.steps == len(steps_of(breach)) <= 6, steps_of(breach)
    kinds = {requirement: [step["step"] for step in steps_of(failed[requirement])] for requirement in DEFECTS}
    assert kinds["SIG-AGENT-001"].count("start") == 2
    assert kinds["SIG-HTTP-005"] == ["start", "clear", "end", "resume", "end"]
    assert "fault" in kinds["SIG-CMP-002"]
