"""The examples for CI systems say what the kit understands."""

from __future__ import annotations

import shlex
from pathlib import Path

import yaml
from click.testing import CliRunner

from signet_conformance.cli.commands import commands
from tests.support.inner_pytest import run
from tests.support.trace_files import CONFORMING, write

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


def test_the_buildkite_step_keeps_the_status_of_the_run() -> None:
    """The annotation comes between the run and its status."""
    (step,) = yaml.safe_load((CI / "buildkite.yml").read_text(encoding="utf-8"))["steps"]
    last = step["command"][-1].replace("$$", "$")
    assert last.index("signet-conformance run") < last.index("buildkite-agent annotate") < last.index("exit $status")
    assert step["artifact_paths"] == ["signet-report/**/*"]
