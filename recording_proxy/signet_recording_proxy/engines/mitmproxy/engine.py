"""mitmproxy as an engine of the recorder."""

from __future__ import annotations

import asyncio

from signet_recording_proxy.engines.mitmproxy.connection import ClientConnection
from signet_recording_proxy.engines.mitmproxy.http_layers import install
from signet_recording_proxy.engines.mitmproxy.way import Way
from signet_recording_proxy.listener import Listener


class Mitmproxy:
    """Gives each client a connection of mitmproxy's own, on the same way to the daemon."""

    def __init__(self, listener: Listener) -> None:
        install()
        self._way = Way(listener)

    def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> ClientConnection:
        """A connection for one client."""
        return ClientConnection(reader, writer, self._way, number)
