"""Listens on the port that clients connect to, and stops while a fault refuses connections."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import urlsplit

from signet_conformance.errors import SignetConformanceError, UsageError, os_errors, printable
from signet_conformance.trace.marks import NO_ORIGIN, NoRequestMark, RefusedMark
from signet_recording_proxy.faults import Fault, MadeUpAnswer
from signet_recording_proxy.recorder import Recorder
from signet_recording_proxy.trace_file import Headers
from signet_recording_proxy.upstream import Upstream

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_SENT_BY_BROWSERS = frozenset({"origin", "sec-fetch-site"})
_MOST_ORIGINS_REPORTED = 20
_MOST_CHARS = 2000
PAGE_REFUSED = MadeUpAnswer(403, json={"error": "origin not allowed"}, headers=(("connection", "close"),))
"""The answer to a foreign page."""
_TURNS_TO_CLOSE = 10


class Connection(Protocol):
    """One client."""

    def cut_off(self, fault: Fault) -> None:
        """Reset the client because `fault` takes the whole daemon away."""

    def reset(self) -> None:
        """Reset the client's connection."""


Serve = Callable[[int], asyncio.Protocol]
"""Makes the protocol of the client with this number, counted from 1; it calls `add` and `remove` of the listener."""


class Listener:
    """Listens for clients of the daemon `upstream`, which may be another one later."""

    def __init__(
        self, upstream: Upstream, recorder: Recorder, reserved: socket.socket, *, rewrite_any_host: bool = False
    ) -> None:
        self.upstream = upstream
        self.recorder = recorder
        self._rewrite_any_host = rewrite_any_host
        self._server: asyncio.Server | None = None
        self._reserved: socket.socket | None = reserved
        self._address: tuple[Any, ...] = reserved.getsockname()
        self.port: int = self._address[1]
        self._own_names = {f"{name}:{self.port}" for name in (*_LOOPBACK_NAMES, self._address[0])}
        self._own_origins = {f"http://{name}" for name in (*self._own_names, urlsplit(self.url).netloc)}
        self._refused_origins: set[str] = set()
        self._connections: set[Connection] = set()
        self._count = 0
        self._serve: Serve | None = None

    @property
    def url(self) -> str:
        """The address to give the connector in place of the daemon's."""
        host = self._address[0]
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    async def serve(self, serve: Serve) -> None:
        """Listen, and serve every client."""
        self._serve = serve
        await self.accept()

    async def accept(self) -> None:
        """Listen on the reserved port, unless it listens already."""
        if self._reserved is not None:
            reserved, self._reserved = self._reserved, None
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(self._protocol, sock=reserved, backlog=512)

    def _protocol(self) -> asyncio.Protocol:
        assert self._serve is not None, "clients come only after serve"  # noqa: S101 - as it says
        self._count += 1
        return self._serve(self._count)

    def add(self, connection: Connection) -> None:
        """Note that a client has connected."""
        self._connections.add(connection)

    def remove(self, connection: Connection) -> None:
        """Note that a client is gone."""
        self._connections.discard(connection)

    def host_for(self, host: str) -> str:
        """The Host header to send the daemon for the client's: the recorder's own name becomes the daemon's.

        Other names stay: the daemon itself has to refuse a page that rebinds its name.
        """
        return self.upstream.authority if host and self.is_ours(host) else host

    def is_ours(self, host: str) -> bool:
        """Whether host and port name this recorder."""
        return self._rewrite_any_host or host.lower() in self._own_names

    def origin_for(self, origin: str) -> str:
        """The Origin header to send the daemon for the client's: the recorder's own origin becomes the daemon's."""
        return self.upstream.url if origin.lower() in self._own_origins else origin

    def is_foreign(self, headers: Headers) -> bool:
        """Whether a web page sent this that is neither ours nor the daemon's. Only browsers name an origin.

        Any page can make a browser send requests to this machine, and a daemon runs commands.
        """
        sent_by_browsers = [header for header in headers if header[0] in _SENT_BY_BROWSERS]
        if not sent_by_browsers:
            return False
        origins = [value for name, value in sent_by_browsers if name == "origin"]
        sites = {value.strip().lower() for name, value in sent_by_browsers if name != "origin"}
        if "cross-site" in sites or any(self.origin_for(origin) != self.upstream.url for origin in origins):
            return True
        # An image or a script of a page on another port of this machine names no origin.
        return "same-site" in sites and not origins

    def refuse_page(self, method: str, path: str, headers: Headers) -> None:
        """Mark that a page's request was refused; for each of the first origins, report it."""
        origins = (value for name, value in headers if name == "origin" and value.strip())
        origin = next(origins, NO_ORIGIN)
        # A page can send as many origins as it likes, each as long as it likes.
        mark = RefusedMark(origin=origin[:_MOST_CHARS], method=method[:_MOST_CHARS], path=path[:_MOST_CHARS])
        self.recorder.mark(RefusedMark.NAME, mark.data)
        if origin not in self._refused_origins and len(self._refused_origins) < _MOST_ORIGINS_REPORTED:
            self._refused_origins.add(origin)
            print(
                f"warning: {printable(origin, 80)} sent a request from a browser: refused", file=sys.stderr, flush=True
            )

    def mark_no_request(self, number: int, words: str) -> None:
        """Mark that a client sent something that cannot be read as a request."""
        self.recorder.mark(NoRequestMark.NAME, NoRequestMark(conn=number, words=words).data)

    def report(self, failure: SignetConformanceError) -> None:
        """Report a failure of the recorder itself, which keeps running."""
        self.recorder.internal_errors += 1
        print(f"error: {failure}", file=sys.stderr, flush=True)

    async def refuse(self, fault: Fault) -> None:
        """Stop listening, and reset every client: connects are refused until `accept`."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self._reserved = await self._reserve_again()
        for connection in list(self._connections):
            connection.cut_off(fault)

    async def _reserve_again(self) -> socket.socket:
        # uvloop closes a socket in the next turn of its loop; until then, we ourselves occupy the port.
        for _ in range(_TURNS_TO_CLOSE):
            try:
                return reserve(*self._address[:2])
            except UsageError:
                await asyncio.sleep(0)
        return reserve(*self._address[:2])

    def close(self) -> None:
        """Stop listening and reset every client."""
        if self._server is not None:
            self._server.close()
        if self._reserved is not None:
            self._reserved.close()
        for connection in list(self._connections):
            connection.reset()


def reserve(host: str, port: int) -> socket.socket:
    """A bound socket that does not listen: connects are refused, and no other program gets the port.

    Raises UsageError when the port is taken or the host is not an address of this machine.
    """
    remedy = "choose another --port, or leave it out for a free one"
    with os_errors("cannot listen there", where=f"{host}:{port}", remedy=remedy):
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        reserved = socket.socket(family, kind, protocol)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(address)
    return reserved
