"""Facts about `signet-conformance record` and `daemon`, as real processes on loopback."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from signet_conformance.trace import read
from tests.support.command_line import Process

COMMAND = [sys.executable, "-m", "signet_conformance.cli"]
DEAD = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def daemon() -> Iterator[str]:
    """The URL of an embedded daemon run by `signet-conformance daemon`, which must end with 0 on Ctrl-C."""
    words = [*COMMAND, "daemon"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        try:
            assert child.stdout is not None
            yield json.loads(child.stdout.readline())["url"]
            child.send_signal(signal.SIGINT)
            assert child.wait(30) == 0
        finally:
            child.kill()


@pytest.mark.parametrize("background", [False, True], ids=["", "background"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_recording_ends_on_a_signal_with_a_whole_trace(
    daemon: str, tmp_path: Path, number: signal.Signals, background: bool
) -> None:
    """The recorder's address is told first; the end names the trace, counts exchanges and says how to check it.

    In the background of a script a program is begun with interruptions ignored.
    """
    words = [*COMMAND, "record", "--upstream", daemon, "--out", "run.jsonl", "--agent", "atlas", "--token"]
    words += ["--connector-release", "1.2.0", "--host-program", "openclaw", "--host-release", "2026.9.6"]
    words = ["/bin/sh", "-c", "trap '' INT; exec \"$@\"", "sh", *words] if background else words
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            told = [child.stdout.readline() for _ in range(4)]
            address = told[2].strip().removeprefix("export SIGNET_DAEMON_URL=")
            with urllib.request.urlopen(f"{address}/health", timeout=30) as answer:  # noqa: S310  our own recorder
                assert answer.status == 200
            child.send_signal(number)
            rest, complaints = child.communicate(timeout=30)
        finally:
            child.kill()
    assert child.returncode == 0, complaints
    assert f"1 exchange in {tmp_path / 'run.jsonl'}" in rest
    assert "check it: signet-conformance check run.jsonl" in rest
    trace = read(tmp_path / "run.jsonl")
    assert [exchange.request.path for exchange in trace.exchanges] == ["/health"]
    assert trace.header.declared.agents == ("atlas",)
    assert trace.header.declared.token
    header = trace.header
    assert (header.connector_release, header.host, header.host_release) == ("1.2.0", "openclaw", "2026.9.6")


def test_a_daemon_that_is_down_is_reported_before_anything_is_written(process: Process, tmp_path: Path) -> None:
    """Without a daemon at --upstream, the command ends with 2 and the recorder's message, and writes no file."""
    done = process("record", "--upstream", DEAD, "--out", "run.jsonl")
    assert done.returncode == 2
    assert "no daemon answers" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_existing_trace_is_not_overwritten(process: Process, tmp_path: Path) -> None:
    """An existing file stays as it is, and the command ends with 2."""
    (tmp_path / "run.jsonl").write_text("mine")
    done = process("record", "--upstream", DEAD, "--upstream-may-be-down", "--out", "run.jsonl")
    assert done.returncode == 2
    assert "run.jsonl" in done.stderr
    assert (tmp_path / "run.jsonl").read_text() == "mine"


@pytest.mark.parametrize("out", ["run.jsonl", "no/such/folder/run.jsonl", "."])
def test_a_trace_that_cannot_be_written_is_reported_before_the_daemon_is_called(
    process: Process, tmp_path: Path, out: str
) -> None:
    """The error is about --out, even if no daemon answers at --upstream; nothing is left behind."""
    (tmp_path / "run.jsonl").write_text("mine")
    done = process("record", "--upstream", DEAD, "--out", out)
    assert done.returncode == 2
    assert "no daemon answers" not in done.stderr
    assert out in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["run.jsonl"]


def test_a_port_in_use_is_reported(daemon: str, process: Process) -> None:
    """The port of a running daemon ends the recorder, and a second daemon, with 2 and its number."""
    port = daemon.rsplit(":", 1)[1]
    for words in (("record", "--upstream", daemon, "--out", "run.jsonl"), ("daemon",)):
        done = process(*words, "--port", port)
        assert done.returncode == 2
        assert port in done.stderr
        assert "Traceback" not in done.stderr


def test_an_address_that_others_can_reach_is_refused(process: Process) -> None:
    """The embedded daemon listens only on loopback unless an option allows more."""
    done = process("daemon", "--host", "0.0.0.0")  # noqa: S104  refused
    assert done.returncode == 2
    assert "--allow-remote" in done.stderr


def test_a_recording_that_is_gone_is_not_to_be_checked(daemon: str, tmp_path: Path) -> None:
    """The status is 4, and the message says what was lost."""
    words = [*COMMAND, "record", "--upstream", daemon, "--out", "run.jsonl"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            while "Ctrl-C" not in child.stdout.readline():
                pass
            (tmp_path / "run.jsonl").unlink()
            child.send_signal(signal.SIGINT)
            rest, complaints = child.communicate(timeout=30)
        finally:
            child.kill()
    assert child.returncode == 4
    assert "check it" not in rest
    assert "the trace was deleted while it was written" in complaints
