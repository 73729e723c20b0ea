"""A scripted model and a recording daemon for headless tasks, and the one way to perform one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from signet_reference_harness.run import perform
from signet_reference_harness.run.inputs import Options
from tests.reference_harness.llm_server.conftest import scripted_model, serve
from tests.reference_harness.recording_daemon import RecordingDaemon

__all__ = ["scripted_model", "serve"]

WHOLE_TURN = ["session-start", "user-prompt-submit", "recall", "session-end"]


def model(url: str) -> dict[str, Any]:
    """The options that name the scripted model."""
    return {"provider": "ollama", "base_url": url, "model": "scripted"}


@dataclass
class Done:
    """What a task left: its exit status, its summary, what it wrote and what a person was told."""

    status: int
    summary: dict[str, Any]
    out: str
    err: str
    told: list[tuple[str, str | None]] = field(default_factory=list)


Do = Callable[..., Done]


@pytest.fixture
def project(tmp_path: Path, daemon: RecordingDaemon, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of an agent of that daemon. What the machine's environment says of Signet is not seen."""
    for variable, value in {
        "SIGNET_DAEMON_URL": daemon.origin,
        "SIGNET_AGENT_ID": "atlas",
        "SIGNET_PATH": str(tmp_path / "workspace"),
        "SIGNET_HARNESS_STATE_DIR": str(tmp_path / "state"),
        "SIGNET_SESSION_START_TIMEOUT": "5000",
        "SIGNET_PROMPT_SUBMIT_TIMEOUT": "5000",
        "SIGNET_HEALTH_TIMEOUT": "5000",
    }.items():
        monkeypatch.setenv(variable, value)
    folder = tmp_path / "acme"
    folder.mkdir()
    return folder


@pytest.fixture
def do(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Do:
    """Performs a task with the options given, in that project."""
    summary = tmp_path / "summary.json"

    def run(**options: Any) -> Done:
        told: list[tuple[str, str | None]] = []
        given: dict[str, Any] = {"cwd": project, "summary": summary, **options}
        status = perform(Options(**given), lambda what, remedy: told.append((what, remedy)))
        written = json.loads(summary.read_text()) if summary.is_file() else {}
        captured = capsys.readouterr()
        return Done(status, written, captured.out, captured.err, told)

    return run
