"""A task that a signal or its time limit ends: at whatever point, the session ends and the summary says why."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from signet_reference_harness.headless.session_file import read_session
from signet_reference_harness.providers.completion import CompletionResult
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.providers.settings import ProviderSettings
from tests.reference_harness.llm_server.served import Serve
from tests.reference_harness.recording_daemon import Answer, RecordingDaemon

from .conftest import WHOLE_TURN, Do, model
from .test_task import ClosesBadly


def test_a_task_that_is_ended_while_it_waits_for_its_prompt_has_a_summary(project: Path) -> None:
    """SIGTERM before anything has begun: cancelled, with its usual exit status."""
    summary, pipe = project / "cancelled.json", project / "prompt"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "signet_reference_harness.cli", "run", "--prompt-file", str(pipe)]
    # The pipe opens once the task reads.
    with subprocess.Popen([*command, "--summary", str(summary)], cwd=project) as process, pipe.open("wb"):
        process.send_signal(signal.SIGTERM)
        status = process.wait()
    assert (status, json.loads(summary.read_text())["status"]) == (143, "cancelled")


def test_the_time_limit_holds_while_the_prompt_is_read(project: Path) -> None:
    """Nobody writes into the pipe: the task ends as one that took too long, before anything has begun."""
    summary, pipe = project / "late.json", project / "prompt"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "signet_reference_harness.cli", "run", "--prompt-file", str(pipe)]
    done = subprocess.run([*command, "--summary", str(summary), "--timeout-ms", "50"], cwd=project, check=False)
    assert (done.returncode, json.loads(summary.read_text())["status"]) == (124, "timeout")


def test_the_time_limit_holds_while_the_daemon_is_silent(
    do: Do, daemon: RecordingDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its health is not waited for any longer than that; nothing has begun, so the id is free."""
    monkeypatch.setenv("SIGNET_HEALTH_TIMEOUT", "60000")
    daemon.always["/health"] = Answer(fault="hang")
    done = do(prompt="Hello.", run_id="r1", timeout_ms=200, **model("http://127.0.0.1:9"))
    assert (done.status, done.summary["status"], daemon.paths()) == (124, "timeout", []), done.told
    del daemon.always["/health"]
    assert do(prompt="Hello.", run_id="r1", provider=f"{ClosesBadly.__module__}:ClosesBadly", model="m").status == 0


class TerminatedAtItsClose(ScriptedProvider):
    """A provider that answers; the process gets SIGTERM while it is closed."""

    def __init__(self, settings: ProviderSettings) -> None:  # noqa: ARG002 - what a factory is given
        super().__init__([CompletionResult(content="Hi.")])

    async def aclose(self) -> None:
        """Send it."""
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_while_connections_close_changes_nothing(do: Do, daemon: RecordingDaemon) -> None:
    """The turn is over and its session ended: the task is done, and its summary says so."""
    done = do(prompt="Hello.", provider=f"{__name__}:TerminatedAtItsClose", model="m")
    assert (done.status, done.summary["status"], daemon.paths()[-1]) == (0, "done", "session-end")


def test_a_reader_that_reads_nothing_does_not_hold_the_task_up(
    project: Path, daemon: RecordingDaemon, serve: Serve
) -> None:
    """Its pipe is full: session and summary are done meanwhile, and SIGTERM ends the wait for the reader."""
    summary = project / "summary.json"
    url = serve(turns=[{"content": [{"type": "text", "text": ["word " * 40_000]}]}]).url
    command = [sys.executable, "-m", "signet_reference_harness.cli", "run", "Count.", "--output-format", "text"]
    command += ["--provider", "ollama", "--model", "scripted", "--base-url", url, "--summary", str(summary)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=project) as process:
        while process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
            if summary.exists():
                process.send_signal(signal.SIGTERM)
        # The last signal may come when nothing is left to be waited for.
        assert process.returncode in (143, -signal.SIGTERM)
    assert (json.loads(summary.read_text())["status"], daemon.paths()[-1]) == ("done", "session-end")


def test_a_task_that_takes_too_long_is_124(do: Do, daemon: RecordingDaemon, serve: Serve) -> None:
    """The turn is cancelled, what arrived is kept, and the session is ended."""
    served = serve(turns=[{"content": "One two three", "chunk_delay_ms": 60_000}])
    done = do(prompt="Count.", timeout_ms=3_000, session="slow", **model(served.url))
    assert (done.status, done.summary["status"], done.summary["outcome"]) == (124, "timeout", "cancelled")
    assert daemon.paths() == WHOLE_TURN
    assert "--timeout-ms 3000" in done.told[0][0]
    kept = read_session(Path(done.summary["session_file"])).turns
    assert kept[0] == ("user", "Count.")
    assert kept[1][1].startswith("One")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_task_that_is_interrupted_ends_its_session(
    project: Path, daemon: RecordingDaemon, serve: Serve, number: signal.Signals, status: int
) -> None:
    """The turn is given up, the daemon sees the end, the summary says cancelled."""
    served = serve(turns=[{"content": "One two three", "chunk_delay_ms": 60_000}])
    summary = project / "cancelled.json"
    command = [sys.executable, "-m", "signet_reference_harness.cli", "run", "Count.", "--output-format", "stream-json"]
    command += ["--provider", "ollama", "--model", "scripted", "--base-url", served.url, "--summary", str(summary)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=project, text=True) as process:
        assert process.stdout is not None
        assert [json.loads(process.stdout.readline())["type"] for _ in range(2)] == ["run.started", "text"]
        process.send_signal(number)
        process.stdout.read()
        assert process.wait() == status
    assert json.loads(summary.read_text())["status"] == "cancelled"
    assert daemon.paths() == WHOLE_TURN
