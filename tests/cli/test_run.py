"""Facts about `signet-conformance run` with a connector that is really driven."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema
import pytest

from signet_conformance import trace
from signet_conformance.children import forks
from signet_conformance.contract import document
from signet_conformance.engine import judge_run
from signet_conformance.finding import Verdict
from signet_conformance.scenarios.scenario import deciding, scripted
from tests.support.command_line import Invoke
from tests.support.drives import LASTING, PLAIN, Drive, is_stoppable, make_stoppable
from tests.support.processes import PATIENCE_S, Watched, wait_until

RUNNING = Path(__file__).parents[1] / "running"
SETTINGS = """
[targets.mine]
command = ["{python}", %s]
agents = ["atlas-agent", "beacon-agent"]
harness = "reference"
bounds_s = {start = 1.0, prompt = 1.0}
token = true
"""


def settings(*words: str | Path) -> str:
    """The settings of a target that is a Python program with arguments."""
    return SETTINGS % ", ".join(f'"{word}"' for word in words)


@pytest.fixture
def drive(tmp_path: Path) -> Drive:
    """A folder for runs in which importing pytest fails."""
    (tmp_path / "pytest.py").write_text("raise ImportError('there is no pytest here')\n")
    return Drive(tmp_path)


def finished(drive: Drive, *words: str, **options: object) -> tuple[int, str, str]:
    """Wait for the end; return status, standard output and standard error."""
    done = drive.command("run", *words, **options)
    assert "Traceback" not in done.everything, done.everything
    return done.status, done.out, done.err


def test_run_needs_no_pytest_and_leaves_nothing_behind(drive: Drive) -> None:
    """A conforming connector ends it with 0; no child, temporary file or trace is left."""
    with drive.begin_command("run", "reference", scenario=PLAIN) as run:
        out, err = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 0, out + err
    assert out.splitlines()[-1].startswith("conforming; ")
    assert "in 1 trace (exit 0)" in out
    assert "target reference" in err
    assert drive.processes() == {}
    assert list(drive.temporary.glob("signet-*")) == []


def test_report_has_every_format(drive: Drive) -> None:
    """The folder holds the traces and each format; the JSON on stdout is the same document, with the times."""
    status, out, err = finished(drive, "reference", "--report=report", "--json", "--profile", scenario=PLAIN)
    assert status == 0, out + err
    shown = json.loads(out)
    jsonschema.Draft202012Validator(document("report/signet-report-1.schema.json")).validate(shown)
    report = drive.folder / "report"
    assert {path.name for path in report.iterdir()} >= {"plain.jsonl", "report.json", "report.md", "report.html"}
    assert json.loads((report / "report.json").read_bytes())["together"] == shown["together"]
    parts = {row["part"] for row in shown["time_spent"]["parts"]}
    assert parts >= {"daemon-start", "recorder-start", "connector-start", "connector", "requests", "recorder"}
    assert set(shown["time_spent"]["cpu_s"]) == {"kit", "daemon", "recorder", "connector"}


def test_broken_scenario_is_replayed_by_the_command_that_is_named(drive: Drive) -> None:
    """The printed `run` command performs only the scenario that broke off."""
    (drive.folder / "signet-conformance.toml").write_text(settings(RUNNING / "unruly.py"))
    steps = PLAIN["steps"]
    ended = {"name": "ended", "steps": [steps[0], {**steps[1], "text": "end"}, steps[2]]}
    (drive.folder / "both.json").write_text(json.dumps({"scenarios": [PLAIN, ended]}))
    status, out, err = finished(drive, "mine", "--scenario=both.json")
    assert status == 4, out + err
    assert "ended broke off: target mine ended with status 7" in err
    assert "1 of 2 scenarios broke off (exit 4)" in out
    replay = next(line.partition("replay: ")[2] for line in out.splitlines() if "replay: " in line)
    words = shlex.split(replay)
    assert words == ["signet-conformance", "run", "mine", "--scenario", "signet-failures/ended.json"]
    status, out, err = finished(drive, *words[2:])
    assert status == 4, out + err
    assert "none of 1 scenarios could be performed; the first, ended" in err


def test_some_requirements_have_the_verdicts_of_the_whole_run(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`-k` performs the scripted scenarios that can decide a requirement, and finds the same breaches."""
    broken = RUNNING / "generated" / "broken_reference.py"
    # Forked like the reference itself: there is a process for each of many scenarios.
    programs = {**forks.PROGRAMS, str(broken): forks.PROGRAMS["signet_conformance.selftest.harness"]}
    monkeypatch.setattr(forks, "PROGRAMS", programs)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    defects = ("legacy_after_clear", "empty_repeat", "last_started_agent", "unnamed_compaction")
    (tmp_path / "signet-conformance.toml").write_text(settings(broken, *defects))
    done = invoke("run", "mine", "--scenarios=0", "--report=whole")
    assert done.exit_code == 1, done.output
    traces = {path.stem: trace.read(path) for path in (tmp_path / "whole").glob("*.jsonl")}
    whole = judge_run(list(traces.values())).together
    for name, judgement in whole.items():
        chosen = [traces[scenario.name] for scenario in deciding(scripted(), [name]) if scenario.name in traces]
        if judgement.verdict in (Verdict.FAIL, Verdict.WARN):
            assert judge_run(chosen, frozenset({name})).together[name].verdict is judgement.verdict, name
    assert whole["SIG-CMP-002"].verdict is Verdict.FAIL

    done = invoke("run", "mine", "-k", "SIG-CMP-002", "--report=one")
    assert done.exit_code == 1, done.output
    assert "FAIL SIG-CMP-002" in done.stdout
    assert "decided after 1 of" in done.stderr
    (shown,) = (tmp_path / "one").glob("*.jsonl")
    assert judge_run([traces[shown.stem]]).together["SIG-CMP-002"].verdict is Verdict.FAIL

    done = invoke("run", "mine", "-k", "SIG-CMP-002", "--all")
    assert done.exit_code == 1, done.output
    assert "FAIL SIG-CMP-002" in done.stdout
    folder = next(line.partition("traces: ")[2] for line in done.stdout.splitlines() if line.startswith("traces: "))
    performed = {path.stem for path in Path(folder).glob("*.jsonl")}
    assert {"compaction", "other-agent"} <= performed < set(traces)
    assert performed == {scenario.name for scenario in deciding(scripted(), ["SIG-CMP-002"])} & set(traces)
    assert f"in {len(performed)} traces (exit 1)" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_run_that_is_cut_off_leaves_no_child(drive: Drive, number: signal.Signals) -> None:
    """If it is interrupted during a scenario, daemon, recorder and harness end with it, and its traces are deleted."""
    with drive.begin_command("run", "reference", scenario=LASTING) as run:

        def is_under_way() -> bool:
            recorded = drive.temporary.glob("signet-traces-*/lasting.jsonl")
            return any(b'"step":"prompt"' in trace.read_bytes() for trace in recorded)

        wait_until(is_under_way, "the scenario never got to a prompt")
        with Watched(drive.processes()) as watched:
            run.send_signal(number)
            out, err = run.communicate(timeout=PATIENCE_S)
            assert watched.left() == []
    assert run.returncode == 130, out + err
    assert "interrupted: nothing was judged" in err
    assert "Traceback" not in out + err
    assert list(drive.temporary.glob("signet-*")) == []


