"""What only mitmproxy carries, and what it does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

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
