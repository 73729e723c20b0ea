"""The command: how it starts, how it ends, and what is left when it is killed."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from signet_conformance import trace
from signet_recording_proxy.__main__ import main
from tests.support.ports import unheard_port
from tests.support.recorder import PATIENCE_S, Call, RecorderProcess, Upstream
from tests.support.small_files import NOTHING_COMPILED


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command, run until it ends by itself."""
    command = [sys.executable, "-m", "signet_recording_proxy", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, env={**os.environ, **environment}, check=False
    )


def refused(result: subprocess.CompletedProcess[str], complaint: str) -> bool:
    """Whether it ended with 2, the complaint, a remedy, and no traceback."""
    said = result.stderr
    return (result.returncode, complaint in said, "\ntry: " in said, "Traceback" in said) == (2, True, True, False)


def test_the_header_holds_what_was_declared(upstream: Upstream, tmp_path: Path) -> None:
    """Options become the header; the daemon's version comes from GET /health, which is not recorded."""
    began = time.monotonic()
    recorder = RecorderProcess(
        *("--upstream", upstream.url, "--target", "pi", "--agent", "a", "--agent", "b", "--harness", "pi"),
        *(
            "--bound",
            "start=5",
            "--bound",
            "prompt=2.5",
            "--capability",
            "session-start",
            "--token-declared",
            "--side",
            "model",
        ),
        out=tmp_path / "t.jsonl",
    )
    recorder.close()
    read = trace.read(tmp_path / "t.jsonl")
    declared = read.header.declared
    assert (read.header.target, read.header.upstream, read.header.daemon_version) == ("pi", upstream.url, "0.145.7")
    assert (declared.agents, declared.harness, declared.token) == (("a", "b"), "pi", True)
    assert (declared.bounds_s, declared.capabilities) == ({"start": 5.0, "prompt": 2.5}, ("session-start",))
    assert read.exchanges == ()
    assert read.header.side == "model"
    assert read.header.clock_s is not None
    assert began < read.header.clock_s < time.monotonic()


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(upstream: Upstream, tmp_path: Path, ending: signal.Signals) -> None:
    """SIGTERM and SIGINT: exit status 0, nothing on stderr, an exchange in flight written as cut off."""
    asked: list[Call] = []
    upstream.handlers["/slow"] = lambda call: (asked.append(call), call.wait_until_left())[1]
    recorder = RecorderProcess("--upstream", upstream.url, out=tmp_path / "t.jsonl")
    with recorder.connect() as client:
        client.sendall(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n")
        while not asked:
            pass
        recorder.process.send_signal(ending)
        assert recorder.process.wait(PATIENCE_S) == 0
    assert recorder.stderr() == ""
    recorder.close()
    (exchange,) = trace.read(tmp_path / "t.jsonl").exchanges
    assert exchange.error == "upstream_reset"
    upstream.handlers.clear()


@pytest.mark.parametrize("how", ["end of stdin", "exit"])
def test_control_ends_it(upstream: Upstream, tmp_path: Path, how: str) -> None:
    """With --control it ends when stdin ends, or when told to."""
    recorder = RecorderProcess("--upstream", upstream.url, "--control", out=tmp_path / "t.jsonl")
    if how == "exit":
        assert recorder.command("exit") == {"ok": True}
    else:
        assert recorder.process.stdin is not None
        recorder.process.stdin.close()
    assert recorder.process.wait(PATIENCE_S) == 0
    assert recorder.stderr() == ""
    recorder.close()


@pytest.mark.parametrize("form", ["length", "chunks", "close", "nothing"])
def test_what_was_answered_is_on_disk(upstream: Upstream, tmp_path: Path, form: str) -> None:
    """Killed as soon as a client has its whole answer, the trace holds it, however its end was told."""
    answers = {
        "length": b"content-length: 2\r\n\r\n{}",
        "chunks": b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "close": b"connection: close\r\n\r\n{}",
        "nothing": b"content-length: 0\r\n\r\n",
    }

    def answer(call: Call) -> None:
        call.send(b"HTTP/1.1 200 OK\r\n" + answers[form])
        call.connection.shutdown(socket.SHUT_WR)

    upstream.handlers["/x"] = answer
    recorder = RecorderProcess("--upstream", upstream.url, out=tmp_path / "t.jsonl")
    connection = http.client.HTTPConnection("127.0.0.1", recorder.port, timeout=PATIENCE_S)
    connection.request("GET", "/x")
    connection.getresponse().read()
    recorder.kill()
    connection.close()
    recorder.close()
    read = trace.read(tmp_path / "t.jsonl")
    assert [e.request.path for e in read.exchanges] == ["/x"]
    assert read.warnings == ()
    upstream.handlers.clear()


def test_a_kill_at_any_moment_leaves_whole_lines(upstream: Upstream, tmp_path: Path) -> None:
    """Killed under load, the trace holds at least all that was answered, and no torn line."""
    recorder = RecorderProcess("--upstream", upstream.url, out=tmp_path / "t.jsonl")
    answered = 0
    connection = http.client.HTTPConnection("127.0.0.1", recorder.port, timeout=PATIENCE_S)
    for number in range(60):
        connection.request("POST", f"/{number}", b'{"text": "%s"}' % (b"x" * 5000))
        if number == 50:
            recorder.kill()
            break
        connection.getresponse().read()
        answered += 1
    connection.close()
    recorder.close()
    read = trace.read(tmp_path / "t.jsonl")
    assert [e.request.path for e in read.exchanges][:answered] == [f"/{n}" for n in range(answered)]
    assert read.warnings == ()


def test_a_kill_under_load_loses_nothing_that_was_answered() -> None:
    """At instants drawn anew each time, many connections at once, answers of every form."""
    script = Path(__file__).parents[2] / "ci" / "tools" / "kill_recorder.py"
    command = [sys.executable, str(script), "--instants", "2", "--connections", "24", "--seed", str(time.time_ns())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"2 instants, .* [1-9][0-9]* answered, 0 lost", done.stdout)


def test_an_existing_file_is_kept(upstream: Upstream, tmp_path: Path) -> None:
    """A file of that name: exit 2, and not a byte of it is touched."""
    (tmp_path / "t.jsonl").write_text("mine")
    assert refused(run("--upstream", upstream.url, "--out", str(tmp_path / "t.jsonl")), "exists")
    assert (tmp_path / "t.jsonl").read_text() == "mine"


def test_a_folder_that_is_not_there(upstream: Upstream, tmp_path: Path) -> None:
    """A file that cannot be created: exit 2."""
    assert refused(run("--upstream", upstream.url, "--out", str(tmp_path / "no" / "t.jsonl")), "cannot be created")


def test_a_port_in_use(upstream: Upstream, tmp_path: Path) -> None:
    """A port that is taken: exit 2, and no trace file is left behind."""
    result = run("--upstream", upstream.url, "--out", str(tmp_path / "t"), "--port", str(upstream.port))
    assert refused(result, f"127.0.0.1:{upstream.port}")
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--upstream", "127.0.0.1:3850"), "--upstream"),
        (("--upstream", "http://127.0.0.1:1/prefix"), "--upstream"),
        (("--upstream", "http://127.0.0.1:99999"), "--upstream"),
        (("--upstream", "http://u:p@127.0.0.1:1"), "--upstream"),
        (("--upstream", "http://127.0.0.1:1", "--host", "::"), "--host"),
        (("--upstream", "http://127.0.0.1:1", "--host", "example.com"), "--host"),
        (("--upstream", "http://127.0.0.1:1", "--port", "70000"), "--port"),
        (("--upstream", "http://127.0.0.1:1", "--bound", "start"), "--bound"),
        (("--upstream", "http://127.0.0.1:1", "--bound", "start=-1"), "bounds_s"),
        (("--upstream", "http://127.0.0.1:1", "--body-limit", "-1"), "--body-limit"),
        (("--upstream", "http://127.0.0.1:1", "--canary-env", "SIGNET_TEST_UNSET"), "--canary-env"),
    ],
)
def test_senseless_options_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], complaint: str
) -> None:
    """Status 2, a complaint that names what is off, a remedy, no secret, no file."""
    assert main(["--out", str(tmp_path / "t"), *arguments]) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert "\ntry: " in said
    assert "u:p" not in said
    assert not (tmp_path / "t").exists()


