"""The addon for mitmproxy writes what the recorder writes."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from signet_conformance.trace import Trace, read
from tests.support.ports import unheard_port
from tests.support.recorder import CANARY, PATIENCE_S, Call, Upstream, read_until_closed

_LISTENING = re.compile(r"listening at \S*:(\d+)")


class Mitmdump:
    """`mitmdump` with the addon, in reverse mode before an upstream."""

    def __init__(self, addon: str, out: Path, upstream: str, *options: str) -> None:
        self.out = out
        program = Path(sys.executable).with_name("mitmdump")
        self._process = subprocess.Popen(
            [program, "-s", addon, "--mode", f"reverse:{upstream}", "--listen-host", "127.0.0.1", "--listen-port", "0",
             "--set", f"confdir={out.parent}", "--set", f"signet_out={out}", *options],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "SIGNET_TEST_CANARY": CANARY, "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        self.said = ""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.said += line
            if found := _LISTENING.search(line):
                self.port = int(found[1])
                break

    def connect(self) -> socket.socket:
        """A raw connection to it."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def ask(self, sent: bytes) -> bytes:
        """What is heard until the connection ends."""
        with self.connect() as client:
            client.sendall(sent)
            return read_until_closed(client)

    def status(self) -> int:
        """Wait for its end."""
        assert self._process.stdout is not None
        if not self._process.stdout.closed:
            self.said += self._process.stdout.read()
            self._process.stdout.close()
        return self._process.wait(PATIENCE_S)

    def trace(self) -> Trace:
        """End it, and read what it has written."""
        self.close()
        return read(self.out)

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self.status()


@pytest.fixture(scope="module")
def addon() -> str:
    """What `record --addon` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "signet_conformance.cli", "record", "--addon"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def mitmdump(addon: str, upstream: Upstream, tmp_path: Path) -> Iterator[Mitmdump]:
    """One in front of the shared upstream."""
    options = ("--set", "signet_canary_env=SIGNET_TEST_CANARY", "--set", "signet_agents=atlas-agent")
    running = Mitmdump(addon, tmp_path / "t.jsonl", upstream.url, *options)
    yield running
    running.close()
    upstream.handlers.clear()
    upstream.calls.clear()


def test_an_exchange_is_recorded_without_its_secrets(mitmdump: Mitmdump, upstream: Upstream) -> None:
    """With all that the recorder tells of it; two requests of a connection have its number."""
    body = b'{"apiKey":"k3y-of-the-user","prompt":"caf\xc3\xa9"}'
    first = b"POST /one?x=1 HTTP/1.1\r\nhost: x\r\nContent-Length: %d\r\ncontent-type: application/json\r\n\r\n" % len(
        body
    )
    last = b"GET /two HTTP/1.1\r\nhost: x\r\nx-note: " + CANARY.encode() + b"\r\nconnection: close\r\n\r\n"
    assert mitmdump.ask(first + body + last).count(b"HTTP/1.1 200 OK") == 2
    trace = mitmdump.trace()
    assert (trace.header.upstream, trace.header.daemon_version) == (upstream.url, "0.145.7")
    assert trace.header.declared.agents == ("atlas-agent",)
    one, two = trace.exchanges
    assert (one.request.method, one.request.path, one.request.query) == ("POST", "/one", (("x", "1"),))
    assert one.request.body is not None
    assert one.request.body.value == {"apiKey": "<redacted:2>", "prompt": "café"}
    assert one.response is not None
    assert one.response.body is not None
    assert (one.response.status, one.response.body.value) == (200, {"path": "/one?x=1"})
    assert (one.seq, two.seq, one.conn == two.conn, one.error) == (1, 2, True, None)
    assert two.request.header("x-note") == "<redacted:1>"


def test_an_answer_passes_while_it_comes(mitmdump: Mitmdump, upstream: Upstream) -> None:
    """The client hears the first event before the daemon has sent the second."""

    def events(call: Call) -> None:
        call.send(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n5\r\none\n\n\r\n"
        )
        heard.wait(PATIENCE_S)
        call.send(b"5\r\ntwo\n\n\r\n0\r\n\r\n")

    heard = Event()
    upstream.handlers["/events"] = events
    with mitmdump.connect() as client:
        client.sendall(b"GET /events HTTP/1.1\r\nhost: x\r\n\r\nGET /x HTTP/1.1\r\nhost: x\r\n\r\n")
        data = b""
        while b"one" not in data:
            data += client.recv(65536)
        heard.set()
        while b"two" not in data:
            data += client.recv(65536)
    body = mitmdump.trace().exchanges[0].response.body
    assert body is not None
    assert body.value == "one\n\ntwo\n\n"


def test_a_daemon_that_refuses(addon: str, tmp_path: Path) -> None:
    """No answer stands in the recording, whatever mitmproxy itself tells the client."""
    with unheard_port() as port:
        mitmdump = Mitmdump(addon, tmp_path / "t.jsonl", f"http://127.0.0.1:{port}")
        mitmdump.ask(b"GET /one HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        (exchange,) = mitmdump.trace().exchanges
    assert (exchange.response, exchange.error) == (None, "upstream_refused")


def test_an_upgrade_is_carried(mitmdump: Mitmdump, upstream: Upstream) -> None:
    """After 101 bytes pass both ways as they are."""

    def upgrade(call: Call) -> None:
        call.send(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n")
        call.send(call.connection.recv(100).upper())

    upstream.handlers["/up"] = upgrade
    with mitmdump.connect() as client:
        client.sendall(b"GET /up HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n")
        while b"\r\n\r\n" not in client.recv(65536):
            pass
        client.sendall(b"hello")
        assert client.recv(100) == b"HELLO"
    (exchange,) = mitmdump.trace().exchanges
    assert exchange.response is not None
    assert exchange.response.status == 101


def test_mitmproxy_ends_where_nothing_could_be_recorded(addon: str, upstream: Upstream, tmp_path: Path) -> None:
    """A file that exists is not written over, and nothing passes unrecorded."""
    out = tmp_path / "t.jsonl"
    out.write_text("mine")
    mitmdump = Mitmdump(addon, out, upstream.url)
    assert mitmdump.status() != 0
    assert "never overwrites one" in mitmdump.said
    assert out.read_text() == "mine"
