"""Scenarios that break off: the others are judged, and these are told with step, reason, fault and replay."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from signet_conformance import targets, trace
from signet_conformance.contract import document
from signet_conformance.drivers import watched_driver
from signet_conformance.drivers.watched_driver import WatchedDriver
from signet_conformance.engine import judge_run
from signet_conformance.errors import TargetError
from signet_conformance.outcome.broken_off import BrokenOff, Shortfall
from signet_conformance.running import recorded_daemon
from signet_conformance.running.connector import Patience
from signet_conformance.running.progress import Event, RunNote
from signet_conformance.running.request import DrivenRequest, Invocation
from signet_conformance.running.run import drive
from signet_conformance.running.workers import MOST_WORKERS
from signet_conformance.scenarios.scenario import Scenario
from tests.support.drives import END, PLAIN, PROMPT, START, Drive
from tests.support.trace_files import CONFORMING, write

UNRULY = Path(__file__).with_name("unruly.py")
COVERAGE = "SIG-COV-001"
SETTINGS = f"""
[targets.mine]
command = ["{{python}}", "{UNRULY}"]
harness = "reference"
agents = ["atlas-agent"]
bounds_s = {{start = 1.0, prompt = 1.0}}
token = true
"""


def scenario(name: str, text: str, **more: Any) -> dict[str, Any]:
    """One session with one prompt."""
    return {"name": name, "steps": [START, {**PROMPT, "text": text}, END], **more}


@pytest.fixture
def drive_unruly(tmp_path: Path) -> Drive:
    """A folder to drive the unruly program from."""
    (tmp_path / "signet-conformance.toml").write_text(SETTINGS)
    return Drive(tmp_path)


def performed(drive: Drive, *words: str, **scenarios: dict[str, Any]) -> tuple[int, str, str]:
    """Drive through these scenarios: status, standard output, standard error."""
    (drive.folder / "scenarios.json").write_text(json.dumps({"scenarios": list(scenarios.values())}))
    done = drive.perform("--target=mine", "--scenario=scenarios.json", *words)
    assert "Traceback" not in done.everything
    assert "INTERNALERROR" not in done.everything
    return done.status, done.out, done.err


@pytest.mark.parametrize("distributed", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_what_could_be_performed_is_judged(drive_unruly: Drive, distributed: tuple[str, ...]) -> None:
    """The run ends with 4 and the verdicts of the others; each that broke off has its step, reason, fault, replay."""
    status, out, err = performed(
        drive_unruly,
        "--signet-report=report",
        *distributed,
        fine=PLAIN,
        ended=scenario("ended", "end"),
        refused=scenario("refused", "refuse"),
        silent=scenario("silent", "hello", env={"SIGNET_BYPASS": "1"}),
    )
    assert status == 4, out + err
    assert "tested in 1 trace (exit 4)" in out
    assert "3 of 4 scenarios broke off (exit 4); the verdicts are those of the others:" in out
    assert "ended, step 1 (prompt): target mine ended with status 7" in out
    assert "refused, step 1 (prompt): target mine cannot perform" in out
    assert "cannot perform the step prompt: KeyError: no acme; here" in out
    assert "silent, before its first step: target mine ended with status 1" in out
    assert out.count("acme is lost") == 1
    assert "most likely at fault: the driver program, or the connector in it" in out

    report = drive_unruly.folder / "report"
    assert "acme is lost" not in (report / "broken-off.json").read_text("utf-8")
    written = json.loads((report / "report.json").read_bytes())
    jsonschema.Draft202012Validator(document("report/signet-report-1.schema.json")).validate(written)
    assert written["exit"] == 4
    assert [Path(written_trace["file"]).name for written_trace in written["traces"]] == ["plain.jsonl"]
    assert written["together"]["SIG-START-001"]["verdict"] == "PASS"
    for page in ("report.json", "report.md", "report.html"):
        assert "ended broke off, step 1 (prompt)" in (report / page).read_text("utf-8"), page


def test_broken_scenario_is_replayed_by_paste(drive_unruly: Drive) -> None:
    """The printed command performs the one that broke off alone, and nothing can be judged then."""
    _, out, _ = performed(drive_unruly, fine=PLAIN, ended=scenario("ended", "end"))
    replay = next(line.partition("replay: ")[2] for line in out.splitlines() if "replay: pytest" in line)
    words = shlex.split(replay)
    assert words[-1] == "signet-failures/ended.json"
    done = drive_unruly.perform(*words[2:])
    assert done.status == 4, done.everything
    assert "none of 1 scenarios could be performed; the first, ended, step 1 (prompt)" in done.err
    assert done.err.count("acme is lost") == 1
    assert "no tests ran" in done.out


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "beside another"])
def test_what_the_daemon_refused_last_is_named(drive_unruly: Drive, alone: bool) -> None:
    """The answer to the last request stands beside the reason, with the daemon's words; so does what drivers owe."""
    others = {} if alone else {"fine": PLAIN}
    _, out, err = performed(drive_unruly, sent=scenario("sent", "send"), **others)
    refused = re.search(
        r'POST /api/hooks/user-prompt-submit agent=\S+ -> 400 "harness and userMessage or userPrompt are required"',
        err if alone else out,
    )
    assert refused is not None, out + err
    if alone:
        assert "let the driver program survive exceptions of the connector, as its harness does" in err