@pytest.mark.parametrize(
    ("words", "where", "message"),
    [
        (["nobody"], "", "nobody"),
        (["reference", "--seed", "x"], "--seed", "'x' is not a whole number"),
        (["reference", "--scenarios", "-1"], "--scenarios", "'-1' is not a whole number"),
        (["reference", "--contract", "9.9"], "--contract", "9.9"),
        (["reference", "--daemon", ""], "--daemon", "is empty"),
        (["reference", "--scenario", "none.json"], "none.json", "cannot be read"),
        (["reference", "-k", "SIG-NONE"], "-k/--only", "no requirement is called 'SIG-NONE'"),
        (["reference", "--coverage-fail-under", "200"], "--coverage-fail-under", "200"),
        (["reference", "--coverage-fail-under", "half"], "--coverage-fail-under", "'half' is not a percentage"),
        (["reference", "--coverage-fail-under", "nan"], "--coverage-fail-under", "'nan' is not a percentage"),
        (["reference", "--owner", "me"], "", "--write-baseline FILE"),
    ],
)
def test_option_that_cannot_be_used_is_refused(drive: Drive, words: list[str], where: str, message: str) -> None:
    """The error names the option as `run` spells it, and a remedy; nothing is launched or left behind."""
    status, out, err = finished(drive, *words)
    assert status == 2, out + err
    assert err.startswith(f"error: {where}")
    assert message in err
    assert "\ntry: " in err
    assert "--signet-" not in err
    assert list(drive.temporary.glob("signet-*")) == []


def test_help_of_the_command_loads_nothing_that_drives() -> None:
    """The help imports neither Hypothesis, nor rich, nor pytest."""
    program = (
        "import sys; sys.argv[1:] = ['run', '--help']\n"
        "from signet_conformance.cli.commands import commands\n"
        "try: commands.main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'hypothesis', 'pytest', 'signet_conformance.running.workers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


def test_two_runs_never_share_a_report(invoke: Invoke, tmp_path: Path) -> None:
    """A folder that another run has claimed is refused before that run has written; another name is offered."""
    (tmp_path / "report").mkdir()
    (tmp_path / "report-2").mkdir()
    other = os.open(tmp_path / "report", os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        done = invoke("run", "reference", "--report=report")
    finally:
        os.close(other)
    assert done.exit_code == 2
    assert "--report report: another run writes its report there" in done.stderr
    assert "--report report-3" in done.stderr


def test_run_that_is_stopped_judges_what_was_performed(drive: Drive) -> None:
    """Findings, report and traces are those of the finished scenarios; `check` of the folder names the others."""
    make_stoppable(drive.folder)
    with drive.begin_command("run", "mine", "--scenario=both.json", "--report=report") as run:
        report = drive.folder / "report"
        wait_until(lambda: is_stoppable(report), "the compaction never ended, or the other scenario never began")
        with Watched(drive.processes()) as watched:
            run.send_signal(signal.SIGINT)
            out, err = run.communicate(timeout=PATIENCE_S)
            assert watched.left() == []
    assert run.returncode == 130, out + err
    assert "Traceback" not in out + err
    assert "SIG-CMP-002" in out
    assert "interrupted after 1 of 2 scenarios; not performed: lasting" in out
    assert json.loads((report / "report.json").read_bytes())["lacks"]["scenarios"] == ["lasting"]
    checked = drive.command("check", "report")
    assert "SIG-CMP-002" in checked.out
    assert "the user stopped the run" in " ".join(checked.everything.split())
    assert "incomplete: 1 scenario that broke off, with 1 FAIL" in checked.out
