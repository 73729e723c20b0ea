"""Facts about what a lane makes of a report."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.baseline import Entry, Known
from signet_conformance.errors import KitError
from signet_conformance.lane.outcome import MAX_ANNOTATIONS, Outcome, keep_audit, read_outcome, remarks

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
TRACE = (
    '{"kind":"header","format":"signet-trace/1","created":"2026-05-04T12:00:00Z"}\n'
    '{"kind":"mark","seq":1,"t":0.0,"name":"step","data":{}}\n'
    '{"kind":"exchange","seq":2,"conn":null,"t0":0.1,"t1":0.2,"request":{"method":"GET","path":"/health",'
    '"query":[],"headers":[],"body":null},"response":{"status":200,"headers":[],"body":null}}\n'
)


def report(folder: Path, exit_status: int, **verdicts: str) -> Path:
    """A report with one finding a requirement, in the only exchange of the only trace."""
    (folder / "a.jsonl").write_text(TRACE)
    finding = {"file": str(folder / "a.jsonl"), "exchanges": [2], "message": "the member is absent"}
    together: dict[str, Any] = {
        name.replace("_", "-"): {"verdict": verdict, "reason": "conforms", "findings": [finding]}
        for name, verdict in verdicts.items()
    }
    path = folder / "report.json"
    path.write_text(json.dumps({"format": "signet-report/1", "together": together, "exit": exit_status}))
    return path


def known(requirement: str, expires: date = date(2026, 6, 1), *, flaky: bool = False) -> Known:
    """A file with one entry."""
    return Known("known.json", [Entry(requirement, "mine", "ada", "being mended", date(2026, 5, 1), expires)], flaky)


def read(path: Path, *files: Known, strict: bool = False) -> Outcome:
    """The outcome of a report for the target `mine`."""
    return read_outcome(path, "mine", files, NOW, strict=strict)


def test_the_status_is_that_of_the_report(tmp_path: Path) -> None:
    """Without known failures nothing is judged anew."""
    outcome = read(report(tmp_path, 1, SIG_HTTP_001="FAIL", SIG_HTTP_002="PASS"))
    assert outcome.status == 1
    assert outcome.counts() == {
        "ERROR": 0, "FAIL": 1, "WARN": 0, "PASS": 1, "INCONCLUSIVE": 0, "NOT-APPLICABLE": 0,
    }  # fmt: skip


def test_a_known_failure_passes(tmp_path: Path) -> None:
    """An entry in force lets the lane pass, and leaves an audit line in the uploaded folder."""
    outcome = read(report(tmp_path, 1, SIG_HTTP_001="FAIL"), known("SIG-HTTP-001"))
    keep_audit(outcome, tmp_path, "ada", NOW)
    line = json.loads((tmp_path / "known.json.audit.jsonl").read_text())
    assert (outcome.status, line["what"], line["requirement"], line["who"]) == (0, "override", "SIG-HTTP-001", "ada")
    assert not list(remarks(outcome, tmp_path))


def test_another_failure_still_fails(tmp_path: Path) -> None:
    """An entry covers its own requirement only."""
    path = report(tmp_path, 1, SIG_HTTP_001="FAIL", SIG_HTTP_002="FAIL")
    assert read(path, known("SIG-HTTP-001")).status == 1


def test_strict_counts_what_is_left(tmp_path: Path) -> None:
    """A WARN beside a known failure fails a strict lane only."""
    path = report(tmp_path, 1, SIG_HTTP_001="FAIL", SIG_HTTP_006="WARN")
    assert [read(path, known("SIG-HTTP-001"), strict=strict).status for strict in (False, True)] == [0, 1]


@pytest.mark.parametrize(
    ("verdict", "expires", "word"), [("PASS", date(2026, 6, 1), "stale"), ("FAIL", date(2026, 5, 3), "expired")]
)
def test_an_entry_that_must_go_fails_the_lane(tmp_path: Path, verdict: str, expires: date, word: str) -> None:
    """A stale and an expired entry are breaches of their own, and are annotated."""
    outcome = read(report(tmp_path, int(verdict == "FAIL"), SIG_HTTP_001=verdict), known("SIG-HTTP-001", expires))
    shown = [one.message for one in remarks(outcome, tmp_path)]
    assert outcome.status == 1
    assert any(f"SIG-HTTP-001 at mine is {word}" in message for message in shown)


def test_a_breach_is_annotated_at_its_line(tmp_path: Path) -> None:
    """The annotation names the trace from the workspace, and the line of the exchange."""
    outcome = read(report(tmp_path, 1, SIG_HTTP_001="FAIL"))
    place, text = "file=a.jsonl,line=3,title=FAIL SIG-HTTP-001", "the member is absent"
    shown = [one.command() for one in remarks(outcome, tmp_path)]
    assert shown == [f"::error {place}::{text} (signet-conformance explain SIG-HTTP-001)"]


def test_annotations_are_as_many_as_github_shows(tmp_path: Path) -> None:
    """What goes beyond them is counted."""
    outcome = read(report(tmp_path, 1, **{f"SIG_HTTP_{n:03}": "FAIL" for n in range(MAX_ANNOTATIONS + 3)}))
    shown = list(remarks(outcome, tmp_path))
    assert [one.level for one in shown] == ["error"] * MAX_ANNOTATIONS + ["notice"]
    assert shown[-1].message.startswith("3 more requirements")


@pytest.mark.parametrize("text", ["", "[]", '{"together":{"SIG-HTTP-001":{"verdict":"GREEN"}},"exit":0}', "{"])
def test_half_a_report_is_the_kits_failure(tmp_path: Path, text: str) -> None:
    """A report that cannot be read is no verdict."""
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(KitError, match="is no report of a run"):
        read(path)
