"""`signet-harness setup` finds what a session needs, proposes what lacks, and overwrites nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from signet_reference_harness.cli import setup as module
from signet_reference_harness.errors import ConfigError
from tests.reference_harness.llm_server.conftest import scripted_model, serve
from tests.reference_harness.llm_server.served import Serve
from tests.reference_harness.recording_daemon import Answer, RecordingDaemon

__all__ = ["scripted_model", "serve"]

KEY = "sk-planted-51aa"


@pytest.fixture
def looked(daemon: RecordingDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace of a machine with that daemon, without keys, whose only server of models is at port 9."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "SIGNET_HARNESS_PROVIDER", "SIGNET_HARNESS_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SIGNET_DAEMON_URL", daemon.origin)
    monkeypatch.setenv("SIGNET_HEALTH_TIMEOUT", "5000")
    monkeypatch.setenv("SIGNET_PATH", str(tmp_path / "workspace"))
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    monkeypatch.setattr(module, "SERVERS", (("ollama", ""),))
    monkeypatch.setattr(module, "LOOKUP_S", 10.0)
    return tmp_path / "workspace"


def run(*options: str) -> Result:
    """Set up, as the command does it."""
    return CliRunner().invoke(module.setup, options, standalone_mode=False)


def test_a_local_model_is_found_and_proposed(looked: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --write the proposal is the agent's file, and a second look finds all that is needed."""
    monkeypatch.setenv("OLLAMA_HOST", serve(turns=[]).url)
    done = run()
    assert (done.return_value, looked.exists()) == (1, False)
    assert "daemon: " in done.output
    assert "proposal for" in done.output
    assert run("--write").return_value == 0
    assert "provider: ollama" in (looked / "agent.yaml").read_text()
    again = run()
    assert (again.return_value, "runtime.provider in" in again.output) == (0, True)


def test_what_is_there_is_not_overwritten(looked: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent's file that names no model stays as it is; the lines for it are said."""
    monkeypatch.setenv("OLLAMA_HOST", serve(turns=[]).url)
    looked.mkdir()
    (looked / "agent.yaml").write_text("version: 1\n")
    refused = run("--write").exception
    assert isinstance(refused, ConfigError)
    assert "provider: ollama" in (refused.remedy or "")
    assert (looked / "agent.yaml").read_text() == "version: 1\n"


def test_a_key_is_found_and_never_shown(looked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its vendor is proposed, under a name of a model that the person fills in."""
    assert "set ANTHROPIC_API_KEY or OPENAI_API_KEY" in run().output
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    shown = run().output
    assert "OPENAI_API_KEY is set" in shown
    assert "provider: openai\n" in shown
    assert KEY not in shown
    assert not looked.exists()


@pytest.mark.usefixtures("looked")
def test_a_daemon_that_refuses_is_told(daemon: RecordingDaemon) -> None:
    """The same words as those of a task that cannot begin."""
    daemon.always["/health"] = Answer({"error": "unauthorized"}, 401)
    assert "refuses this harness" in run().output
