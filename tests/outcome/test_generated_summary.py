"""The summary of generated sessions: it survives its file, and takes its place among the other verdicts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from signet_conformance.engine import judge
from signet_conformance.finding import Judgement, Reason, Verdict
from signet_conformance.outcome.conclusion import Judging, Terms
from signet_conformance.outcome.generated_summary import (
    DaemonBreach,
    Failure,
    GeneratedBreach,
    GeneratedSummary,
    VerdictCounts,
    breach_lines,
    with_generated,
)
from signet_conformance.outcome.recording_gaps import Lack
from signet_conformance.trace import read
from tests.support.trace_files import CONFORMING, recall, write

NAME = "SIG-CMP-004"
BREACH = GeneratedBreach(
    requirement=NAME,
    verdict=Verdict.FAIL,
    confirmed=True,
    also=("SIG-CMP-002",),
    steps=5,
    drawn=14,
    tried=31,
    scenario="found.json",
    traces=("a.jsonl", "b.jsonl"),
    replay="pytest --signet-scenario found.json",
)


def summary_of(*breaches: GeneratedBreach, **counts: int) -> GeneratedSummary:
    """A summary with these breaches and these verdicts of NAME."""
    tally = VerdictCounts(
        {NAME: Counter({Verdict[name]: number for name, number in counts.items()})}, Counter({NAME: 7})
    )
    return GeneratedSummary(seed=3, performed=20, tally=tally, breaches=list(breaches))


def run_with(verdict: Verdict, reason: Reason) -> dict[str, Judgement]:
    """The judgements of a run in which NAME has this verdict over two subjects."""
    return {NAME: Judgement(NAME, verdict, reason, "as scripted", subjects=2)}


def test_summary_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Seed, counts, breaches and failures come back from the folder of a run; a folder without them has none."""
    summary = summary_of(BREACH, PASS=12, INCONCLUSIVE=1)
    summary.tally.gaps[Lack.DECODED] = 3
    written = replace(
        summary,
        failures=[Failure("ended", True, "x.json", "pytest")],
        daemon=[DaemonBreach("SIG-DAEMON-001", Verdict.FAIL, True, 3)],
        outages={"401 on a prompt": 4},
        skipped={"clear": 2},
        lost=["no generated session holds clear"],
    )
    written.write(tmp_path)
    assert GeneratedSummary.from_folder(tmp_path) == written
    assert GeneratedSummary.from_folder(tmp_path / "elsewhere") is None


@pytest.mark.parametrize(
    ("verdict", "reason", "counts", "expected", "subjects"),
    [
        (Verdict.PASS, Reason.CONFORMING, {"PASS": 3}, Verdict.PASS, 9),
        (Verdict.NOT_APPLICABLE, Reason.NO_SUBJECT, {"PASS": 3, "INCONCLUSIVE": 4}, Verdict.PASS, 9),
        (Verdict.INCONCLUSIVE, Reason.UNDECIDED, {"PASS": 3}, Verdict.PASS, 9),
        (Verdict.NOT_APPLICABLE, Reason.NO_SUBJECT, {"INCONCLUSIVE": 4}, Verdict.INCONCLUSIVE, 9),
        (Verdict.NOT_APPLICABLE, Reason.NO_SUBJECT, {"NOT_APPLICABLE": 4}, Verdict.NOT_APPLICABLE, 2),
        (Verdict.NOT_APPLICABLE, Reason.GATED, {"PASS": 3}, Verdict.NOT_APPLICABLE, 2),
        (Verdict.FAIL, Reason.BREACH, {"PASS": 3}, Verdict.FAIL, 2),
    ],
)
def test_sessions_that_conform_decide_only_what_is_open(
    verdict: Verdict, reason: Reason, counts: dict[str, int], expected: Verdict, subjects: int
) -> None:
    """A PASS of generated sessions counts where the other traces have none; it never hides a breach or a gate."""
    judgement = with_generated(run_with(verdict, reason), summary_of(**counts))[NAME]
    assert (judgement.verdict, judgement.subjects) == (expected, subjects)


@pytest.mark.parametrize(
    ("before", "expected"),
    [(Verdict.PASS, Verdict.INCONCLUSIVE), (Verdict.WARN, Verdict.WARN), (Verdict.FAIL, Verdict.FAIL)],
)
def test_unconfirmed_breach_leaves_the_requirement_undecided(before: Verdict, expected: Verdict) -> None:
    """What a fresh connector did not show again is neither a pass nor a failure, and both traces are named."""
    summary = summary_of(replace(BREACH, confirmed=False), PASS=3)
    judgement = with_generated(run_with(before, Reason.CONFORMING), summary)[NAME]
    assert judgement.verdict is expected
    if expected is Verdict.INCONCLUSIVE:
        assert "a.jsonl" in judgement.message
        assert "b.jsonl" in judgement.message
        assert BREACH.replay in judgement.message


