"""Runs that drive the reference harness for real: what they leave behind, and that it is no process."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import jsonschema
import pytest

from signet_conformance import trace
from signet_conformance.contract import document
from tests.support.drives import END, LASTING, PLAIN, PROMPT, START, Drive, is_stoppable, make_stoppable
from tests.support.processes import PATIENCE_S, Watched, wait_until

PARTS = ("signet_conformance.daemon", "signet_recording_proxy", "signet_reference_harness")
BREACHED_RULE = """
from signet_conformance.rules import rule_for
from signet_conformance.rules.outcome import fail

@rule_for("ACME-HTTP-001")
def every_call_is_ours(recording):
    yield fail(recording.calls[0], message="no header x-acme")
"""


@pytest.fixture
def drive(tmp_path: Path) -> Drive:
    """A folder to drive from."""
    return Drive(tmp_path)


def test_driven_run_performs_its_scenario_once_and_leaves_nothing_running(drive: Drive) -> None:
    """With two workers a scenario is performed once; its trace and the report stay, children do not. Time is told."""
    with drive.begin("-n", "2", "--signet-report=report", "--signet-profile", scenario=PLAIN) as run:
        out, err = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 0, out + err
    assert "where the time went" in out
    assert drive.processes() == {}
    assert list(drive.temporary.glob("signet-*")) == []
    report = drive.folder / "report"
    assert [file.name for file in report.glob("*.jsonl")] == ["plain.jsonl"]
    marks = [mark.name for mark in trace.read(report / "plain.jsonl").marks]
    # Whether it stands there is for the machine to say: another test's run may hold the daemon's default port.
    marks = [name for name in marks if name != "unheard_port"]
    assert marks == ["scenario", "loaded", "step", "session_key", "step", "model", "step", "left", "scenario_end"]
    written = json.loads((report / "report.json").read_bytes())
    jsonschema.Draft202012Validator(document("report/signet-report-1.schema.json")).validate(written)
    assert written["exit"] == 0
    assert [listed["file"] for listed in written["traces"]] == [str(report / "plain.jsonl")]
    assert {row["verdict"] for row in written["together"].values()} <= {"PASS", "NOT-APPLICABLE", "INCONCLUSIVE"}


BEYOND = {
    "step": "fault",
    "fault": {"kind": "delay", "delay_s": "beyond"},
    "match": {"path": "/api/hooks/session-start"},
}
WITHIN = {
    "step": "fault",
    "fault": {"kind": "delay", "delay_s": "within"},
    "match": {"path": "/api/hooks/user-prompt-submit"},
}
OFF = {"step": "fault_off"}
UNDISTURBED = {
    "plain": PLAIN["steps"],
    "resumed": [START, END, {"step": "resume", "session": "s1"}, END],
}
SLOW_END = {**BEYOND, "match": {"path": "/api/hooks/session-end"}}
SLOW_SAVE = {**BEYOND, "match": {"path": "/api/*/remember"}}
SAVE = {"step": "tool", "session": "s1", "tool": "memory_store", "arguments": {"content": "Refunds are approved."}}
HELD_BACK = {
    "beyond": [BEYOND, START, OFF, END],
    "within": [START, WITHIN, PROMPT, OFF, END],
    "end": [START, PROMPT, SLOW_END, END, OFF],
    "save": [START, PROMPT, SLOW_SAVE, SAVE, OFF, END],
}


@pytest.fixture(name="undisturbed", scope="module")
def drive_undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, trace.Trace]:
    """The recordings of one run in which no fault is on."""
    return record(Drive(tmp_path_factory.mktemp("undisturbed")), UNDISTURBED, "reference")


@pytest.fixture(name="held_back", scope="module")
def drive_held_back(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, trace.Trace]:
    """The recordings of one run in which answers are held back."""
    drive = Drive(tmp_path_factory.mktemp("held_back"))
    bounds = "[targets.reference]\nbounds_s = {start = 3.0, prompt = 2.0, end = 0.5}\n"
    (drive.folder / "signet-conformance.toml").write_text(bounds)
    return record(drive, HELD_BACK, "reference", statuses=(1,))


def record(
    drive: Drive, scenarios: Mapping[str, Sequence[Mapping[str, object]]], target: str, statuses: Sequence[int] = (0,)
) -> Mapping[str, trace.Trace]:
    """Drive a target through scenarios, to one of these exit statuses; the recordings by scenario."""
    document = {"scenarios": [{"name": name, "steps": steps} for name, steps in scenarios.items()]}
    done = drive.perform("--signet-report=report", "--target", target, scenario=document)
    assert done.status in statuses, done.everything
    return {name: trace.read(drive.folder / "report" / f"{name}.jsonl") for name in scenarios}


def delays(recording: trace.Trace) -> list[float]:
    """How long the faults of a recording hold answers back."""
    return [mark.data["delay_s"] for mark in recording.marks if mark.name == "fault" and mark.data.get("on")]


def test_prompt_of_a_driven_run_is_told_what_the_daemon_knows(undisturbed: Mapping[str, trace.Trace]) -> None:
    """The daemon knows something of the project that scenarios ask about: else nothing shows what becomes of it."""
    (answer,) = [
        each.response.body.json
        for each in undisturbed["plain"].exchanges
        if each.response is not None and each.request.path == "/api/hooks/user-prompt-submit"
    ]
    assert "PostgreSQL 16 behind pgbouncer" in answer["inject"]


def test_answer_is_held_back_beyond_the_bound_of_the_hook_that_it_is_to(held_back: Mapping[str, trace.Trace]) -> None:
    """A start is held back beyond the bound of starts, however long the target takes over a prompt."""
    assert delays(held_back["beyond"]) == [5.0]


def test_answer_that_shall_be_in_time_comes_after_half_of_the_bound(held_back: Mapping[str, trace.Trace]) -> None:
    """A prompt is held back for half of the bound of prompts."""
    assert delays(held_back["within"]) == [1.0]


def test_end_is_held_back_beyond_a_bound_that_the_target_declares(held_back: Mapping[str, trace.Trace]) -> None:
    """A connector that waits for ever at its ends is found out in the time that it has for them."""
    assert delays(held_back["end"]) == [2.5]


def test_save_is_not_held_back_where_no_bound_is_declared(held_back: Mapping[str, trace.Trace]) -> None:
    """Nothing could be said of how long the connector waits, so the run does not wait either."""
    assert delays(held_back["save"]) == []


def test_mark_of_a_resume_comes_before_what_the_connector_sends(undisturbed: Mapping[str, trace.Trace]) -> None:
    """A program that tells what it hands over at a start says nothing at a resume."""
    recorded = undisturbed["resumed"]
    (step,) = [mark.seq for mark in recorded.marks if mark.name == "step" and mark.data.get("step") == "resume"]
    hooks = [exchange for exchange in recorded.exchanges if exchange.request.path == "/api/hooks/session-start"]
    assert hooks[0].seq < step < hooks[1].seq


LAZY = """[targets.lazy]
command = ["{python}", "-m", "signet_reference_harness", "--start-at-prompt"]
agents = ["atlas-agent"]
harness = "reference"
bounds_s = {start = 15.0, prompt = 5.0}
"""
CLAIMED = {"step": "fault", "fault": {"kind": "status", "status": 409}, "match": {"path": "/api/hooks/session-start"}}
EMPTY = {"step": "fault", "fault": {"kind": "empty"}, "match": {"path": "/health"}}
CLEAR = {"step": "clear", "session": "s1"}


def say(text: str) -> dict[str, str]:
    """A turn."""
    return {"step": "prompt", "session": "s1", "text": text, "reply": "Yes."}


LATE = {**say("One?"), "for_late_start": True}
FAULTS_OF_A_START = {
    "met-at-the-start": ("reference", [CLAIMED, START, OFF, say("One?"), say("Two?"), END], ["start"]),
    "met-in-the-first-turn": ("lazy", [CLAIMED, START, OFF, say("One?"), say("Two?"), END], ["start", "prompt"]),
    "no-turn": ("lazy", [CLAIMED, START, OFF, END], ["start"]),
    "turn-left-out": ("reference", [CLAIMED, START, OFF, LATE, END], ["start"]),
    "turn-for-it": ("lazy", [CLAIMED, START, OFF, LATE, END], ["start", "prompt"]),
    "met-by-no-request": (
        "reference",
        [START, say("One?"), EMPTY, CLEAR, OFF, say("Two?"), say("Three?"), END],
        ["clear", "prompt"],
    ),
}
"""Scenarios with their target, and the steps while which the fault is on."""


@pytest.fixture(name="faulty", scope="module")
def drive_faults(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, trace.Trace]:
    """The recordings of the faults of a start, of one run for each target."""
    recorded: dict[str, trace.Trace] = {}
    for target in ("reference", "lazy"):
        drive = Drive(tmp_path_factory.mktemp(target))
        (drive.folder / "signet-conformance.toml").write_text(LAZY)
        scenarios = {name: steps for name, (whose, steps, _) in FAULTS_OF_A_START.items() if whose == target}
        # Where each start is refused, nothing may be sent that a daemon accepts.
        recorded |= record(drive, scenarios, target, statuses=(0, 3))
    return recorded


@pytest.mark.parametrize("name", FAULTS_OF_A_START)
def test_fault_of_a_start_waits_for_a_request_until_the_turn_is_over(
    faulty: Mapping[str, trace.Trace], name: str
) -> None:
    """What a connector sends with its first prompt meets it there; afterwards it is off, met or not."""
    target, steps, around = FAULTS_OF_A_START[name]
    recorded = faulty[name]
    is_on, met = False, []
    for mark in recorded.marks:
        if mark.name == "fault":
            is_on = bool(mark.data["on"])
        elif mark.name == "step" and is_on:
            met.append(mark.data["step"])
    assert met == around
    assert not is_on
    said = [mark.data["text"] for mark in recorded.marks if mark.name == "step" and mark.data["step"] == "prompt"]
    assert ("One?" in said) is ((target, LATE in steps) != ("reference", True) and len(steps) > 4)
    assert [each.request.path for each in recorded.exchanges if each.fault] == (
        [CLAIMED["match"]["path"]] if CLAIMED in steps and len(steps) > 4 else []
    )


ENDS_LATE = """
[targets.late]
command = ["{python}", "%s"]
agents = ["atlas-agent"]
harness = "late"
"""


def test_what_a_connector_tells_after_its_harness_belongs_to_its_scenario(drive: Drive) -> None:
    """A recording is open while a process of the connector may send what it owes; no other scenario is told of it."""
    (drive.folder / "signet-conformance.toml").write_text(ENDS_LATE % Path(__file__).with_name("late_end.py"))
    recordings = record(drive, {name: [START, END] for name in ("first", "second", "third", "fourth", "fifth")}, "late")
    for recording in recordings.values():
        hooks = [each for each in recording.exchanges if each.request.path.startswith("/api/hooks/")]
        assert [each.request.path.rpartition("/")[2] for each in hooks] == ["session-start", "session-end"]
        assert len({each.request.body.json["sessionKey"] for each in hooks}) == 1


def test_traces_that_a_failure_names_stay(drive: Drive) -> None:
    """Without --signet-report the traces of a run that fails are kept, so that the replay it names is possible."""
    (drive.folder / "conftest.py").write_text(BREACHED_RULE)
    done = drive.perform("-k", "ACME", scenario=PLAIN)
    assert done.status == 1, done.everything
    kept = list(drive.temporary.glob("signet-traces-*/plain.jsonl"))
    assert len(kept) == 1
    assert f"signet-conformance check {kept[0]} -k ACME-HTTP-001" in done.out
    assert f"traces: {kept[0].parent}" in done.out


@pytest.mark.parametrize("generated", ["0", "20"])
def test_connector_that_cannot_be_started(drive: Drive, generated: str) -> None:
    """A driver that ends when it is greeted leaves nothing to test: status 3, with what it said at its end."""
    command = '["{python}", "-c", "raise SystemExit(\'no module acme\')"]'
    (drive.folder / "signet-conformance.toml").write_text(f"[targets.mine]\ncommand = {command}\n")
    done = drive.perform("--target=mine", "--scenarios", generated)
    assert done.status == 3, done.everything
    assert "target mine ended with status 1" in done.err, done.everything
    assert "no module acme" in done.err
    assert "Traceback" not in done.everything


def test_what_failed_last_time_is_performed_first(drive: Drive) -> None:
    """`--lf` and a node id end as soon as the scenario that showed the breach shows it again; all are for asking."""
    make_stoppable(drive.folder)
    other = {"session": "s2", "agent": 1}
    mixed = {"name": "mixed", "steps": [START, {**START, **other}, PROMPT, END, {**END, "session": "s2"}]}
    (drive.folder / "two.json").write_text(json.dumps({"scenarios": [PLAIN, mixed]}))

    def performed(*words: str) -> set[str]:
        report = drive.folder / f"report{len(list(drive.folder.glob('report*')))}"
        words = ("--target=mine", "--scenario=two.json", f"--signet-report={report}", *words)
        run = drive.perform(*words, XDG_CACHE_HOME=str(drive.folder / "cache"))
        assert run.status == 1, run.everything
        assert "SIG-AGENT-001" in run.out
        return {path.stem for path in report.glob("*.jsonl")}

    node = "signet-conformance/mine::SIG-AGENT-001"
    assert performed("-k", "SIG-AGENT-001 or SIG-AGENT-002", "--signet-all") == {"plain", "mixed"}
    assert performed("--lf") == {"mixed"}
    assert performed(node) == {"mixed"}
    assert performed(node, "--signet-all") == {"plain", "mixed"}


def test_run_that_is_stopped_shows_what_it_found(drive: Drive) -> None:
    """The findings of the scenarios so far stand before the word of the interruption; the traces stay."""
    make_stoppable(drive.folder)
    with drive.begin("--target=mine", "--scenario=both.json", "--signet-report=report") as run:
        report = drive.folder / "report"
        wait_until(lambda: is_stoppable(report), "the compaction never ended, or the other scenario never began")
        run.send_signal(signal.SIGTERM)
        out, err = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 2, out + err
    assert out.index("SIG-CMP-002") < out.index("interrupted after 1 of 2 scenarios; not performed: lasting")
    assert "Traceback" not in out + err
    assert json.loads((report / "report.json").read_bytes())["together"]["SIG-CMP-002"]["verdict"] == "FAIL"


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 2), (signal.SIGTERM, 2), (signal.SIGHUP, 2), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_run_that_is_cut_off_leaves_no_child(drive: Drive, number: signal.Signals, status: int) -> None:
    """Interrupted or killed while scenarios run, daemon, recorder and harness end with pytest."""
    with drive.begin(scenario=LASTING) as run:

        def is_under_way() -> bool:
            recorded = drive.temporary.glob("signet-traces-*/lasting.jsonl")
            # The step's own mark: on a busy machine the harness may find the daemon away and send no prompt.
            return any(b'"step":"prompt"' in trace.read_bytes() for trace in recorded)

        wait_until(is_under_way, "the scenario never got to a prompt")
        processes = drive.processes()
        with Watched(processes) as watched:
            for part in PARTS:
                assert any(part in line for line in processes.values()), (part, processes)
            assert watched.left(0.0) == list(processes)
            run.send_signal(number)
            out, err = run.communicate(timeout=PATIENCE_S)
            assert watched.left() == []
    assert run.returncode == status, out + err
    assert "Traceback" not in out + err
    assert "INTERNALERROR" not in out + err
    if number != signal.SIGKILL:
        assert "interrupted: nothing was judged" in out
        assert "nothing was tested" not in out
        assert ".py:" not in out
        assert list(drive.temporary.glob("signet-*")) == []
