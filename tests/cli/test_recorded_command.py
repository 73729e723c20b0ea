"""Facts about `signet-conformance record -- COMMAND`, with real daemons, recorders and commands."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from signet_conformance import targets
from signet_conformance.trace import read
from tests.support.command_line import Process
from tests.support.drives import Drive
from tests.support.processes import PATIENCE_S, Watched, wait_until

ASKS = """
import os, sys, urllib.request
print("asked", sys.stdin.read().strip(), "at", os.environ.get("SIGNET_PATH") is not None)
urllib.request.urlopen(os.environ["SIGNET_DAEMON_URL"] + "/health", timeout=30).close()
"""
STARTS = """
import os, urllib.request
body = b'{"harness": ""}'
headers = {"content-type": "application/json"}
url = os.environ["SIGNET_DAEMON_URL"] + "/api/hooks/session-start"
try: urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=30).close()
except OSError: pass
raise SystemExit(7)
"""
WAITS = """
import pathlib, signal, subprocess, sys, time
subprocess.Popen(["sh", "-c", "trap '' INT TERM HUP; sleep 600"])
def leave(number, frame):
    pathlib.Path("told").write_text(str(number))
    raise SystemExit(0)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, leave)
pathlib.Path("ready").write_text("")
while True:
    time.sleep(0.05)
"""


def test_the_remedy_comes_after_the_verdict(tmp_path: Path) -> None:
    """The remedy comes after the verdict, even in a file of both streams."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [sys.executable, "-m", "signet_conformance.cli", "record", "--out", "run.jsonl", "--", "true"],
        cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=buffered, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.stdout.endswith("(exit 3)\ntry: let the command call the address in SIGNET_DAEMON_URL\n"), done.stdout


def test_command_is_recorded_with_a_daemon_and_a_recorder_of_its_own(tmp_path: Path) -> None:
    """The command has our standard streams and the recorder's address; its recording is judged like any other."""
    done = subprocess.run(
        [sys.executable, "-m", "signet_conformance.cli", "record", "--out", "run.jsonl", "--agent", "atlas", "--",
         sys.executable, "-c", ASKS],
        cwd=tmp_path, input="twice\n", capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    # A probe alone tests nothing of a connector, and the run says so.
    assert done.returncode == 3, done.stdout + done.stderr
    assert done.stdout.startswith("asked twice at True\n")
    assert "nothing was tested: no hook or memory request was accepted in 1 trace (exit 3)" in done.stdout
    assert done.stderr.endswith("try: let the command call the address in SIGNET_DAEMON_URL\n")
    assert "1 exchange in " in done.stderr
    recorded = read(tmp_path / "run.jsonl")
    assert [exchange.request.path for exchange in recorded.exchanges] == ["/health"]
    assert recorded.header.declared.agents == ("atlas",)


def test_recording_can_be_watched_while_it_is_made(process: Process, tmp_path: Path) -> None:
    """The address of its page is printed before the command runs; the page ends with the recording."""
    done = process("record", "--watch", "--out", tmp_path / "run.jsonl", "--", sys.executable, "-c", STARTS)
    lines = done.stderr.splitlines()
    (address,) = [line for line in lines if line.startswith("watch it: http://127.0.0.1:")]
    assert lines.index(address) < next(place for place, line in enumerate(lines) if "ended with status 7" in line)


TELLS_ITS_AGENT = "import os; print('agent', os.environ.get('SIGNET_AGENT_ID'))"


@pytest.mark.parametrize(
    ("options", "environment", "agents", "told", "token"),
    [
        ((), {}, ("atlas-agent", "Beacon-Agent"), "atlas-agent", False),
        (("--agent", "ours", "--token"), {}, ("ours",), "ours", True),
        ((), {"SIGNET_AGENT_ID": "theirs", "SIGNET_TOKEN": "sig_sk_0123456789abcdef"}, ("theirs",), "theirs", True),
    ],
)
def test_profile_of_the_target_is_given_and_declared(
    options: tuple[str, ...],
    environment: dict[str, str],
    agents: tuple[str, ...],
    told: str,
    token: bool,
    process: Process,
    tmp_path: Path,
) -> None:
    """As in a run: harness, bounds and capabilities of the profile, its agent, and a token if there is one."""
    words = ("--target", "pi", *options, "--no-check", "--out", "run.jsonl", "--", sys.executable, "-c")
    done = process("record", *words, TELLS_ITS_AGENT, **environment)
    assert done.stdout == f"agent {told}\n", done.stderr
    declared = read(tmp_path / "run.jsonl").header.declared
    assert (declared.agents, declared.token, declared.harness) == (agents, token, "pi")
    assert declared.bounds_s == targets.load("pi").declared.bounds_s
    assert "hooks-remember" in (declared.capabilities or ())


def test_target_that_is_not_known_is_a_name(process: Process, tmp_path: Path) -> None:
    """The header names it, and the output says that no profile is used."""
    words = ("--target", "theirs", "--no-check", "--out", "run.jsonl", "--", sys.executable, "-c")
    done = process("record", *words, TELLS_ITS_AGENT)
    assert done.stdout == "agent None\n"
    assert "theirs is not a known target: the recording is named after it, and no profile is used" in done.stderr
    header = read(tmp_path / "run.jsonl").header
    assert (header.target, header.declared.agents) == ("theirs", ())


def test_status_is_that_of_the_recording_and_that_of_the_command_is_printed(process: Process) -> None:
    """A breach ends the command with 1, whatever the recorded command's own status."""
    done = process("record", "--", sys.executable, "-c", STARTS)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAIL SIG-START-001" in done.stdout
    assert f"{sys.executable} ended with status 7" in done.stderr


def test_recording_that_is_not_judged_has_the_status_of_the_command(process: Process, tmp_path: Path) -> None:
    """With --no-check the recording stays, and the output has the command that judges it."""
    done = process("record", "--no-check", "--out", "run.jsonl", "--", sys.executable, "-c", STARTS)
    assert (done.returncode, done.stdout) == (7, ""), done.stderr
    assert "check it: signet-conformance check run.jsonl" in done.stderr
    assert (tmp_path / "run.jsonl").is_file()


def test_command_that_cannot_be_started(process: Process, tmp_path: Path) -> None:
    """Nothing was tested: status 3, with the name of the program; nothing is left behind."""
    (tmp_path / "temporary").mkdir()
    done = process("record", "--", "no-such-program", TMPDIR=str(tmp_path / "temporary"))
    assert done.returncode == 3, done.stderr
    assert "error: no-such-program: the command cannot be started: No such file or directory\ntry: " in done.stderr
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 3), (signal.SIGTERM, 130), (signal.SIGHUP, 130)])
def test_signal_is_passed_on_and_nothing_is_left(tmp_path: Path, number: signal.Signals, status: int) -> None:
    """The command gets the signal; its children, daemon and recorder end. After Ctrl-C the recording is judged."""
    drive = Drive(tmp_path)
    with drive.begin_command("record", "--out", "run.jsonl", "--", sys.executable, "-c", WAITS) as run:
        wait_until((tmp_path / "ready").is_file, "the command never began")
        with Watched(drive.processes()) as watched:
            run.send_signal(number)
            out, err = run.communicate(timeout=PATIENCE_S)
            assert watched.left() == []
    assert run.returncode == status, out + err
    assert (tmp_path / "told").read_text() == str(int(number))
    assert "Traceback" not in out + err
    assert list(drive.temporary.glob("signet-record*")) == []


