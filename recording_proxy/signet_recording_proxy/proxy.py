"""The listener and the way to the daemon: mitmproxy's reverse mode, without its tools around it."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from typing import Any

from mitmproxy.addons.proxyserver import Proxyserver
from mitmproxy.http import Request
from mitmproxy.options import Options
from mitmproxy.proxy.mode_specs import ProxyMode
from mitmproxy.tls import TlsData

from signet_conformance.errors import SignetConformanceError, UsageError
from signet_recording_proxy.connection import ClientConnection
from signet_recording_proxy.faults import Fault
from signet_recording_proxy.recorder import Recorder
from signet_recording_proxy.upstream import Upstream

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


def reserve(host: str, port: int) -> socket.socket:
    """A socket that is bound and does not listen: connects are refused, and no other program gets the port.

    Raises UsageError when the port is taken or the host is not one of this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        reserved = socket.socket(family, kind, protocol)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(address)
    except OSError as failure:
        raise UsageError(
            f"cannot listen there: {failure.strerror or failure}",
            where=f"{host}:{port}",
            remedy="choose another --port, or leave it out for a free one",
        ) from None
    return reserved


class Proxy:
    """Listens, and hands each client to a ClientConnection."""

    def __init__(
        self, upstream: Upstream, recorder: Recorder, reserved: socket.socket, *, rewrite_any_host: bool = False
    ) -> None:
        self.upstream = upstream
        self.recorder = recorder
        self.mode = ProxyMode.parse(f"reverse:{upstream.url}")
        self.options = _options()
        self._rewrite_any_host = rewrite_any_host
        self._server: asyncio.Server | None = None
        self._reserved: socket.socket | None = reserved
        self._address: tuple[Any, ...] = reserved.getsockname()
        self.port: int = self._address[1]
        self._own_names = {f"{name}:{self.port}" for name in (*_LOOPBACK_NAMES, self._address[0])}
        self._connections: set[ClientConnection] = set()
        self._count = 0
        self._tls: Any = None

    @property
    def url(self) -> str:
        """What the connector is given in place of the daemon's URL."""
        host = self._address[0]
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    async def accept(self) -> None:
        """Listen on the port that is reserved."""
        if self._reserved is not None:
            reserved, self._reserved = self._reserved, None
            self._server = await asyncio.start_server(self._serve, sock=reserved, backlog=512)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count += 1
        connection = ClientConnection(reader, writer, self, self._count)
        self._connections.add(connection)
        try:
            await connection.handle_client()
        finally:
            self._connections.discard(connection)

    def direct(self, request: Request) -> None:
        """Send a request to the daemon of the moment, under the daemon's own name."""
        request.data.host, request.data.port, request.data.scheme = (
            self.upstream.host,
            self.upstream.port,
            self.upstream.scheme.encode(),
        )
        host = request.headers.get("host", "").lower()
        # A name that is not ours goes on as it is: a page that rebinds its name must meet the daemon's own refusal.
        if host and (self._rewrite_any_host or host in self._own_names):
            request.headers["host"] = self.upstream.authority

    def start_tls(self, data: TlsData) -> None:
        """Speak TLS with an https daemon whose certificate is verified, as SSL_CERT_FILE or certifi say."""
        from mitmproxy import ctx
        from mitmproxy.addons.tlsconfig import TlsConfig

        if self._tls is None:
            self._tls = TlsConfig()
            self._tls.load(self.options)
            self.options.update(ssl_verify_upstream_trusted_ca=os.environ.get("SSL_CERT_FILE"))
            ctx.options = self.options
        self._tls.tls_start_server(data)

    def report(self, failure: SignetConformanceError) -> None:
        """Say a failure of the recorder itself, which it survived."""
        self.recorder.internal_errors += 1
        print(f"signet_recording_proxy: {failure}", file=sys.stderr, flush=True)

    # ---- the listener as a fault

    def refuse(self, fault: Fault) -> None:
        """Stop listening, and drop every client: connects are refused until `accept`."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self._reserved = reserve(*self._address[:2])
        for connection in list(self._connections):
            connection.cut_off(fault)

    def close(self) -> None:
        """Stop listening and reset every client."""
        if self._server is not None:
            self._server.close()
        if self._reserved is not None:
            self._reserved.close()
        for connection in list(self._connections):
            connection.reset()


def _options() -> Options:
    options = Options()
    # The proxy core reads options that this addon declares; it is asked for nothing else.
    Proxyserver().load(options)
    options.update(
        connection_strategy="lazy",
        keep_host_header=True,
        validate_inbound_headers=False,
        http2=False,
        rawtcp=True,
    )
    return options
