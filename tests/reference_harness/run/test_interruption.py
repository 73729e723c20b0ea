"""A task that a signal or its time limit ends: at whatever point, the session ends and the summary says why."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_reference_harness.messages import Message
from signet_reference_harness.providers import CompletionChunk, CompletionOptions, CompletionResult
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.providers.settings import ProviderSettings
from signet_reference_harness.run.interruption import Interruption
from signet_reference_harness.run.session_file import read_session
from tests.reference_harness.llm_server.served import Serve
from tests.reference_harness.recording_daemon import Answer, RecordingDaemon

from .conftest import WHOLE_TURN, Do, Done, model
from .test_refused_tasks import ClosesBadly


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


# On a slow machine a limit may be reached in a callback of the interpreter's own, which has Python warn.
anywhere = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@anywhere
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


def cut_off(do: Do, **options: Any) -> Done:
    """A task whose time limit is reached in its answer. On a busy machine a short limit is reached before a word."""
    for limit_ms in (500, 2_000, 8_000, 32_000, 128_000):
        done = do(prompt="Hello.", timeout_ms=limit_ms, **options)
        assert (done.status, done.summary["status"]) == (124, "timeout"), done.told
        if done.out:
            return done
    pytest.fail("no word came within 128 s")


class SaysTheSameForEver(ScriptedProvider):
    """A provider that floods, and never lets the event loop have its turn."""

    def __init__(self, settings: ProviderSettings) -> None:  # noqa: ARG002 - what a factory is given
        super().__init__([])

    async def stream(self, messages: Sequence[Message], options: CompletionOptions) -> AsyncIterator[CompletionChunk]:  # noqa: ARG002 - the base class names them
        """Say it, a little at a time."""
        while True:
            yield CompletionChunk("a")


@anywhere
def test_the_time_limit_holds_while_a_model_floods(do: Do, daemon: RecordingDaemon, tmp_path: Path) -> None:
    """Even one whose answer has no limit: the session ends, and what arrived is the reply."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "agent.yaml").write_text("runtime: {longest_answer: 1000000000000}")
    done = cut_off(do, provider=f"{__name__}:SaysTheSameForEver", model="m")
    assert set(done.out.strip()) == {"a"}
    assert daemon.paths()[-1] == "session-end"


@anywhere
def test_the_time_limit_holds_while_a_model_dribbles(do: Do, daemon: RecordingDaemon, serve: Serve) -> None:
    """Each word comes in time, and the answer never ends."""
    answer = "one more " * 10_000
    served = serve(turns=[{"content": answer, "chunk_delay_ms": 20}], when_out="repeat")
    done = cut_off(do, **model(served.url))
    assert answer.startswith(done.out.removesuffix("\n"))
    assert daemon.paths()[-1] == "session-end"


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


@pytest.mark.parametrize(
    ("number", "status", "said", "why"),
    [
        (signal.SIGTERM, 143, "cancelled", "ended by SIGTERM"),
        (signal.SIGINT, 130, "cancelled", "ended by SIGINT"),
    ],
)
def test_a_task_that_is_interrupted_ends_its_session(
    project: Path, daemon: RecordingDaemon, serve: Serve, number: signal.Signals, status: int, said: str, why: str
) -> None:
    """The turn is given up, what arrived is kept, the daemon sees the end, the summary and the last line say why."""
    served = serve(turns=[{"content": "One two three", "chunk_delay_ms": 60_000}])
    summary = project / "interrupted.json"
    command = [sys.executable, "-m", "signet_reference_harness.cli", "run", "Count.", "--output-format", "stream-json"]
    command += ["--provider", "ollama", "--model", "scripted", "--base-url", served.url, "--summary", str(summary)]
    command += ["--timeout-ms", "600000"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, cwd=project, text=True) as process:
        assert process.stdout is not None
        assert [json.loads(process.stdout.readline())["type"] for _ in range(2)] == ["run.started", "text"]
        process.send_signal(number)
        _, told = process.communicate()
    assert process.returncode == status
    assert why in told
    summarised = json.loads(summary.read_text())
    assert (summarised["status"], summarised["outcome"]) == (said, "cancelled")
    assert daemon.paths() == WHOLE_TURN
    asked, answered = read_session(Path(summarised["session_file"])).turns
    assert asked == ("user", "Count.")
    assert answered[1].startswith("One")


def test_a_signal_that_another_thread_gets_wakes_the_turn() -> None:
    """The system may hand it to any thread, and nothing else disturbs a turn that waits for its model."""
    interruption = Interruption(None)
    disturbed: list[bool] = []

    async def turn() -> None:
        asyncio.get_running_loop().call_later(30, disturbed.append, True)
        with interruption.handled():
            threading.Timer(0.1, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTERM)).start()
            await asyncio.Event().wait()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(turn())
    assert (interruption.signal, disturbed) == (signal.SIGTERM, [])
