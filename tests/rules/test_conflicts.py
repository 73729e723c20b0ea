"""Facts about sessions that another runtime path holds: what claims one, what releases it, and what a refusal is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.daemon_items import CLAIMED, LEGACY, end, hook, judged, prompt, start

PRE = hook("pre-compaction", {"summaryPrompt": "x", "guidelines": ""})


@pytest.mark.parametrize(("between", "expected"), [(PRE, "FAIL"), (prompt(), "FAIL"), (end(), "PASS")])
def test_what_releases_a_session_before_0_109(between: dict[str, object], expected: str, tmp_path: Path) -> None:
    """An end does, and no other hook."""
    outcome = judged(tmp_path, [start(), between, prompt(**LEGACY)], daemon_version="0.58.1")
    assert outcome.judgements["SIG-HTTP-007"].verdict == expected


@pytest.mark.parametrize(
    ("status", "expected"), [(409, "WARN"), (400, "NOT-APPLICABLE"), (429, "NOT-APPLICABLE"), (503, "NOT-APPLICABLE")]
)
def test_only_409_tells_that_a_session_is_held(status: int, expected: str, tmp_path: Path) -> None:
    """A start that was refused for another reason may be followed by what comes next."""
    outcome = judged(tmp_path, [start(CLAIMED, status), prompt()])
    assert outcome.judgements["SIG-HTTP-012"].verdict == expected
