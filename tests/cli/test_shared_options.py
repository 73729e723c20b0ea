"""Known failures: a baseline lets them pass, keeps an audit, and fails the run once an entry is stale or expired."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from click.testing import Result

from signet_conformance.finding import Verdict
from signet_conformance.outcome.baseline_documents import Entry
from signet_conformance.outcome.known_failures import KnownFailureFile, KnownFailures
from tests.support.command_line import Invoke
from tests.support.known_failures import BEFORE, FLAKY, LATER, TODAY, entries, listed
from tests.support.trace_files import BREACHING, CONFORMING, HEADER, write

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas" / "baseline"
FAILING = ("SIG-AGENT-001", "SIG-AGENT-002")


@pytest.fixture
def breaching(tmp_path: Path) -> Path:
    """A recording of openclaw whose recalls run as another agent."""
    return write(tmp_path / "breaching.jsonl", BREACHING, {**HEADER, "target": "openclaw"})


@pytest.fixture
def conforming(tmp_path: Path) -> Path:
    """A recording of openclaw that conforms."""
    return write(tmp_path / "conforming.jsonl", CONFORMING, {**HEADER, "target": "openclaw"})


def valid(schema: str, document: Any) -> bool:
    """Whether a document is valid by a schema of the folder."""
    checked = jsonschema_rs.validator_for(json.loads((SCHEMAS / f"{schema}.schema.json").read_text()))
    return checked.is_valid(document)


def refused(result: Result) -> None:
    """Whether a command ended like wrong usage: status 2, a message, a remedy."""
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert "\ntry: " in result.stderr


def failures(result: Result) -> list[str]:
    """The requirements that are reported as failed, each with its cause, and not as known."""
    told = re.findall(r"^(?:  also      )?FAIL (SIG-[A-Z]+-\d+)\b(?! \w+, known)", result.output, re.MULTILINE)
    return list(told)


def test_a_known_failure_does_not_fail_the_run(invoke: Invoke, breaching: Path, tmp_path: Path) -> None:
    """Each named failure is shown as KNOWN with owner and reason, and the run ends with 0."""
    known = listed(tmp_path / "known.json", entries(*FAILING))
    assert invoke("check", breaching).exit_code == 1
    result = invoke("check", breaching, "--baseline", known)
    assert result.exit_code == 0
    assert failures(result) == []
    assert "KNOWN SIG-AGENT-002 at openclaw" in result.output
    assert f"ada, until {LATER.isoformat()}: next release" in result.output


def test_what_is_not_named_still_fails(invoke: Invoke, breaching: Path, tmp_path: Path) -> None:
    """An entry for one of two failures leaves the other; an entry of another target covers none."""
    result = invoke("check", breaching, "--baseline", listed(tmp_path / "one.json", entries(FAILING[0])))
    assert result.exit_code == 1
    assert failures(result) == [FAILING[1]]
    other = listed(tmp_path / "other.json", entries(*FAILING, target="hermes"))
    assert invoke("check", breaching, "--baseline", other).exit_code == 1


def test_a_known_warning_passes_a_strict_run(invoke: Invoke, tmp_path: Path) -> None:
    """With --strict a WARN fails too, unless it is known."""
    lines = [line for line in CONFORMING if line["request"]["path"] != "/health"]
    path = write(tmp_path / "late.jsonl", lines, {**HEADER, "target": "openclaw"})
    assert invoke("check", path, "--strict", "-k", "SIG-HEALTH-001").exit_code == 1
    known = listed(tmp_path / "known.json", entries("SIG-HEALTH-001"))
    assert invoke("check", path, "--strict", "-k", "SIG-HEALTH-001", "--baseline", known).exit_code == 0


@pytest.mark.parametrize(
    ("written", "verdict", "passes"),
    [("WARN", Verdict.WARN, True), ("WARN", Verdict.FAIL, False), ("FAIL", Verdict.WARN, True)],
)
def test_a_warning_that_becomes_a_failure_is_not_known(written: str, verdict: Verdict, passes: bool) -> None:
    """An entry covers verdicts up to its own, and is not stale while anything fails."""
    entry = Entry("SIG-END-003", "*", "ada", "r", BEFORE, LATER, Verdict(written))
    held = KnownFailures([KnownFailureFile("f", [entry])], today=TODAY).in_run({"openclaw": {"SIG-END-003": verdict}})
    assert (("SIG-END-003", "openclaw") in held.covered) is passes
    assert not held.fails


def test_a_baseline_of_a_warning_shows_a_later_failure(invoke: Invoke, tmp_path: Path) -> None:
    """A baseline that was written for a WARN does not cover a later FAIL of the same requirement."""
    changed = {"WARN": None, "FAIL": 7}
    paths = {}
    for verdict, transcript in changed.items():
        lines = json.loads(json.dumps(CONFORMING))
        (end,) = [line for line in lines if line["request"]["path"] == "/api/hooks/session-end"]
        end["request"]["body"]["json"]["transcript"] = transcript
        paths[verdict] = write(tmp_path / f"{verdict}.jsonl", lines, {**HEADER, "target": "openclaw"})
    known = tmp_path / "known.json"
    chosen = ("-k", "SIG-END-003")
    invoke("check", paths["WARN"], *chosen, "--write-baseline", known, "--reason", "next release")
    (entry,) = json.loads(known.read_bytes())["entries"]
    assert entry["verdict"] == "WARN"
    assert invoke("check", paths["WARN"], *chosen, "--strict", "--baseline", known).exit_code == 0
    result = invoke("check", paths["FAIL"], *chosen, "--baseline", known)
    assert (result.exit_code, failures(result)) == (1, ["SIG-END-003"])


def test_a_stale_entry_fails_the_run(invoke: Invoke, conforming: Path, tmp_path: Path) -> None:
    """An entry whose requirement passes must be removed; the message says so, with --quiet too."""
    known = listed(tmp_path / "known.json", entries(*FAILING))
    result = invoke("check", conforming, "--baseline", known, "-q")
    assert result.exit_code == 1
    assert "STALE SIG-AGENT-001 at openclaw" in result.output
    assert "remove the entry" in result.output


def test_the_closing_line_says_which_entries_fail_the_run(
    invoke: Invoke, conforming: Path, breaching: Path, tmp_path: Path
) -> None:
    """Stale and expired entries are counted in the last line, and in the first line of the Markdown report."""
    stale = listed(tmp_path / "stale.json", entries(*FAILING))
    expired = listed(tmp_path / "old.json", [*entries(FAILING[0]), *entries(FAILING[1], expires=BEFORE)])
    done = invoke("check", conforming, "--baseline", stale, "-q", "--markdown", "r.md")
    assert "\nfailed by 2 stale entries; " in done.stdout
    assert "failed by 2 stale entries; " in (tmp_path / "r.md").read_text()
    both = invoke("check", conforming, "--baseline", expired, "-q")
    assert both.stdout.splitlines()[-1].startswith("failed by 1 stale and 1 expired entries; ")
    other = invoke("check", breaching, "--baseline", expired, "-q")
    assert other.stdout.splitlines()[-1].startswith("failed by 1 expired entry, with 2 FAIL; ")
    again = invoke("check", breaching, "--baseline", stale, "-q")
    assert again.stdout.splitlines()[-1].startswith("conforming, with 2 FAIL; ")


def test_an_entry_that_was_not_tested_is_not_stale() -> None:
    """Only a PASS makes an entry stale: not applicable, inconclusive and not selected do not."""
    entry = Entry("SIG-AGENT-001", "*", "ada", "r", BEFORE, LATER)
    known = KnownFailures([KnownFailureFile("f", [entry])], today=TODAY)
    for verdict in (Verdict.NOT_APPLICABLE, Verdict.INCONCLUSIVE, Verdict.ERROR):
        assert not known.in_run({"openclaw": {"SIG-AGENT-001": verdict}}).fails
    assert not known.in_run({"openclaw": {}}).fails
    assert not known.in_run({}).fails
    assert known.in_run({"openclaw": {"SIG-AGENT-001": Verdict.PASS}}).fails


def test_an_expired_entry_fails_the_run(invoke: Invoke, breaching: Path, tmp_path: Path) -> None:
    """After its last day an entry covers nothing, and is named."""
    known = listed(tmp_path / "known.json", entries(*FAILING, expires=BEFORE))
    result = invoke("check", breaching, "--baseline", known)
    assert result.exit_code == 1
    assert set(failures(result)) == set(FAILING)
    assert "EXPIRED SIG-AGENT-001 at openclaw" in result.output
    last = Entry("SIG-AGENT-001", "*", "ada", "r", BEFORE, TODAY)
    on_its_last_day = KnownFailures([KnownFailureFile("f", [last])], today=TODAY)
    assert not on_its_last_day.in_run({"x": {"SIG-AGENT-001": Verdict.FAIL}}).fails


def test_a_flaky_entry_is_never_stale(invoke: Invoke, breaching: Path, conforming: Path, tmp_path: Path) -> None:
    """A flaky requirement may fail or pass; its list is a file of its own."""
    flaky = listed(tmp_path / "flaky.json", entries(*FAILING), FLAKY)
    assert invoke("check", breaching, "--flaky", flaky).exit_code == 0
    assert invoke("check", conforming, "--flaky", flaky).exit_code == 0
    assert invoke("check", conforming, "--baseline", flaky).exit_code == 2
    expired = listed(tmp_path / "old.json", entries(*FAILING, expires=BEFORE), FLAKY)
    assert invoke("check", conforming, "--flaky", expired).exit_code == 1


def test_every_override_leaves_an_audit_line(invoke: Invoke, breaching: Path, tmp_path: Path) -> None:
    """Who, when, what and why are appended in a file beside the baseline, as the schema says."""
    known = listed(tmp_path / "known.json", entries(*FAILING))
    invoke("check", breaching, "--baseline", known)
    invoke("check", breaching, "--baseline", known)
    lines = [json.loads(line) for line in (tmp_path / "known.json.audit.jsonl").read_text().splitlines()]
    assert [line["requirement"] for line in lines] == [*FAILING, *FAILING]
    assert all(valid("signet-audit-1", line) for line in lines)
    assert {line["why"] for line in lines} == {"next release"}


def test_a_run_without_override_leaves_no_audit(invoke: Invoke, conforming: Path, tmp_path: Path) -> None:
    """If no failure was covered, nothing is written."""
    invoke("check", conforming, "--baseline", listed(tmp_path / "known.json", []))
    assert not (tmp_path / "known.json.audit.jsonl").exists()


def test_a_written_baseline_covers_what_it_was_written_from(invoke: Invoke, breaching: Path, tmp_path: Path) -> None:
    """--write-baseline names the present failures; the next run with it passes, and nothing is replaced."""
    words = ["--write-baseline", "new.json", "--reason", "first run", "--owner", "ada"]
    written = invoke("check", breaching, *words)
    assert written.exit_code == 1
    document = json.loads((tmp_path / "new.json").read_text())
    assert valid("signet-baseline-1", document)
    assert {row["owner"] for row in document["entries"]} == {"ada"}
    assert invoke("check", breaching, "--strict", "--baseline", "new.json").exit_code == 0
    assert invoke("check", breaching, *words).exit_code == 2


def test_the_json_report_says_what_is_known(invoke: Invoke, breaching: Path, tmp_path: Path) -> None:
    """The report's exit status is the run's, and its warnings name the covered failures."""
    known = listed(tmp_path / "known.json", entries(*FAILING))
    report = json.loads(invoke("check", breaching, "--baseline", known, "--json").output)
    assert report["exit"] == 0
    assert "KNOWN SIG-AGENT-001 at openclaw" in report["warnings"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "null",
        '{"format": "signet-baseline/1"}',
        '{"format": "signet-baseline/2", "entries": []}',
        "[" * 9999,
    ],
)
def test_a_file_that_is_no_baseline_is_refused(invoke: Invoke, breaching: Path, tmp_path: Path, text: str) -> None:
    """Bad input ends with 2 and a remedy, never with a traceback."""
    (tmp_path / "bad.json").write_text(text)
    refused(invoke("check", breaching, "--baseline", "bad.json"))


@pytest.mark.parametrize(
    "change",
    [
        {"reason": " "},
        {"owner": None},
        {"requirement": "SIG-NO-001"},
        {"expires": "soon"},
        {"created": 7},
        {"target": []},
        {"verdict": "ERROR"},
        {"verdict": []},
    ],
)
def test_an_entry_that_says_too_little_is_refused(
    invoke: Invoke, breaching: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    """Without valid requirement, target, owner, reason and days, an entry is refused by its number."""
    rows = [{**row, **change} for row in entries(FAILING[0])]
    result = invoke("check", breaching, "--baseline", listed(tmp_path / "bad.json", rows))
    refused(result)
    assert "entry 1" in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["--write-baseline", "x.json"],
        ["--reason", "x"],
        ["--write-baseline", "x.json", "--reason", "x", "--expires", "2001-01-01"],
        ["--write-baseline", "no/such/folder/x.json", "--reason", "x"],
        ["--baseline", "gone.json"],
    ],
)
def test_options_that_cannot_be_used_are_refused(invoke: Invoke, breaching: Path, words: list[str]) -> None:
    """A baseline without a reason, a past day and a missing file are errors with a remedy."""
    refused(invoke("check", breaching, *words))


@pytest.mark.parametrize("called", ["*", "  "])
def test_a_recording_cannot_speak_for_every_target(
    invoke: Invoke, breaching: Path, tmp_path: Path, called: str
) -> None:
    """A recording with the target `*`, or without one, has the target `unnamed` in a written baseline."""
    odd = write(tmp_path / "odd.jsonl", BREACHING, {**HEADER, "target": called})
    invoke("check", odd, "--write-baseline", "new.json", "--reason", "r", "--owner", " ")
    rows = json.loads((tmp_path / "new.json").read_text())["entries"]
    assert {row["target"] for row in rows} == {"unnamed"}
    assert all(row["owner"].strip() for row in rows)
    assert invoke("check", odd, "--strict", "--baseline", "new.json").exit_code == 0
    assert invoke("check", breaching, "--baseline", "new.json").exit_code == 1


def test_a_name_that_no_file_can_have_is_refused(invoke: Invoke, breaching: Path) -> None:
    """A name that is too long is wrong usage, not a failure of the kit."""
    refused(invoke("check", breaching, "--write-baseline", "x" * 300, "--reason", "r"))
