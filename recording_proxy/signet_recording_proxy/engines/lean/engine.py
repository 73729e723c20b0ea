"""The lean engine of the recorder: plain HTTP/1.1 to a daemon."""

from __future__ import annotations

import asyncio

from signet_recording_proxy.engines.lean.client_connection import ClientConnection
from signet_recording_proxy.engines.lean.plain_http import demand_plain_http
from signet_recording_proxy.engines.lean.room import Room, raise_limit
from signet_recording_proxy.listener import Listener
from signet_recording_proxy.upstream import Upstream


class Lean:
    """Gives each client a connection of its own to the daemon."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._room = Room()
        raise_limit()

    def client(self, number: int) -> asyncio.Protocol:
        """A connection for one client."""
        return ClientConnection(self._listener, self._room, number)

    def demand(self, upstream: Upstream) -> None:
        """Raise UsageError for a daemon that is spoken to over TLS."""
        demand_plain_http(upstream)
