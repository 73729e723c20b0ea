"""Known failures in pytest: expected to fail, written down, and never for longer than was agreed."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from signet_conformance.outcome.baseline_documents import Entry
from tests.support.repository import Repository

BASELINE, FLAKY = "signet-baseline/1", "signet-flaky/1"
TODAY = datetime.now(UTC).date()
LATER, BEFORE = TODAY + timedelta(days=400), TODAY - timedelta(days=1)
FAILING, WARNING, PASSING = "SIG-END-001", "SIG-START-003", "SIG-HTTP-001"


def listed(repository: Repository, *names: str, expires: date = LATER, flaky: bool = False) -> Path:
    """A baseline, or a flaky list, with these requirements at any target."""
    entries = [Entry(name, "*", "ada", "next release", BEFORE, expires).to_json() for name in names]
    form = FLAKY if flaky else BASELINE
    return repository.write("known.json", json.dumps({"format": form, "entries": entries}))


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "distributed"])
def test_a_known_failure_is_expected(repository: Repository, breaching: Path, workers: tuple[str, ...]) -> None:
    """It is an xfail with owner, day and reason, the run ends with 0, and every report says that it is known."""
    known = listed(repository, FAILING)
    done, cases = repository.judge(breaching, "--signet-baseline", known, "--signet-report", "report", "-ra", *workers)
    assert done.status == 0, done.everything
    assert (cases[FAILING].outcome, cases[FAILING].verdict) == ("skipped", "FAIL")
    assert f"known: ada, until {LATER.isoformat()}: next release" in done.out
    assert f"KNOWN {FAILING} at unnamed" in done.out
    (line,) = (repository.folder / "known.json.audit.jsonl").read_text().splitlines()
    assert (json.loads(line)["requirement"], json.loads(line)["why"]) == (FAILING, "next release")
    folder = repository.folder / "report"
    report = json.loads((folder / "report.json").read_bytes())
    assert (report["exit"], report["together"][FAILING]["verdict"]) == (0, "FAIL")
    assert f"### FAIL, known {FAILING}" in (folder / "report.md").read_text()
    assert '"suppressions"' in (folder / "report.sarif").read_text()


def test_a_failure_that_is_not_known_fails(repository: Repository, breaching: Path) -> None:
    """An entry of another requirement, or one whose target did not run, lets nothing pass."""
    elsewhere = Entry(FAILING, "elsewhere", "ada", "next release", BEFORE, LATER).to_json()
    known = repository.write("known.json", json.dumps({"format": BASELINE, "entries": [elsewhere]}))
    done, cases = repository.judge(breaching, "--signet-baseline", known)
    assert (done.status, cases[FAILING].outcome) == (1, "failure")
    assert not (repository.folder / "known.json.audit.jsonl").exists()


def test_a_known_warning_passes_a_strict_run(repository: Repository, imperfect: Path) -> None:
    """With --signet-strict a WARN fails the run, unless it is known; then it does not warn either."""
    known = listed(repository, WARNING)
    done, cases = repository.judge(imperfect, "--signet-strict", "--signet-baseline", known)
    assert (done.status, cases[WARNING].outcome) == (0, "passed")
    assert "ConformanceWarning" not in done.everything
    assert repository.judge(imperfect, "--signet-strict")[0].status == 1


@pytest.mark.parametrize(
    ("name", "expires", "word"), [(PASSING, LATER, "STALE"), (FAILING, BEFORE, "EXPIRED")], ids=["stale", "expired"]
)
def test_an_entry_must_not_outlive_its_failure(
    repository: Repository, breaching: Path, conforming: Path, name: str, expires: date, word: str
) -> None:
    """One whose requirement passes, or whose day has gone by, fails the run and says what to do."""
    recording = conforming if word == "STALE" else breaching
    done, _ = repository.judge(recording, "--signet-baseline", listed(repository, name, expires=expires))
    assert done.status == 1
    assert f"{word} {name} at *" in done.out
    assert f"failed by 1 {word.lower()} entry" in done.out
    assert "remove the entry" in done.out


def test_only_what_was_tested_makes_an_entry_stale(repository: Repository, conforming: Path) -> None:
    """A run that -k confines says nothing of the entries of other requirements."""
    known = listed(repository, PASSING)
    assert repository.judge(conforming, "--signet-baseline", known, "-k", "SIG-END")[0].status == 0


def test_a_flaky_requirement_may_pass(repository: Repository, breaching: Path, conforming: Path) -> None:
    """The flaky list lets a failure pass, and is not stale when there is none."""
    known = listed(repository, FAILING, flaky=True)
    assert repository.judge(breaching, "--signet-flaky", known)[0].status == 0
    assert repository.judge(conforming, "--signet-flaky", known)[0].status == 0


def test_runxfail_looks_past_what_is_known(repository: Repository, breaching: Path) -> None:
    """Pytest's own way to see expected failures fail works for these too."""
    known = listed(repository, FAILING)
    done, cases = repository.judge(breaching, "--signet-baseline", known, "--runxfail")
    assert (done.status, cases[FAILING].outcome) == (1, "failure")


def test_a_baseline_that_is_written_lets_the_next_run_pass(repository: Repository, breaching: Path) -> None:
    """It holds what fails and warns now, with owner, reason and day; the run that writes it ends as it would have."""
    words = ("--signet-owner", "ada", "--signet-reason", "next release", "--signet-expires", LATER.isoformat())
    done, _ = repository.judge(breaching, "--signet-write-baseline", "known.json", *words)
    assert done.status == 1
    assert "baseline: 2 known in known.json" in done.out
    entries = json.loads((repository.folder / "known.json").read_bytes())["entries"]
    assert [entry["requirement"] for entry in entries] == [WARNING, FAILING]
    assert {(entry["owner"], entry["expires"]) for entry in entries} == {("ada", LATER.isoformat())}
    assert repository.judge(breaching, "--signet-strict", "--signet-baseline", "known.json")[0].status == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--signet-baseline", "absent.json"), "--signet-baseline absent.json: cannot be read"),
        (("--signet-write-baseline", "new.json"), "--signet-write-baseline: a known failure needs a reason"),
        (("--signet-reason", "x"), "--signet-reason and --signet-expires describe entries that are written"),
        (
            ("--signet-write-baseline", "new.json", "--signet-reason", "x", "--signet-expires", "soon"),
            "--signet-expires: ",
        ),
    ],
)
def test_options_that_cannot_be_used_end_the_run(
    repository: Repository, conforming: Path, words: tuple[str, ...], said: str
) -> None:
    """Each is named as it was written, with what to do, before anything is judged; the run ends with 2."""
    done = repository.conform("--signet-trace", conforming, *words)
    assert done.status == 2
    assert said in done.everything
    assert "Traceback" not in done.everything


def test_runxfail_writes_a_baseline_all_the_same(repository: Repository, breaching: Path) -> None:
    """What was known is written again, with what is not."""
    known = listed(repository, FAILING)
    words = ("--signet-write-baseline", "new.json", "--signet-reason", "next release")
    done, _ = repository.judge(breaching, "--signet-baseline", known, "--runxfail", *words)
    assert "baseline: 2 known in new.json" in done.out
    assert (repository.folder / "new.json").is_file()