def test_a_daemon_that_must_be_there(tmp_path: Path) -> None:
    """With --require-upstream nobody at the address is exit 2, and no trace file."""
    result = run("--out", str(tmp_path / "t"), "--upstream", "http://127.0.0.1:1", "--require-upstream")
    assert refused(result, "no daemon answers")
    assert not (tmp_path / "t").exists()


def test_a_daemon_that_is_down_is_a_warning(tmp_path: Path) -> None:
    """Without --require-upstream it warns on stderr, starts, and knows no version."""
    with unheard_port() as port:
        recorder = RecorderProcess("--upstream", f"http://127.0.0.1:{port}", "--control", out=tmp_path / "t.jsonl")
        recorder.command("exit")
        recorder.process.wait(PATIENCE_S)
    assert "warning" in recorder.stderr()
    recorder.close()
    assert trace.read(tmp_path / "t.jsonl").header.daemon_version is None


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs prlimit, to stop a file of another process growing")
def test_a_trace_that_cannot_grow_ends_it_with_4(upstream: Upstream, tmp_path: Path) -> None:
    """When the trace cannot be written any more, it says so and ends with 4; what was written stays readable."""
    recorder = RecorderProcess("--upstream", upstream.url, out=tmp_path / "t.jsonl", environment=NOTHING_COMPILED)
    recorder.request("GET", "/a")
    size = (tmp_path / "t.jsonl").stat().st_size
    resource.prlimit(recorder.process.pid, resource.RLIMIT_FSIZE, (size, size))
    with contextlib.suppress(OSError, http.client.HTTPException):
        recorder.request("GET", "/b")
    assert recorder.process.wait(PATIENCE_S) == 4
    said = recorder.stderr()
    recorder.close()
    assert "t.jsonl: the trace cannot be written" in said
    assert "\ntry: " in said
    assert "Traceback" not in said
    assert [e.request.path for e in trace.read(tmp_path / "t.jsonl").exchanges] == ["/a"]


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs prlimit, to stop a file of another process growing")
def test_a_mark_that_cannot_be_written_ends_it_with_4(upstream: Upstream, tmp_path: Path) -> None:
    """A command that hits the end of the disk is no refusal: the recorder is over."""
    recorder = RecorderProcess(
        "--upstream", upstream.url, "--control", out=tmp_path / "t.jsonl", environment=NOTHING_COMPILED
    )
    size = (tmp_path / "t.jsonl").stat().st_size
    resource.prlimit(recorder.process.pid, resource.RLIMIT_FSIZE, (size, size))
    assert recorder.process.stdin is not None
    recorder.process.stdin.write(b'{"op": "mark", "name": "step"}\n')
    recorder.process.stdin.flush()
    assert recorder.next_line() is None
    assert recorder.process.wait(PATIENCE_S) == 4
    recorder.close()


