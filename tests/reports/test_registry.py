"""Facts about every format of a run's report: what the registry lists has to pass them, and nobody names it here."""

from __future__ import annotations

import io
import json
import re
import stat
import sys
from html import unescape
from pathlib import Path
from typing import cast

import pytest

from signet_conformance.engine import JudgedTrace, judge
from signet_conformance.finding import Finding, Judgement, Reason, Verdict
from signet_conformance.outcome.several_traces import essence
from signet_conformance.reports import FORMATS, Format, write_reports
from signet_conformance.reports.cause_text import MAX_PROBLEMS
from signet_conformance.trace import read
from tests.rules.model_requests import example
from tests.support.case_traces import build
from tests.support.command_line import Invoke
from tests.support.every_format import asking_for
from tests.support.known_failures import LATER, entries, listed
from tests.support.run_endings import ending_of
from tests.support.trace_files import BREACHING, CONFORMING, HEADER, end, health, post, start, write

ROOT = Path(__file__).resolve().parents[2]
AGENT = "SIG-AGENT-002"
every_format = pytest.mark.parametrize("kind", FORMATS.values(), ids=FORMATS)


@every_format
def test_a_breach_stands_in_every_format(invoke: Invoke, tmp_path: Path, kind: Format) -> None:
    """A report names the requirement, the recording, what is wrong, and the command that explains it."""
    trace = write(tmp_path / "a.jsonl", BREACHING)
    assert invoke("check", trace, *asking_for(kind, "out")).exit_code == 1
    text = unescape((tmp_path / "out").read_text(encoding="utf-8"))
    for piece in (AGENT, "a.jsonl", "runs as 'default'", f"signet-conformance explain {AGENT}"):
        assert piece in text


@every_format
def test_a_known_failure_is_known_in_every_format(invoke: Invoke, tmp_path: Path, kind: Format) -> None:
    """A report says who lets a failure stand, until when and why, and its exit status is that of the run."""
    trace = write(tmp_path / "a.jsonl", BREACHING, {**HEADER, "target": "openclaw"})
    known = listed(tmp_path / "known.json", entries("SIG-AGENT-001", AGENT))
    words = asking_for(kind, "out")
    assert invoke("check", trace, "--baseline", known, *words).exit_code == 0
    text = " ".join(unescape((tmp_path / "out").read_text(encoding="utf-8")).split())
    assert f"ada, until {LATER.isoformat()}: next release" in text
    assert any(said in text for said in ("(exit 0)", '"exit":0', '"exitCode":0'))


@every_format
def test_every_format_tells_what_fails_a_run_beside_its_verdicts(invoke: Invoke, tmp_path: Path, kind: Format) -> None:
    """A stale entry and coverage below its bound stand in the report, each with what to do about it."""
    trace = write(tmp_path / "a.jsonl", CONFORMING, {**HEADER, "target": "openclaw"})
    known = listed(tmp_path / "known.json", entries("SIG-AGENT-001"))
    words = ["--baseline", known, "--coverage-fail-under", "99", *asking_for(kind, "out")]
    assert invoke("check", trace, *words).exit_code == 1
    text = " ".join(unescape((tmp_path / "out").read_text(encoding="utf-8")).split())
    assert "remove the entry" in text
    assert "coverage is below 99 %" in text


@every_format
@pytest.mark.parametrize("number", [8, 9])
def test_every_format_says_why_nothing_was_tested(invoke: Invoke, tmp_path: Path, kind: Format, number: int) -> None:
    """Asked about the model alone, without its recording or a subject in it, a report gives the screen's reason."""
    build(tmp_path / "a.jsonl", [item for item in example(1) if number == 9 or "side" not in item])
    words = ["check", tmp_path / "a.jsonl", "-k", f"SIG-MODEL-{number:03d}"]
    (reason,) = re.findall("^nothing was tested in 1 trace: (.+) [(]exit 3[)]$", invoke(*words).stdout, re.MULTILINE)
    assert invoke(*words, *asking_for(kind, "out")).exit_code == 3
    assert reason in unescape((tmp_path / "out").read_text(encoding="utf-8"))


@every_format
def test_a_format_keeps_no_recording(tmp_path: Path, kind: Format) -> None:
    """What a report has taken in is let go: a run of any number of recordings is judged in bounded memory."""
    judged = judge(read(write(tmp_path / "a.jsonl", BREACHING)))
    report = kind.open(io.StringIO())
    held = [sys.getrefcount(thing) for thing in (judged, judged.trace, *judged.trace.exchanges)]
    report.add(judged, {AGENT: "known"})
    assert [sys.getrefcount(thing) for thing in (judged, judged.trace, *judged.trace.exchanges)] == held


