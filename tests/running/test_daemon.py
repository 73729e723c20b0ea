"""What a run says to the daemon itself: it goes there and nowhere else."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError

import pytest

from signet_conformance.running.daemon import ask_directly, demand_consent


@contextmanager
def server(status: int, **headers: str) -> Iterator[tuple[str, list[str]]]:
    """A server on loopback that answers everything alike: its address, and the request lines that it got."""
    seen: list[str] = []

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(status)
            for name, value in {"content-length": "0", **headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing is written down."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}", seen
        finally:
            listening.shutdown()
            thread.join()


def test_no_proxy_is_asked() -> None:
    """A proxy that the environment names sees nothing of what is said to the daemon."""
    program = (
        "import sys; from signet_conformance.running.daemon import ask_directly; ask_directly(sys.argv[1], 10).close()"
    )
    with server(200) as (daemon, seen), server(200) as (proxy, asked):
        named = dict.fromkeys(("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"), proxy)
        env = {**os.environ, **named, "no_proxy": "", "NO_PROXY": ""}
        subprocess.run([sys.executable, "-c", program, f"{daemon}/health"], env=env, check=True, timeout=60)
    assert (seen, asked) == (["/health"], [])


def test_no_redirect_is_followed() -> None:
    """An answer that leads elsewhere is an error, and nobody goes there."""
    with (
        server(200) as (elsewhere, asked),
        server(307, location=f"{elsewhere}/taken") as (daemon, _),
        pytest.raises(HTTPError, match="307"),
    ):
        ask_directly(f"{daemon}/health", timeout_s=10)
    assert asked == []


@contextmanager
def sending(*answers: bytes) -> Iterator[str]:
    """The address of a server that gives one connection after the other these bytes, whatever it is sent."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for answer in answers:
                with listening.accept()[0] as connection:
                    connection.recv(65536)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize(
    "answer", [b"\x00\xff no HTTP\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 300 + b"\r\n", b""]
)
def test_an_answer_that_is_no_http_is_none(answer: bytes) -> None:
    """A daemon that sends anything else is one that does not answer, not a defect of the kit."""
    with sending(answer) as daemon, pytest.raises(OSError, match="not HTTP"):
        ask_directly(f"{daemon}/health", timeout_s=10)


def test_an_endless_row_of_informational_answers_is_late() -> None:
    """Each 100 Continue comes within the timeout, and no answer does."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(ConnectionError), listening.accept()[0] as connection:
                connection.settimeout(0.01)
                told = b"GET"
                while told:
                    connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                    with suppress(TimeoutError):
                        told = connection.recv(65536)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(TimeoutError):
            ask_directly(f"http://127.0.0.1:{listening.getsockname()[1]}/health", timeout_s=0.2)
        thread.join()


def test_a_workspace_in_a_torn_answer_is_not_named() -> None:
    """What a daemon says of itself may end early."""
    head = b"HTTP/1.1 200 OK\r\n"
    torn = head + b"transfer-encoding: chunked\r\n\r\n5\r\n{}"
    told: list[str] = []
    with sending(head + b"content-length: 0\r\n\r\n", torn) as daemon:
        demand_consent(daemon, told.append, allowed=True, option="--allow-writes")
    assert told[0].endswith("a workspace that it does not name")