def test_the_ready_line_is_json(upstream: Upstream, tmp_path: Path) -> None:
    """One line on stdout says where it listens and what it writes."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "signet_recording_proxy",
            "--upstream",
            upstream.url,
            "--out",
            str(tmp_path / "t.jsonl"),
        ],
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        process.terminate()
    assert ready["out"] == str(tmp_path / "t.jsonl")
    assert ready["url"].startswith("http://127.0.0.1:")


def _deleted(out: Path) -> None:
    out.unlink()


def _replaced(out: Path) -> None:
    other = out.with_name("other")
    other.write_bytes(out.read_bytes())
    other.replace(out)


def _truncated(out: Path) -> None:
    os.truncate(out, 10)


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (_deleted, "was deleted while it was written; lost: 1 exchange"),
        (_replaced, "was replaced while it was written; lost: 1 exchange"),
        (_truncated, " to 10 bytes while it was written; lost: up to 1 exchange"),
    ],
)
@pytest.mark.parametrize("ends", [True, False], ids=["at its end", "at once"])
def test_a_recording_that_goes_away_ends_it_with_4(
    upstream: Upstream, tmp_path: Path, happens: Callable[[Path], None], said: str, ends: bool
) -> None:
    """Nobody is advised to check what is not there: it is said what was lost."""
    recorder = RecorderProcess("--upstream", upstream.url, out=tmp_path / "t.jsonl")
    recorder.request("GET", "/x")
    happens(recorder.out)
    if ends:
        recorder.process.terminate()
    assert recorder.process.wait(PATIENCE_S) == 4
    assert said in recorder.stderr()
    recorder.close()


def test_a_recording_that_is_renamed_goes_on(upstream: Upstream, tmp_path: Path) -> None:
    """As rotation does it: what is recorded afterwards stands in the renamed file."""
    recorder = RecorderProcess("--upstream", upstream.url, out=tmp_path / "t.jsonl")
    recorder.request("GET", "/x")
    recorder.out.rename(tmp_path / "t.jsonl.1")
    (tmp_path / "t.jsonl").write_text("another program's\n")
    recorder.request("GET", "/y")
    recorder.process.terminate()
    assert recorder.process.wait(PATIENCE_S) == 0
    recorder.close()
    assert [e.request.path for e in trace.read(tmp_path / "t.jsonl.1").exchanges] == ["/x", "/y"]
