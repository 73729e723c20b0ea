"""A daemon that generated sessions show broken: reported on its own side, whatever the connector is like."""

from __future__ import annotations

import json
from pathlib import Path

from signet_conformance import engine, targets, trace
from signet_conformance.finding import Verdict
from signet_conformance.outcome.generated_summary import GeneratedSummary
from signet_conformance.running.request import DrivenRequest, Invocation
from signet_conformance.running.run import drive
from signet_conformance.scenarios.scenario import Scenario
from tests.support.inner_pytest import run

from .live import broken_daemon, broken_target, generate

BROKEN = "answers-without-a-count"
NAME = "SIG-DAEMON-001"
START = {"step": "start", "session": "s1", "agent": 0, "project": "/workspace/src/acme-api"}
PROMPT = {"step": "prompt", "session": "s1", "text": "When does the export run?", "reply": "At two."}
END = {"step": "end", "session": "s1"}


def test_breach_of_the_daemon_is_shown_again_and_put_beside_the_traces(tmp_path: Path) -> None:
    """A fresh connector shows it in a trace of its own among those of the run; the connector has no breach by it."""
    with broken_daemon(BROKEN) as url:
        summary = generate(tmp_path, broken_target(), 10, daemon=url)
    assert not summary.breaches
    (breach,) = summary.daemon
    assert (breach.requirement, breach.verdict, breach.confirmed) == (NAME, Verdict.FAIL, True)
    assert breach.sessions > 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{NAME}.jsonl", "generated.json"]
    judged = engine.judge(trace.read(tmp_path / f"{NAME}.jsonl"))
    assert judged.daemon[NAME].verdict is Verdict.FAIL
    assert not any(judgement.verdict is Verdict.FAIL for judgement in judged.judgements.values())


def test_breach_of_the_daemon_that_scenarios_show_is_not_performed_again(tmp_path: Path) -> None:
    """What the other traces of the run say of the daemon needs no second proof."""
    scenario = Scenario.from_json({"name": "plain", "steps": [START, PROMPT, END]}, "here")
    with broken_daemon(BROKEN) as url:
        request = DrivenRequest(
            folder=tmp_path, target=targets.load("reference"), daemon=url, scenarios=(scenario,), sessions=5
        )
        drive(request, Invocation(("run",)), lambda _event: None)
    summary = GeneratedSummary.from_folder(tmp_path)
    assert summary is not None
    assert not summary.daemon
    assert sorted(path.name for path in tmp_path.iterdir()) == ["generated.json", "plain.jsonl"]


def test_breach_of_the_daemon_stands_in_its_section_and_fails_nothing(tmp_path: Path) -> None:
    """What generated sessions alone show is named on the daemon's side, in text and report; the run ends with 0."""
    (tmp_path / "quiet.json").write_text(json.dumps({"name": "quiet", "steps": [START, END]}))
    with broken_daemon(BROKEN) as url:
        words = [
            "--target",
            "reference",
            "--daemon",
            url,
            "--signet-allow-writes",
            "--scenario",
            "quiet.json",
            "--scenarios",
            "5",
        ]
        done = run(tmp_path, "--signet-conformance", "--signet-report", "report", *words)
    assert done.status == 0, done.everything
    assert f"on the daemon's side: FAIL {NAME}" in done.out
    assert "0 breaches found and confirmed" in done.out
    traces = json.loads((tmp_path / "report" / "report.json").read_bytes())["traces"]
    assert [recording["daemon"][NAME]["verdict"] for recording in traces].count("FAIL") == 1
