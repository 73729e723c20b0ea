"""What only mitmproxy carries, and what it does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from signet_recording_proxy.engines.lean.messages import RequestReader
from tests.support.recorder import Call, RecorderProcess, Upstream, read_until_closed


@pytest.fixture
def recorder(upstream: Upstream, tmp_path: Path) -> Iterator[RecorderProcess]:
    """A recorder with this engine."""
    process = RecorderProcess("--upstream", upstream.url, "--control", out=tmp_path / "t.jsonl", engine="mitmproxy")
    yield process
    process.close()
    upstream.handlers.clear()


def test_an_upgrade_is_carried(recorder: RecorderProcess, upstream: Upstream) -> None:
    """After 101 bytes pass both ways as they are."""

    def upgrade(call: Call) -> None:
        call.send(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n")
        call.send(call.connection.recv(100).upper())

    upstream.handlers["/up"] = upgrade
    with recorder.connect() as client:
        client.sendall(b"GET /up HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n")
        while b"\r\n\r\n" not in client.recv(65536):
            pass
        client.sendall(b"hello")
        assert client.recv(100) == b"HELLO"
    response = recorder.trace().exchanges[0].response
    assert response is not None
    assert response.status == 101


HEAD = b"POST /odd HTTP/1.1\r\nhost: x\r\n"
CARRIED = {
    "a length beside chunks": HEAD + b"content-length: 0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "a coding other than chunked": HEAD + b"transfer-encoding: identity\r\n\r\n",
    "chunks of HTTP/1.0": b"POST /odd HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "a folded line": HEAD + b"a: b\r\n c\r\n\r\n",
    "a NUL": HEAD + b"a: \0\r\n\r\n",
    "a bare carriage return": HEAD + b"a: b\rc\r\n\r\n",
    "a space before a colon": HEAD + b"a : b\r\n\r\n",
    "a bare line feed": HEAD + b"a: b\n\r\n",
    "another version": b"GET /odd HTTP/2.0\r\n\r\n",
    "two hosts": HEAD + b"host: y\r\n\r\n",
    "another server's target": b"GET http://other/odd HTTP/1.1\r\nhost: x\r\n\r\n",
}
REFUSED = {
    "two lengths": HEAD + b"content-length: 3\r\ncontent-length: 3\r\n\r\nabc",
    "a list of lengths": HEAD + b"content-length: 3, 3\r\n\r\nabc",
    "a signed length": HEAD + b"content-length: +3\r\n\r\nabc",
    "a size that is no number": HEAD + b"transfer-encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("sent", CARRIED.values(), ids=CARRIED)
def test_it_is_laxer_than_the_lean_engine(sent: bytes, recorder: RecorderProcess, upstream: Upstream) -> None:
    """The page about recordings says so: this reaches the daemon, and the lean engine refuses it."""
    reader = RequestReader()
    reader.feed(sent)
    assert reader.messages[-1].complaint is not None
    with recorder.connect() as client:
        client.sendall(sent)
        assert client.recv(100).startswith(b"HTTP/1.1 200")
    assert upstream.calls.pop().target.endswith("/odd")


@pytest.mark.parametrize("sent", REFUSED.values(), ids=REFUSED)
def test_lengths_that_are_no_numbers_are_refused(sent: bytes, recorder: RecorderProcess, upstream: Upstream) -> None:
    """By this engine too: the client is sent away, and the daemon hears nothing."""
    upstream.calls.clear()
    with recorder.connect() as client:
        client.sendall(sent)
        assert read_until_closed(client).partition(b" ")[2][:3] in (b"", b"400")
    assert upstream.calls == []


def test_an_answer_that_cannot_be_carried_does_not_hang(recorder: RecorderProcess, upstream: Upstream) -> None:
    """Mitmproxy cannot carry trailers: the client is cut off, the exchange recorded, and the exit status tells."""

    def with_trailers(call: Call) -> None:
        call.send(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx-sum: sig_sk_0123456789\r\n\r\n"
        )

    upstream.handlers["/t"] = with_trailers
    with recorder.connect() as client:
        client.sendall(b"GET /t HTTP/1.1\r\nhost: x\r\n\r\n")
        read_until_closed(client)
    (exchange,) = recorder.trace().exchanges
    assert exchange.error == "upstream_reset"
    assert recorder.command("counts")["internal_errors"] == 1
    recorder.command("exit")
    assert recorder.process.wait(20) == 4
    said = recorder.stderr()
    assert "an exchange could not be carried" in said
    assert "sig_sk_" not in said
    assert "Traceback" not in said
    upstream.handlers.clear()
