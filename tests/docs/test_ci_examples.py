"""The examples for CI systems say what the kit understands."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from signet_conformance.cli.commands import commands
from tests.support.inner_pytest import run
from tests.support.trace_files import BREACHING, CONFORMING, write

ROOT = Path(__file__).resolve().parents[2]
CI = ROOT / "examples" / "ci"


def test_the_commit_hook_judges_recordings(tmp_path: Path) -> None:
    """The hook's entry takes the recordings that pre-commit appends."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    _, *words = shlex.split(hook["entry"])
    files = [str(write(tmp_path / name, CONFORMING)) for name in ("a.jsonl", "b.jsonl")]
    done = CliRunner().invoke(commands, [*words, *files])
    assert done.exit_code == 0, done.output


def test_the_gitlab_job_is_a_pytest_run(tmp_path: Path) -> None:
    """Pytest knows every option of its script, and JUnit's file is the one that the job hands on."""
    job = yaml.safe_load((CI / "gitlab-ci.yml").read_text(encoding="utf-8"))["signet-conformance"]
    (script,) = job["script"]
    words = shlex.split(script.replace("$CONNECTOR", "reference"))
    assert words[:3] == ["python", "-m", "pytest"]
    assert f"--junitxml={job['artifacts']['reports']['junit']}" in words
    done = run(tmp_path, *words[3:], "--collect-only", "-q")
    assert done.status == 0, done.everything
    assert "signet-conformance/reference::SIG-END-001" in done.out


@pytest.mark.parametrize(
    ("status", "report", "annotated"), [(0, True, "success"), (1, True, "error"), (2, False, None)]
)
def test_the_buildkite_step_annotates_and_keeps_the_status_of_the_run(
    status: int, report: bool, annotated: str | None, tmp_path: Path
) -> None:
    """An agent runs it with `bash -e -c`, which ends at the first command that fails."""
    (step,) = yaml.safe_load((CI / "buildkite.yml").read_text(encoding="utf-8"))["steps"]
    assert step["artifact_paths"] == ["signet-report/**/*"]
    written = "mkdir signet-report; echo it > signet-report/report.md" if report else ""
    programs = {
        ".signet/bin/signet-conformance": f"{written}\nexit {status}",
        "bin/buildkite-agent": 'echo "$@" > annotated; cat >> annotated',
    }
    for name, script in programs.items():
        program = tmp_path / name
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    done = subprocess.run(
        ["/bin/bash", "-e", "-c", step["command"][-1].replace("$$", "$")],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done
    annotation = tmp_path / "annotated"
    assert (annotation.read_text() if annotation.exists() else None) == (
        annotated and f"annotate --context signet --style {annotated}\nit\n"
    )


NIGHTLY = yaml.safe_load((CI / "nightly.yml").read_text(encoding="utf-8"))
LANE = yaml.safe_load((ROOT / "ci" / "action" / "action.yml").read_text(encoding="utf-8"))


def test_the_nightly_job_can_read_and_nothing_else() -> None:
    """So it opens no issue. The lane's inputs and outputs are those of the action."""
    assert NIGHTLY["permissions"] == {"actions": "read", "contents": "read"}
    (job,) = NIGHTLY["jobs"].values()
    (lane,) = [step for step in job["steps"] if step.get("id") == "lane"]
    assert set(lane["with"]) <= set(LANE["inputs"])
    assert "report" in LANE["outputs"]
    assert lane["continue-on-error"] is True


@pytest.mark.parametrize(
    ("night", "status", "said"), [("none", 0, "nothing to compare with"), ("same", 0, "Nothing"), ("better", 1, "new")]
)
def test_the_nightly_job_says_what_changed(night: str, status: int, said: str, tmp_path: Path) -> None:
    """The first night it compares nothing; later its status is that of the comparison."""
    (job,) = NIGHTLY["jobs"].values()
    script = job["steps"][-1]["run"]
    kit = tmp_path / "signet-conformance-lane" / "bin" / "signet-conformance"
    kit.parent.mkdir(parents=True)
    kit.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m signet_conformance.cli "$@"\n')
    gh = tmp_path / "gh"
    gh.write_text(
        f'#!/bin/sh\n[ {night} = none ] && exit 0\n[ "$2" = list ] && echo 7 || cp -r {tmp_path}/{night} before\n'
    )
    for program in (kit, gh):
        program.chmod(0o755)
    for name, exchanges in (("same", BREACHING), ("better", CONFORMING), ("now", BREACHING)):
        (tmp_path / name).mkdir()
        recording = write(tmp_path / name / "plain.jsonl", exchanges)
        CliRunner().invoke(commands, ["check", str(recording), "--json", "-o", str(tmp_path / name / "report.json")])
    given = {
        "RUNNER_TEMP": str(tmp_path),
        "REPORT": str(tmp_path / "now"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "ARTIFACT": "a",
    }
    repository = {"GITHUB_REPOSITORY": "a/b", "GITHUB_WORKFLOW": "w", "GITHUB_REF_NAME": "main"}
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", **given, **repository}
    done = subprocess.run(
        ["/bin/bash", "-e", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done
    assert said in (tmp_path / "summary").read_text()
