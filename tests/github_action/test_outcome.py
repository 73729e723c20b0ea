"""Facts about what a lane makes of a report."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.errors import KitError
from signet_conformance.github_action.outcome import MAX_ANNOTATIONS, Outcome, read_outcome, remarks
from signet_conformance.outcome.baseline import Known
from signet_conformance.outcome.baseline_documents import Entry

TODAY = date(2026, 5, 4)
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


def read(path: Path, *files: Known) -> Outcome:
    """The outcome of a report for the target `mine`."""
    return read_outcome(path, "mine", files, TODAY)


def test_the_status_is_that_of_the_report(tmp_path: Path) -> None:
    """Without known failures nothing is judged anew."""
    outcome = read(report(tmp_path, 1, SIG_HTTP_001="FAIL", SIG_HTTP_002="PASS"))
    assert outcome.status == 1
    assert outcome.counts() == {
        "ERROR": 0, "FAIL": 1, "WARN": 0, "PASS": 1, "INCONCLUSIVE": 0, "NOT-APPLICABLE": 0,
    }  # fmt: skip


def test_a_known_failure_is_no_error(tmp_path: Path) -> None:
    """An entry in force takes the annotation away; another requirement keeps its own."""
    outcome = read(report(tmp_path, 1, SIG_HTTP_001="FAIL", SIG_HTTP_002="FAIL"), known("SIG-HTTP-001"))
    assert [one.title for one in remarks(outcome, tmp_path)] == ["FAIL SIG-HTTP-002"]


@pytest.mark.parametrize(
    ("verdict", "expires", "word"), [("PASS", date(2026, 6, 1), "stale"), ("FAIL", date(2026, 5, 3), "expired")]
)
def test_an_entry_that_must_go_is_an_error(tmp_path: Path, verdict: str, expires: date, word: str) -> None:
    """A stale and an expired entry are annotated in the file that holds them."""
    outcome = read(report(tmp_path, 1, SIG_HTTP_001=verdict), known("SIG-HTTP-001", expires))
    shown = [one.message for one in remarks(outcome, tmp_path) if one.file == "known.json"]
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
