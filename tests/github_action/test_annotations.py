"""Facts about the annotations of a lane."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from pathlib import Path

import pytest

from signet_conformance import engine, trace
from signet_conformance.finding import Finding, Judgement, Reason, Verdict
from signet_conformance.github_action.github import MAX_ANNOTATIONS, annotations_of, count_verdicts
from signet_conformance.outcome.baseline_documents import Entry
from signet_conformance.outcome.conclusion import Conclusion, Judging, Terms
from signet_conformance.outcome.known_failures import KnownFailureFile, KnownFailures

TODAY = date(2026, 5, 4)
FIRST, SECOND = "SIG-HTTP-001", "SIG-HTTP-002"
TRACE = (
    '{"kind":"header","format":"signet-trace/1","created":"2026-05-04T12:00:00Z"}\n'
    '{"kind":"mark","seq":1,"t":0.0,"name":"step","data":{}}\n'
    '{"kind":"exchange","seq":2,"conn":null,"t0":0.1,"t1":0.2,"request":{"method":"GET","path":"/health",'
    '"query":[],"headers":[],"body":null},"response":{"status":200,"headers":[],"body":null}}\n'
)


SENT = (
    '{"kind":"mark","seq":3,"t":0.3,"name":"sent","data":{"index":0,"requests":[["GET","/health","/elsewhere/fetch.js:1",'
    '"PLACE/src/mine.ts:7:3"]]}}\n'
)


def concluded(
    folder: Path, verdicts: Iterable[tuple[str, Verdict]], *known: KnownFailureFile, lines: str = TRACE
) -> Conclusion:
    """The conclusion of a run of `mine` with these verdicts, each with a finding in the one exchange."""
    path = folder / "a.jsonl"
    path.write_text(lines)
    judgements = {
        name: Judgement(name, verdict, Reason.BREACH, "", (Finding(verdict, (2,), "the member is absent"),), 1)
        for name, verdict in verdicts
    }
    files = KnownFailures(known, None, "", "", date.max, TODAY)
    judging = Judging(Terms(known=files, target="mine"))
    judging.add(engine.JudgedTrace(trace.read(path), "0.145.7", judgements))
    return judging.conclude()


def known(requirement: str, expires: date = date(2026, 6, 1)) -> KnownFailureFile:
    """A file with one entry."""
    entry = Entry(requirement, "mine", "ada", "being mended", date(2026, 5, 1), expires)
    return KnownFailureFile("known.json", [entry])


def test_every_verdict_is_counted(tmp_path: Path) -> None:
    """All six verdicts have a count, even if it is zero."""
    assert count_verdicts(concluded(tmp_path, [(FIRST, Verdict.FAIL), (SECOND, Verdict.PASS)])) == {
        "ERROR": 0, "FAIL": 1, "WARN": 0, "PASS": 1, "INCONCLUSIVE": 0, "NOT-APPLICABLE": 0,
    }  # fmt: skip


def test_a_known_failure_is_no_error(tmp_path: Path) -> None:
    """A valid entry removes the annotation; another requirement keeps its own."""
    failing = [(FIRST, Verdict.FAIL), (SECOND, Verdict.FAIL)]
    shown = annotations_of(concluded(tmp_path, failing, known(FIRST)), tmp_path)
    assert [annotation.title for annotation in shown] == [f"FAIL {SECOND}"]


@pytest.mark.parametrize(
    ("verdict", "expires", "word"),
    [(Verdict.PASS, date(2026, 6, 1), "stale"), (Verdict.FAIL, date(2026, 5, 3), "expired")],
)
def test_an_entry_that_must_go_is_an_error(tmp_path: Path, verdict: Verdict, expires: date, word: str) -> None:
    """Stale and expired entries are annotated in their file."""
    conclusion = concluded(tmp_path, [(FIRST, verdict)], known(FIRST, expires))
    shown = [each.message for each in annotations_of(conclusion, tmp_path) if each.file == "known.json"]
    assert any(f"{FIRST} at mine is {word}" in message for message in shown)


def test_a_breach_is_annotated_at_its_line(tmp_path: Path) -> None:
    """The annotation has the path of the trace in the workspace, and the line of the exchange."""
    shown = [each.command() for each in annotations_of(concluded(tmp_path, [(FIRST, Verdict.FAIL)]), tmp_path)]
    place, text = f"file=a.jsonl,line=3,title=FAIL {FIRST}", "the member is absent"
    assert shown == [f"::error {place}::{text} (signet-conformance explain {FIRST})"]


def test_a_breach_is_annotated_at_the_connectors_line_where_that_is_known(tmp_path: Path) -> None:
    """The innermost place inside the workspace counts; places outside are ignored."""
    lines = TRACE + SENT.replace("PLACE", str(tmp_path))
    (annotation,) = annotations_of(concluded(tmp_path, [(FIRST, Verdict.FAIL)], lines=lines), tmp_path)
    assert (annotation.file, annotation.line) == ("src/mine.ts", 7)


def test_annotations_are_as_many_as_github_shows(tmp_path: Path) -> None:
    """Further ones are counted."""
    failing = [(f"SIG-HTTP-{number:03}", Verdict.FAIL) for number in range(MAX_ANNOTATIONS + 3)]
    shown = list(annotations_of(concluded(tmp_path, failing), tmp_path))
    assert [annotation.level for annotation in shown] == ["error"] * MAX_ANNOTATIONS + ["notice"]
    assert shown[-1].message.startswith("3 more causes")