def breach_agent(judged: JudgedTrace, findings: tuple[Finding, ...]) -> None:
    """Have these findings in the place of what was judged."""
    # Only readers of the mapping are promised that it stays as it is.
    judgements = cast("dict[str, Judgement]", judged.judgements)
    judgements[AGENT] = Judgement(AGENT, Verdict.FAIL, Reason.BREACH, "z", findings)


@every_format
def test_a_format_is_bounded(tmp_path: Path, kind: Format) -> None:
    """However long what a recording says is, and however often one requirement is breached, a report stays small."""
    lines = [health(), *(post("/api/hooks/session-end", {"note": "x" * 100_000}) for _ in range(60))]
    judged = judge(read(write(tmp_path / "a.jsonl", lines)))
    findings = tuple(
        Finding(Verdict.FAIL, (2,), f"kind {number}", "/request/body/json/note", "short", "y" * 100_000)
        for number in range(100)
    )
    breach_agent(judged, findings)
    stream = io.StringIO()
    report = kind.open(stream)
    for _ in range(3):
        report.add(judged, {})
    report.close(ending_of([essence(judged)], 1))
    assert len(stream.getvalue()) < 3_000_000


@pytest.mark.parametrize("name", ["html", "junit", "markdown"])
def test_one_more_kind_is_no_plural(tmp_path: Path, name: str) -> None:
    """Kinds beyond those that are shown are counted in words."""
    judged = judge(read(write(tmp_path / "a.jsonl", BREACHING)))
    findings = tuple(Finding(Verdict.FAIL, (2,), f"kind {'abcdefgh'[n]}") for n in range(MAX_PROBLEMS + 1))
    breach_agent(judged, findings)
    stream = io.StringIO()
    report = FORMATS[name].open(stream)
    report.add(judged, {})
    report.close(ending_of([essence(judged)], 1))
    assert "1 other kind, 1 finding: --json lists them" in stream.getvalue()


@pytest.mark.parametrize("name", ["html", "junit", "markdown"])
def test_a_must_that_warns_says_why_in_each_report(tmp_path: Path, name: str) -> None:
    """A reader of a WARN beside MUST sees which part of the requirement only warns."""
    judged = judge(read(write(tmp_path / "a.jsonl", [health(), post("/api/strange", {}), start(), end()])))
    stream = io.StringIO()
    report = FORMATS[name].open(stream)
    report.add(judged, {})
    report.close(ending_of([essence(judged)], 0))
    assert "a MUST, but its entry says: WARN for a path outside the contract" in stream.getvalue()


@every_format
def test_a_report_of_a_run_without_a_recording_is_whole(kind: Format) -> None:
    """A run in which nothing was recorded has a report in every format, and it says so."""
    stream = io.StringIO()
    kind.open(stream).close(ending_of([], 3, remarks=["no recording could be read"]))
    assert "no recording could be read" in stream.getvalue()
    if kind.suffix == ".json":
        json.loads(stream.getvalue())


@every_format
def test_a_format_has_an_option_and_a_file(invoke: Invoke, tmp_path: Path, kind: Format) -> None:
    """`check` names its option, the documentation its option and its file; a private file is its owner's alone."""
    assert f"--{kind.name}" in invoke("check", "--help").output
    documented = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")
    assert f"--{kind.name}" in documented
    assert f"`{kind.file}`" in documented
    invoke("check", write(tmp_path / "a.jsonl", BREACHING), *asking_for(kind, "out"))
    mode = stat.S_IMODE((tmp_path / "out").stat().st_mode)
    assert not kind.private or not mode & 0o077


def test_no_two_formats_share_a_name_or_a_file() -> None:
    """Each line of the registry has a name and a suffix of its own."""
    assert len({kind.suffix for kind in FORMATS.values()}) == len(FORMATS)
    assert all(name == kind.name for name, kind in FORMATS.items())


@every_format
def test_reports_that_cannot_be_written_leave_nothing(tmp_path: Path, kind: Format) -> None:
    """Where one fails, none gets its name, and no begun one keeps room on a full disk."""
    in_the_way = tmp_path / f"{kind.file}.part"
    in_the_way.mkdir()
    with pytest.raises(OSError, match=kind.file):
        write_reports(tmp_path, ending_of(), lambda _: {})
    assert list(tmp_path.iterdir()) == [in_the_way]
    in_the_way.rmdir()
    write_reports(tmp_path, ending_of(), lambda _: {})
    assert {path.name for path in tmp_path.iterdir()} == {each.file for each in FORMATS.values()}