@pytest.mark.parametrize(("decoded", "status"), [(True, 0), (False, 4)])
def test_what_generated_sessions_lack_is_not_green(tmp_path: Path, decoded: bool, status: int) -> None:
    """A body that could not be decoded there alone counts as one of a scripted scenario: 4 in place of 0, and why."""
    request = recall(agentId="atlas-agent")
    request["request"]["body"] = {"cut": True, "size": 9, "sha256": "0" * 64, "text": "", "undecoded": "br"}
    session = CONFORMING if decoded else [*CONFORMING, request]
    summary = GeneratedSummary(seed=3, performed=1)
    summary.tally.add(judge(read(write(tmp_path / "generated.jsonl", session))))
    judging = Judging(Terms())
    judging.add(judge(read(write(tmp_path / "plain.jsonl", CONFORMING))))
    conclusion = judging.conclude(generated=summary)
    assert conclusion.status == status
    assert conclusion.because == ("" if decoded else "1 body that could not be decoded")
    told = "not judged in generated sessions: 1 body that could not be decoded"
    assert (told in [*summary.coverage_lines()]) is not decoded


def test_line_counts_what_was_confirmed_and_what_was_not() -> None:
    """The end of a run tells how many sessions there were, and keeps flaky findings apart."""
    assert next(summary_of(BREACH).lines()) == "20 generated sessions of seed 3: 1 breach found and confirmed"
    flaky = summary_of(BREACH, replace(BREACH, confirmed=False))
    flaky.failures.append(Failure("ended", False, "x.json", "pytest"))
    assert next(flaky.lines()).endswith("1 breach found and confirmed, 2 that a fresh connector did not show again")


def test_line_keeps_apart_what_the_scenarios_had_shown() -> None:
    """Sessions that breach what the scenarios breached found no more; "0 breaches" under a FAIL would deny it."""
    summary = summary_of()
    summary.tally.verdicts["SIG-AGENT-001"] = Counter({Verdict.PASS: 1, Verdict.FAIL: 19})
    assert next(summary.lines()).endswith("0 more breaches found and confirmed")


def test_each_breach_is_named_with_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdict, requirements, steps, and the file to replay from where the run was started; an elsewhere stays whole."""
    monkeypatch.chdir(tmp_path)
    here = replace(BREACH, also=("SIG-PROMPT-006",), scenario=str(tmp_path / "signet-failures" / "found.json"))
    elsewhere = replace(BREACH, confirmed=False, steps=1, scenario="/elsewhere/found.json")
    _, first, second = summary_of(here, elsewhere).lines()
    assert (
        first == f"  {here.verdict} {NAME}, SIG-PROMPT-006 in {here.steps} steps, saved as signet-failures/found.json"
    )
    assert second.endswith("in 1 step, which a second performance did not show, saved as /elsewhere/found.json")


def test_line_names_what_the_daemon_did_not_do_again() -> None:
    """A breach on the daemon's side that a fresh connector shows is told with its trace; another one only here."""
    summary = replace(summary_of(), daemon=[DaemonBreach("SIG-DAEMON-001", Verdict.FAIL, True, 3)])
    assert next(summary.lines()).endswith("0 breaches found and confirmed")
    summary.daemon.append(DaemonBreach("SIG-DAEMON-004", Verdict.FAIL, False, 2))
    assert next(summary.lines()).endswith("not shown again by a fresh connector: SIG-DAEMON-004 (2)")


def test_run_without_generated_sessions_stays_as_it_is() -> None:
    """No summary, no change."""
    run = run_with(Verdict.PASS, Reason.CONFORMING)
    assert with_generated(run, None) is run


@pytest.mark.parametrize("requirement", [NAME, "SIG-CMP-002"])
def test_reader_of_a_failure_is_told_how_to_replay_it(requirement: str) -> None:
    """A failed requirement names the smallest session and the command, also where another one led to it."""
    line, replay = breach_lines([BREACH], requirement)
    assert "5 steps (found with 14; 31 tried): found.json" in line
    assert replay == "replay: pytest --signet-scenario found.json"


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"tried": 0}, "as it was drawn, not shrunk: 5 steps: found.json"),
        ({"steps": 14}, "14 steps, no smaller one does (31 tried): found.json"),
        (
            {"steps": 14, "smaller": 5},
            "as it was drawn: 14 steps (one of 5 showed it only with other sessions",
        ),
        (
            {"steps": 14, "characters": 65_537, "drawn_characters": 100_014},
            "smallest generated session that shows it: 14 steps, with 65,537 of 100,014 characters in its longest",
        ),
        (
            {"characters": 5, "drawn_characters": 47},
            "session that shows it: 5 steps (found with 14;",
        ),
    ],
    ids=["not-shrunk", "nothing-smaller", "only-after-others", "long-prompt", "short-prompt"],
)
def test_reader_is_told_what_was_shrunk(how: dict[str, Any], told: str) -> None:
    """A session is called the smallest only where it was shrunk, and shows less than it was found with."""
    line, _ = breach_lines([replace(BREACH, **how)], NAME)
    assert told in line


def test_unconfirmed_breach_has_no_replay_line() -> None:
    """What was not confirmed explains no failure."""
    assert not breach_lines([replace(BREACH, confirmed=False)], NAME)


def test_steps_that_sessions_skipped_are_counted() -> None:
    """Beside the outages that they held; a run without either has no such line."""
    summary = GeneratedSummary(seed=3, outages={"401 on a prompt": 4}, skipped={"clear": 2, "fork": 1})
    assert [*summary.coverage_lines()] == [
        "generated sessions that held an outage: 401 on a prompt 4",
        "steps of generated sessions that were skipped: clear 2, fork 1",
    ]
    assert [*GeneratedSummary(seed=3).coverage_lines()] == []