def test_command_in_a_terminal_gets_its_keys(tmp_path: Path) -> None:
    """Typed text reaches the command, and Ctrl-C ends only the command: the recording is judged."""
    # Loaded before the first key: an interrupt in the midst of an import may be lost. One that comes right before a
    # sleep is noticed at its end, so the sleeps are short.
    program = """
import time
print('name?', flush=True)
print('hello', input(), flush=True)
while True:
    time.sleep(0.05)
"""
    words = ["record", "--out", "run.jsonl", "--", sys.executable, "-c", program]
    leader, follower = os.openpty()
    # A session of its own, so that the terminal becomes the controlling one of it.
    starter = (
        "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.executable, sys.argv[1:])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", starter, sys.executable, "-m", "signet_conformance.cli", *words],
        cwd=tmp_path, stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
    ) as run:  # fmt: skip
        os.close(follower)
        shown = _shown_until(leader, b"name?")
        os.write(leader, b"ada\n")
        shown += _shown_until(leader, b"hello ada")
        os.write(leader, b"\x03")
        shown += _shown_until(leader, b"(exit ")
        status = run.wait(PATIENCE_S)
    os.close(leader)
    assert status == 3, shown.decode(errors="replace")
    assert b"nothing was tested" in shown


def _shown_until(leader: int, text: bytes) -> bytes:
    """Read the terminal's output up to and including `text`."""
    shown = b""
    while text not in shown:
        readable, _, _ = select.select([leader], [], [], PATIENCE_S)
        assert readable, shown.decode(errors="replace")
        shown += os.read(leader, 4096)
    return shown


@pytest.mark.parametrize(
    ("words", "where", "remedy"),
    [
        (["--upstream", "http://127.0.0.1:9", "--", "true"], "--upstream", "--daemon"),
        (["--daemon", "embedded", "--upstream", "http://127.0.0.1:9", "--out", "x"], "--daemon", "-- COMMAND"),
        (["--no-check", "--upstream", "http://127.0.0.1:9", "--out", "x"], "--no-check", "-- COMMAND"),
        (["--daemon", "embedded:9.9", "--", "true"], "--daemon", "0."),
        (["--out", "taken.jsonl", "--", "true"], "taken.jsonl", "another name"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    process: Process, tmp_path: Path, words: list[str], where: str, remedy: str
) -> None:
    """The error names the option and a remedy; nothing is launched."""
    (tmp_path / "taken.jsonl").write_text("")
    done = process("record", *words)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"error: {where}: ")
    assert remedy in done.stderr.partition("try: ")[2]
