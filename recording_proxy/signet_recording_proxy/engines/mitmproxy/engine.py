"""mitmproxy as an engine of the recorder."""

from __future__ import annotations

import asyncio
from functools import partial

from signet_recording_proxy.engines.mitmproxy.connection import ClientConnection
from signet_recording_proxy.engines.mitmproxy.http_layers import install
from signet_recording_proxy.engines.mitmproxy.way import Way
from signet_recording_proxy.listener import Listener
from signet_recording_proxy.upstream import Upstream


class Mitmproxy:
    """Gives each client a connection of mitmproxy's own, on the same way to the daemon."""

    def __init__(self, listener: Listener) -> None:
        install()
        self._way = Way(listener)

    def client(self, number: int) -> asyncio.Protocol:
        """A connection for one client."""
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(), partial(self._serve, number))

    def demand(self, upstream: Upstream) -> None:
        """Every daemon will do: mitmproxy speaks TLS too."""

    async def _serve(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = ClientConnection(reader, writer, self._way, number)
        self._way.listener.arrived(connection)
        try:
            await connection.handle_client()
        finally:
            self._way.listener.gone(connection)
