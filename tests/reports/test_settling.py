"""Facts about what would settle a requirement that stays open."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from signet_conformance.engine import judge
from signet_conformance.reports.settling import settled_by
from signet_conformance.trace import read
from tests.support.trace_files import CONFORMING, post, write


def test_nobody_is_told_to_drive_what_was_driven(tmp_path: Path) -> None:
    """Where step marks are there and a prompt has no text, the request is to be mended."""
    wordless = post("/api/hooks/user-prompt-submit", {"harness": "openclaw", "sessionKey": "s-41c7"})
    mark = {"kind": "mark", "t": 0.5, "name": "step", "data": {"index": 0, "step": "prompt", "text": "Where?"}}
    for lines, words in (
        ([mark, wordless], "mend what else the request breaches"),
        ([wordless], "drive the connector"),
    ):
        judged = judge(read(write(tmp_path / "a.jsonl", lines)))
        assert settled_by(judged, judged.judgements["SIG-PROMPT-010"]).startswith(words)


def test_a_run_that_lacks_scenarios_is_to_be_completed(tmp_path: Path) -> None:
    """Whoever ran the kit already is not told to run it."""
    judged = judge(read(write(tmp_path / "a.jsonl", CONFORMING)))
    coverage = judged.judgements["SIG-COV-001"]
    assert settled_by(judged, coverage).endswith("judge a whole run of the kit")
    part = replace(judged, trace=replace(judged.trace, part=True))
    assert settled_by(part, coverage) == "let every scenario be performed to its end, without -k"
