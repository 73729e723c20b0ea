"""Daemons that are spoken to over TLS."""

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.recorder import Call, RecorderProcess, Upstream, is_reset


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1, signed by itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    built = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "cert.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + built.public_bytes(serialization.Encoding.PEM)
    )
    return path


class TlsUpstream(Upstream):
    """An upstream that speaks TLS."""

    def __init__(self, certificate: Path) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate)
        super().__init__()
        self.url = f"https://127.0.0.1:{self.port}"

    def _serve(self, connection: socket.socket) -> None:
        try:
            wrapped = self._context.wrap_socket(connection, server_side=True)
        except OSError:
            connection.close()
            return
        super()._serve(wrapped)


def test_an_https_daemon_that_is_trusted(certificate: Path, tmp_path: Path) -> None:
    """The recorder speaks TLS with the daemon, and plainly with the connector."""
    daemon = TlsUpstream(certificate)
    recorder = RecorderProcess(
        *("--upstream", daemon.url, "--require-upstream", "--control"),
        out=tmp_path / "t.jsonl",
        environment={"SSL_CERT_FILE": str(certificate)},
    )
    assert recorder.request("GET", "/a") == (200, b'{"path": "/a"}')
    read = recorder.trace()
    recorder.close()
    daemon.close()
    assert (read.header.upstream, read.header.daemon_version) == (daemon.url, "0.145.7")
    assert daemon.calls[-1].headers["host"] == f"127.0.0.1:{daemon.port}"


def test_an_https_daemon_that_is_not_trusted(certificate: Path, tmp_path: Path) -> None:
    """A certificate that nobody vouches for: nothing is sent, the client is cut off, upstream_refused."""
    daemon = TlsUpstream(certificate)
    recorder = RecorderProcess("--upstream", daemon.url, "--control", out=tmp_path / "t.jsonl")
    with recorder.connect() as client:
        client.sendall(b"GET /a HTTP/1.1\r\nhost: x\r\n\r\n")
        assert is_reset(client)
    (exchange,) = recorder.trace().exchanges
    recorder.close()
    daemon.close()
    assert exchange.error == "upstream_refused"
    assert b"certificate verify failed" in exchange.raw
    assert daemon.calls == []


def test_an_answer_of_unknown_length_over_tls(certificate: Path, tmp_path: Path) -> None:
    """It ends with the connection, as many servers end it: without saying goodbye in TLS."""
    daemon = TlsUpstream(certificate)

    def until_closed(call: Call) -> None:
        call.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nall of it")
        call.connection.shutdown(socket.SHUT_RDWR)

    daemon.handlers["/whole"] = until_closed
    recorder = RecorderProcess(
        *("--upstream", daemon.url, "--control"),
        out=tmp_path / "t.jsonl",
        environment={"SSL_CERT_FILE": str(certificate)},
    )
    assert recorder.request("GET", "/whole") == (200, b"all of it")
    (exchange,) = recorder.trace().exchanges
    recorder.close()
    daemon.close()
    assert exchange.error is None
