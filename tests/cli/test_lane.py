"""Facts about `signet-conformance lane`, run as the action runs it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from signet_conformance.outcome import known_failures
from signet_conformance.outcome.baseline_documents import Entry
from tests.support.command_line import Invoke

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "ci" / "action" / "lane.sh"
Lane = Callable[..., "subprocess.CompletedProcess[str]"]


def environment(folder: Path, **inputs: str) -> dict[str, str]:
    """The environment that a runner gives the action's script; the kit is installed already."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "SIGNET_"))}
    return {
        **inherited,
        "GITHUB_ACTIONS": "true",
        "GITHUB_WORKSPACE": str(folder),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        "SIGNET_LANE_PYTHON": sys.executable,
        "SIGNET_LANE_SCENARIOS": "0",
        **{f"SIGNET_LANE_{name.upper()}": value for name, value in inputs.items()},
    }


def lane(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the script of the action in a workspace."""
    return subprocess.run(
        ["/bin/sh", str(SCRIPT)], cwd=folder, env=environment(folder, **inputs),
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def until(met: Callable[[], bool]) -> None:
    """Wait for a condition, three minutes at most."""
    deadline = time.monotonic() + 180
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether a process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def outputs(folder: Path) -> dict[str, str]:
    """The outputs of the step."""
    return dict(line.split("=", 1) for line in (folder / "output").read_text().splitlines())


@pytest.fixture(name="workspace")
def make_workspace(tmp_path: Path) -> Path:
    """A repository with a connector that forgets its agent when a session ends."""
    shutil.copytree(ROOT / "examples" / "driver-python", tmp_path / "connector")
    source = tmp_path / "connector" / "connector.py"
    text = source.read_text()
    assert text.count("{**body, **members}") == 1
    forgetful = '{k: v for k, v in {**body, **members}.items() if (hook, k) != ("session-end", "agentId")}'
    source.write_text(text.replace("{**body, **members}", forgetful))
    return tmp_path


@pytest.mark.usefixtures("few_scripted")
def test_a_breach_is_reported_everywhere(workspace: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """A breach ends the lane with 1 and shows in annotations, outputs, summary and traces; so does a stale entry."""
    today = datetime.now(UTC).date()
    entry = Entry("SIG-HTTP-001", "example-python", "ada", "mended", today, today + timedelta(days=400))
    (workspace / "connector" / "known.json").write_text(known_failures.baseline_document([entry]))
    for name in os.environ.keys() - environment(workspace).keys():
        monkeypatch.delenv(name)
    given = environment(workspace, target="example-python", working_directory="connector", baseline="known.json")
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    failed = invoke("lane")
    assert failed.exit_code == 1, failed.output
    annotated = [line for line in failed.stdout.splitlines() if line.startswith("::error ")]
    assert any("SIG-AGENT-001" in line and "file=connector/signet-report/" in line for line in annotated)
    (stale,) = [line for line in annotated if "file=connector/known.json" in line]
    assert "SIG-HTTP-001" in stale
    report = workspace / "connector" / "signet-report"
    assert (report / "report.json").is_file()
    assert list(report.glob("*.jsonl"))
    said = outputs(workspace)
    assert (said["status"], said["verdict"], said["report"]) == ("1", "breached", "connector/signet-report")
    # One cause is one annotation, which names the requirements that it breaches.
    annotated.remove(stale)
    failing = {name for line in annotated for name in re.findall(r"SIG-[A-Z]+-\d+", line.partition("::")[0] + line)}
    assert int(said["fail"]) == len(failing)
    summary = (workspace / "summary").read_text()
    assert summary.startswith("## Signet conformance: breached\n\nTarget `example-python`")
    assert "SIG-AGENT-001" in summary
    assert str(workspace) not in summary
    closing = failed.stdout.splitlines()[-1]
    assert closing.startswith("lane: example-python breached: ")
    assert closing.endswith(", 1 stale entry (exit 1)")
    assert "(exit 1, failed by 1 stale entry)" in summary


def test_a_refused_input_starts_nothing(workspace: Path) -> None:
    """A value that a shell would execute ends the lane with 2, and reaches neither shell nor run."""
    refused = lane(workspace, target="$(touch pwned)")
    assert refused.returncode == 2
    assert "error: SIGNET_LANE_TARGET" in refused.stderr
    assert refused.stdout.startswith("::error title=Signet conformance::SIGNET_LANE_TARGET")
    assert outputs(workspace) == {"status": "2", "verdict": "unusable"}
    assert not (workspace / "pwned").exists()


def test_an_earlier_report_decides_nothing(workspace: Path) -> None:
    """A report that is in the folder already ends the lane with 2: it is not this run's."""
    report = workspace / "connector" / "signet-report"
    report.mkdir()
    (report / "report.json").write_text('{"together": {}, "exit": 0}')
    refused = lane(workspace, target="example-python", working_directory="connector")
    assert refused.returncode == 2
    assert "error: SIGNET_LANE_REPORT" in refused.stderr
    assert outputs(workspace) == {"status": "2", "verdict": "unusable"}


def test_a_run_that_cannot_start_says_why(workspace: Path) -> None:
    """An unknown target is named in annotation and summary, not only in the log."""
    refused = lane(workspace, target="nobody", working_directory="connector")
    assert refused.returncode == 2
    assert "no target is called 'nobody'" in next(x for x in refused.stdout.splitlines() if x.startswith("::error "))
    assert "no target is called" in (workspace / "summary").read_text()
    assert outputs(workspace)["verdict"] == "unusable"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_cancelled_lane_leaves_nothing_running(workspace: Path, number: signal.Signals) -> None:
    """A signal ends the run and its processes, even one that ignores signals; the folder to upload is still set."""
    connector = workspace / "connector" / "driver.py"
    connector.write_text(
        "import os, pathlib, time\n"
        "pathlib.Path(__file__).with_name(f'started-{os.getpid()}').touch()\n"
        "time.sleep(3600)\n"
    )
    process = subprocess.Popen(
        ["/bin/sh", str(SCRIPT)], cwd=workspace, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=environment(workspace, target="example-python", working_directory="connector"),
    )  # fmt: skip
    try:
        until(lambda: any(connector.parent.glob("started-*")))
        process.send_signal(number)
        assert process.wait(60) == 130
        started = [int(path.name.partition("-")[2]) for path in connector.parent.glob("started-*")]
        until(lambda: not any(map(is_alive, started)))
    finally:
        process.kill()
        process.wait()
    assert outputs(workspace)["report"] == "connector/signet-report"
    assert outputs(workspace)["verdict"] == "cancelled"


def test_a_missing_interpreter_is_reported(workspace: Path) -> None:
    """The script ends with 2 and a remedy if the kit's interpreter does not exist."""
    refused = lane(workspace, target="example-python", python="/nowhere/python")
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (
        2,
        "error: SIGNET_LANE_PYTHON: there is no such interpreter",
    )


def test_the_help_lists_every_variable(invoke: Invoke) -> None:
    """--help lists each input with its default."""
    shown = invoke("lane", "--help").stdout
    assert "SIGNET_LANE_WORKING_DIRECTORY" in shown
    assert "[signet-report]" in shown
