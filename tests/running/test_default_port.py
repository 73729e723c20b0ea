"""The default port while a run drives: whose requests count, and what stands in the way."""

from __future__ import annotations

import functools
import http.server
import os
import socket
import socketserver
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from signet_conformance import engine, targets, trace
from signet_conformance.errors import UsageError
from signet_conformance.finding import Verdict
from signet_conformance.running import default_port, workers
from signet_conformance.running.default_port import DefaultPort, StrayRequests, demand_free
from signet_conformance.scenarios.scenario import scripted
from signet_conformance.trace.marks import StrayMark
from tests.support.processes import wait_until

CALL = """
import os, sys, urllib.error, urllib.request
try:
    token = os.environ.get("SIGNET_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(sys.argv[1] + "/api/hooks/session-start?key=1", b"{}", headers)
    urllib.request.urlopen(request, timeout=180)
except urllib.error.HTTPError as error:
    print(error.code)
"""

needs_proc = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only /proc tells whose a connection is")


@pytest.fixture
def port() -> int:
    """A port that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def call(port: int, **env: str) -> str:
    """What a process of its own hears at the port."""
    command = [sys.executable, "-c", CALL, f"http://127.0.0.1:{port}"]
    kept = {name: value for name, value in os.environ.items() if name != "SIGNET_DAEMON_URL"}
    return subprocess.run(command, env={**kept, **env}, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The HOME of a run's connectors."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@needs_proc
def test_request_of_a_connector_is_told_with_its_home(port: int, home: Path) -> None:
    """Method, path without query, and where it arrived, once; it is answered 503."""
    strays = StrayRequests(home)
    with DefaultPort(port):
        assert call(port, HOME=str(home), SIGNET_DAEMON_URL="http://127.0.0.1:1") == "503"
    told = [StrayMark(method="POST", path="/api/hooks/session-start", address=f"127.0.0.1:{port}")]
    assert [*strays.take(), *strays.take()] == told


@needs_proc
def test_token_of_a_request_is_told_and_not_kept(port: int, home: Path) -> None:
    """That a request had one is told, and what it was is written nowhere."""
    strays = StrayRequests(home)
    with DefaultPort(port):
        call(port, HOME=str(home), SIGNET_DAEMON_URL="http://127.0.0.1:1", SIGNET_TOKEN="sig_sk_51c0ffee")
    assert "sig_sk" not in (home.parent / "default-port.jsonl").read_text()
    (told,) = strays.take()
    assert told.token


def test_nothing_is_printed_of_a_client_that_goes_away(port: int, capfd: pytest.CaptureFixture[str]) -> None:
    """A connection that is reset, as a look for a free port may do, leaves no traceback on the terminal."""
    with DefaultPort(port):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.send(b"GET / HT")
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # The port answers in the order of its connections: once this one is done, the one before was taken.
        assert call(port) == "503"
    assert capfd.readouterr().err == ""


def test_request_of_another_program_is_answered_and_forgotten(port: int, home: Path) -> None:
    """A program that was not started for a run is nobody's breach; no file is made or followed for it."""
    strays = StrayRequests(home)
    elsewhere = home / "below"
    elsewhere.mkdir()
    (home / "default-port.jsonl").symlink_to(home / "aim")
    (home / "aim").touch()
    with DefaultPort(port):
        assert call(port, HOME=str(home)) == "503"
        assert call(port, HOME=str(elsewhere), SIGNET_DAEMON_URL="http://127.0.0.1:1") == "503"
    assert strays.take() == ()
    assert (home / "aim").read_bytes() == b""


def test_second_run_hears_what_the_first_passes_on_and_takes_the_port_after_it(port: int) -> None:
    """Neither is deaf: the counts of both runs can be compared."""
    with DefaultPort(port) as first:
        second = DefaultPort(port)
        with second:
            assert (first.is_held, second.is_held) == (True, False)
            assert (first.unheard, second.unheard) == (None, None)
            assert demand_free(allowed=False, option="--allow-default-port", port=port) is None
            first.__exit__()
            wait_until(lambda: second.is_held, "the port was not taken")


def test_run_of_another_release_that_passes_nothing_on_is_noted(port: int) -> None:
    """What it hears is lost to this run, which says so."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(503)
            self.send_header("x-signet-conformance-holds", "17")
            self.end_headers()

    with http.server.HTTPServer(("127.0.0.1", port), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        with DefaultPort(port) as second:
            assert second.unheard == f"another run of the kit (process 17) holds 127.0.0.1:{port}"
        note = demand_free(allowed=False, option="--allow-default-port", port=port)
        server.shutdown()
    assert note is not None
    assert f"another run of the kit (process 17) holds 127.0.0.1:{port}" in note
    assert "SIG-LOAD-003" in note


@needs_proc
def test_two_runs_side_by_side_are_each_told_of_their_own_connector(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first holds the port and passes; the second, whose connector calls it, fails all the same."""
    monkeypatch.setattr(workers, "DefaultPort", functools.partial(DefaultPort, port=port))
    target, (scenario, *_) = targets.load("reference"), scripted()
    with (
        workers.RunWorkers(target, tmp_path / "first", count=1) as first,
        workers.RunWorkers(target, tmp_path / "second", count=1) as second,
    ):
        drivers = {run: run.recorded_daemons[0].launch({}) for run in (first, second)}
        assert call(port, HOME=second.recorded_daemons[0].home, SIGNET_DAEMON_URL="http://127.0.0.1:1") == "503"
        judgements = []
        for run, driver in drivers.items():
            assert run.recorded_daemons[0].perform(scenario, driver, run.folder / "run.jsonl") is None
            judgements.append(engine.judge(trace.read(run.folder / "run.jsonl")).judgements["SIG-LOAD-003"])
    assert [judgement.verdict for judgement in judgements] == [Verdict.PASS, Verdict.FAIL]


@pytest.fixture
def daemon() -> Iterator[int]:
    """The port of something that answers /health with 200."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_daemon_that_listens_there_needs_consent(daemon: int) -> None:
    """Without consent it is a usage error that names port and option; with it, a note."""
    with pytest.raises(UsageError) as refusal:
        demand_free(allowed=False, option="--signet-allow-default-port", port=daemon)
    assert f"127.0.0.1:{daemon}" in str(refusal.value)
    assert "--signet-allow-default-port" in str(refusal.value.remedy)
    note = demand_free(allowed=True, option="--signet-allow-default-port", port=daemon)
    assert note is not None


def test_program_that_does_not_answer_is_taken_for_none_that_is_known(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be another run, or a daemon, on a busy machine: neither is named, and the user is told."""
    monkeypatch.setattr(default_port, "_ANSWER_S", 0.2)
    told = f"a program that gave no answer within 0.2 s holds 127.0.0.1:{port}"
    with socket.create_server(("127.0.0.1", port)), DefaultPort(port) as held:
        note = demand_free(allowed=False, option="--allow-default-port", port=port)
    assert held.unheard == told
    assert note == f"{told}: what this run's connector sends there is not seen, and SIG-LOAD-003 is not decided"


def test_program_that_speaks_no_http_is_another_program() -> None:
    """Its greeting says that it is neither a run nor a daemon."""

    class Greeting(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
            self.request.recv(4096)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Greeting) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        port = server.server_address[1]
        with DefaultPort(port) as held:
            assert demand_free(allowed=False, option="--allow-default-port", port=port) is None
        server.shutdown()
    assert held.unheard == f"another program holds port {port}"