def drive_in(
    folder: Path,
    target: targets.Target,
    scenarios: tuple[Scenario, ...],
    sessions: int = 0,
    patience: Patience | None = None,
) -> Shortfall | None:
    """Perform some scenarios against the embedded daemon."""
    request = DrivenRequest(folder=folder, target=target, scenarios=scenarios, sessions=sessions)
    return drive(request, Invocation(("run",)), lambda _event: None, patience=patience)


class Stopped(Patience):
    """The user stops the run as soon as a scenario has ended, before its worker has told so."""

    def note(self, watched: WatchedDriver, error: str | None) -> None:
        """Take in that a scenario has ended."""
        assert (watched.given_up, error) == (None, None)
        raise KeyboardInterrupt


def test_scenario_that_has_ended_counts_when_the_run_is_stopped(tmp_path: Path) -> None:
    """What its recording shows whole is judged, although the worker had no time to hand it over."""
    plain = Scenario.from_json(PLAIN, "here")
    try:
        shortfall = drive_in(tmp_path, targets.load("reference", tmp_path), (plain,), patience=Stopped())
    except KeyboardInterrupt:
        pytest.fail("nothing was counted as performed")
    assert shortfall is not None
    assert (shortfall.interrupted_after, shortfall.left) == (1, ())


def test_user_is_told_what_a_silent_program_is_waited_for(
    tmp_path: Path, drive_unruly: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for each step, and when it will be given up; it is given up then."""
    monkeypatch.setattr(recorded_daemon, "STEP_MARGIN_S", -1.0)
    monkeypatch.setattr(watched_driver, "LONG_WAIT_S", 0.5)
    target = targets.load("mine", drive_unruly.folder)
    hanging = Scenario.from_json(scenario("hangs", "hang"), "here")
    request = DrivenRequest(folder=tmp_path / "traces", target=target, scenarios=(hanging,))
    events: list[Event] = []
    with pytest.raises(TargetError, match=r"gave no answer within 3 s"):
        drive(request, Invocation(("run",)), events.append)
    told = [event.words for event in events if isinstance(event, RunNote) and "step 1" in event.words]
    waits = "hangs, step 1 (prompt): no answer of the connector for 0.5 s; it is given up after about 3 s"
    assert told == [waits]


def test_program_that_gives_no_answer_twice_ends_the_run(
    tmp_path: Path, drive_unruly: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two silent scenarios are enough: the rest is left out with that reason, but for what other workers were at."""
    # What a step may take is four times the longest bound, and this.
    monkeypatch.setattr(recorded_daemon, "STEP_MARGIN_S", -3.8)
    target = targets.load("mine", drive_unruly.folder)
    hanging = tuple(Scenario.from_json(scenario(f"hangs-{number}", "hang"), "here") for number in range(20))
    folder = tmp_path / "traces"
    folder.mkdir()
    with pytest.raises(TargetError, match="given up: in 2 scenarios the program gave no answer") as raised:
        drive_in(folder, target, hanging)
    assert raised.value.exit_status == 4
    assert 2 <= len(list(folder.glob("*.jsonl"))) <= 1 + MOST_WORKERS


def test_connector_that_cannot_be_loaded_twice_ends_the_run(tmp_path: Path, drive_unruly: Drive) -> None:
    """A program that answers the greeting with an error is told by that error, and not asked for every scenario."""
    refusing = "import json; print(json.dumps({'id': json.loads(input())['id'], 'ok': False, 'error': 'no acme'}))"
    target = dataclasses.replace(targets.load("mine", drive_unruly.folder), command=(sys.executable, "-c", refusing))
    asked = tuple(Scenario.from_json(scenario(f"asks-{number}", "hello"), "here") for number in range(20))
    folder = tmp_path / "traces"
    folder.mkdir()
    with pytest.raises(TargetError, match="target mine cannot begin: no acme; given up: the connector") as raised:
        drive_in(folder, target, asked, sessions=20)
    assert raised.value.exit_status == 4
    assert len(list(folder.glob("*.jsonl"))) <= 1 + MOST_WORKERS


def test_scenarios_that_were_given_up_are_named() -> None:
    """What was left out stands beside the reason."""
    broken = BrokenOff("hangs", "step 1 (prompt)", "target mine gave no answer within 64 s", (), "the connector", "x")
    shortfall = Shortfall((broken,), 4, ("resume", "60 generated sessions"), "the program gave no answer")
    said = "given up: the program gave no answer; not performed: resume, 60 generated sessions"
    assert f"  {said}" in shortfall.lines()
    assert said in shortfall.notes()


def test_scenarios_that_broke_off_alike_are_told_together() -> None:
    """The first of a reason with its command, the others by name; those after the fifth are counted."""
    alike = [BrokenOff(f"s{number}", f"step {number}", "no answer", (), "the connector", "x") for number in range(7)]
    other = BrokenOff("other", "step 1", "no acme", (), "the connector", "y")
    lines = list(Shortfall((*alike, other), 9).lines())
    assert lines[1:4] == [
        "  s0, step 0: no answer",
        "    replay: x",
        "    likewise s1, step 1, s2, step 2, s3, step 3, s4, step 4, s5, step 5 and 1 more",
    ]
    assert lines[4:6] == ["  other, step 1: no acme", "    replay: y"]
    assert sum("likewise" in line for line in lines) == 1


def ended(path: Path, error: str | None = None) -> trace.Trace:
    """A recording of a driven scenario that conforms and came to its end, or broke off."""
    mark = {"kind": "mark", "seq": 90, "name": "scenario_end", "data": {"name": path.stem, "error": error}}
    with write(path, CONFORMING).open("a") as stream:
        stream.write(json.dumps(mark) + "\n")
    read = trace.read(path)
    declared = replace(read.header.declared, capabilities=["session-start", "secrets-exec"])
    return replace(read, header=replace(read.header, declared=declared))


def test_coverage_of_a_run_that_lacks_scenarios_stays_open(tmp_path: Path) -> None:
    """What was never seen may have been in what broke off: no operation is called missing then."""
    performed = [ended(tmp_path / "plain.jsonl"), ended(tmp_path / "tools.jsonl")]
    assert judge_run(performed).together[COVERAGE].verdict == "FAIL"
    shortfall = Shortfall((), 3)
    kept = shortfall.judged([*performed, ended(tmp_path / "switch.jsonl", "target mine ended with status 1")])
    assert [recording.path for recording in kept] == [recording.path for recording in performed]
    assert judge_run(kept).together[COVERAGE].verdict == "INCONCLUSIVE"


def test_recording_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    """Where the run ended in the midst of a scenario its recording has no end, and says nothing."""
    cut = trace.read(write(tmp_path / "cut.jsonl", CONFORMING))
    assert Shortfall((), 2).judged([cut]) == []
