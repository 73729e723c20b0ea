"""Plain HTTP/1.1 to one server over kept connections, as a transport of httpx.

httpx's own transport passes each request and each piece of an answer through three more layers, with which a
conformance run of the harness takes 12.4 s of processor time instead of 8.2 s.
"""

from __future__ import annotations

import asyncio
import re
import select
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, cast

import httptools
import httpx

MOST_HEAD: Final = 256 * 1024
IDLE_S: Final = 5.0
"""How long a connection waits for its next request."""
Trace = Callable[[str, Mapping[str, Any]], Awaitable[None]]
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


class PlainTransport(httpx.AsyncBaseTransport):
    """Sends requests to `host` and `port`, over `most` connections at most."""

    def __init__(self, host: str, port: int, most: int) -> None:
        self._address = (host, port)
        self._free = asyncio.Semaphore(most)
        self._idle: list[_Connection] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and read the head of its answer; the body is read as the answer is iterated over.

        Raises httpx.TransportError. A `timeout` extension bounds, in seconds, each wait: for a
        free connection, for a new one, and for the next bytes. A `trace` extension is called for a new connection
        and when sending begins.
        """
        headers = request.headers.raw
        answer = await self.ask(
            _serialize(request.method, request.url.raw_path, headers, await request.aread()),
            request.extensions.get("trace") or _ignore,
            request.extensions.get("timeout") or {},
        )
        return httpx.Response(answer.status_code, headers=answer.raw_headers, stream=answer)

    async def request(
        self, method: str, url: httpx.URL, headers: Mapping[str, str], content: bytes, trace: Trace
    ) -> PlainAnswer:
        """Send a request as `handle_async_request` does, without objects of httpx, which would double the time."""
        sent = [(b"Host", url.netloc)]
        sent += [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
        if content:
            sent.append((b"Content-Length", b"%d" % len(content)))
        return await self.ask(_serialize(method, url.raw_path, sent, content), trace)

    async def ask(
        self, request: bytes, trace: Trace, bounds: Mapping[str, float | None] = MappingProxyType({})
    ) -> PlainAnswer:
        """Send a serialized request, and read the head of its answer."""
        try:
            async with asyncio.timeout(bounds.get("pool")):
                await self._free.acquire()
        except TimeoutError:
            raise httpx.PoolTimeout("no connection became free in time") from None
        connection: _Connection | None = None
        try:
            connection = self._take_idle()
            if connection is None:
                connection = await self._open(bounds.get("connect"))
                await trace("connection.connect_tcp.complete", {})
            await trace("http11.send_request_headers.started", {})
            await connection.ask(request, bounds.get("read"))
        except BaseException:
            await self.give_back(connection)
            raise
        return PlainAnswer(self, connection)

    async def aclose(self) -> None:
        """Close the idle connections."""
        for connection in self._idle:
            connection.drop()
        self._idle.clear()
        # The event loop closes sockets in its next step.
        await asyncio.sleep(0)

    def _take_idle(self) -> _Connection | None:
        """The idle connection that was used last and is alive, if any."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if now - connection.idle_since < IDLE_S and connection.alive():
                return connection
            connection.drop()
        return None

    async def _open(self, timeout_s: float | None) -> _Connection:
        try:
            async with asyncio.timeout(timeout_s):
                opening = asyncio.get_running_loop().create_connection(_Connection, *self._address)
                _, connection = await opening
        except TimeoutError as error:
            raise httpx.ConnectTimeout("no connection in time") from error
        except OSError as error:
            refused = isinstance(error, ConnectionRefusedError)
            raise httpx.ConnectError("connection refused" if refused else str(error)) from error
        return connection

    async def give_back(self, connection: _Connection | None) -> None:
        """Give back the connection of an answer that is read no further; keep it if it can be used again."""
        self._free.release()
        if connection is None:
            return
        if connection.reusable:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
        else:
            connection.drop()
            # The event loop closes the socket in its next step; until then, an answer could still be delivered.
            await asyncio.sleep(0)


class PlainAnswer(httpx.AsyncByteStream):
    """An answer whose body is still to be read; it has the needed members of `httpx.Response`."""

    def __init__(self, transport: PlainTransport, connection: _Connection) -> None:
        self._transport = transport
        self._connection: _Connection | None = connection
        self.status_code = connection.status
        self.raw_headers = connection.headers

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers by their names in lower case."""
        return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self.raw_headers}

    async def aiter_raw(self) -> AsyncIterator[bytes]:
        """The pieces of the body as they come."""
        if self._connection is not None:
            async for piece in self._connection.body():
                yield piece

    __aiter__ = aiter_raw

    async def aclose(self) -> None:
        """Give the connection back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await self._transport.give_back(connection)


class _Connection(asyncio.Protocol):
    """One connection: a request, its answer, then perhaps the next. httptools calls the methods `on_`."""

    def __init__(self) -> None:
        self._timeout_s: float | None = None
        self.idle_since = 0.0
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._progress: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._is_asked = self._has_head = self._has_framing = self._is_complete = self._stays_open = False
        self._head_size = 0

    @property
    def reusable(self) -> bool:
        """Whether the answer was read to its end, and the connection serves another request."""
        sent = self._transport is not None and not self._transport.get_write_buffer_size()
        return self._is_complete and self._stays_open and not self._pieces and self._failure is None and sent

    def alive(self) -> bool:
        """Whether the server has sent nothing since the last answer, not even the end of the connection."""
        if self._failure is not None or self._transport is None or self._transport.is_closing():
            return False
        # The event loop may not have noticed yet.
        waiting = select.poll()
        waiting.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not waiting.poll(0)

    async def ask(self, request: bytes, timeout_s: float | None = None) -> None:
        """Send a request and wait for the head of the answer; `timeout_s` bounds each wait for the next bytes."""
        self._timeout_s = timeout_s
        self._is_asked, self._has_head, self._is_complete, self._stays_open = True, False, False, False
        self.headers = []
        self._head_size = 0
        if self._transport is not None:
            self._transport.write(request)
        while not self._has_head:
            await self._more()

    async def body(self) -> AsyncIterator[bytes]:
        """The pieces of the answer's body."""
        while True:
            if self._pieces:
                # Pass on together what arrived together: the cost per piece exceeds that of its bytes.
                piece = b"".join(self._pieces)
                self._pieces.clear()
                yield piece
            elif self._is_complete:
                return
            else:
                await self._more()

    def drop(self) -> None:
        """Close the connection at once."""
        self._fail(httpx.ReadError("the connection was closed"))
        if self._transport is not None:
            self._transport.abort()

    async def _more(self) -> None:
        if self._failure is not None:
            raise self._failure
        loop = asyncio.get_running_loop()
        self._progress = loop.create_future()
        timer = None if self._timeout_s is None else loop.call_later(self._timeout_s, self._time_out)
        try:
            await self._progress
        finally:
            self._progress = None
            if timer is not None:
                timer.cancel()

    def _time_out(self) -> None:
        self._fail(httpx.ReadTimeout("nothing came in time"))

    def _wake(self) -> None:
        if self._progress is not None and not self._progress.done():
            self._progress.set_result(None)

    def _fail(self, failure: Exception) -> None:
        self._failure = self._failure or failure
        self._wake()

    # ---- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if not self._is_asked or self._is_complete:
            self._stays_open = False
            self.drop()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._stays_open = False
            self._fail(httpx.RemoteProtocolError(f"the answer is not HTTP: {error}"))
        else:
            if not self._has_head:
                self._head_size += len(data)
                if self._head_size > MOST_HEAD:
                    self._fail(httpx.RemoteProtocolError(f"the answer's head is larger than {MOST_HEAD} bytes"))
        self._wake()

    def connection_lost(self, failure: Exception | None) -> None:
        self._stays_open = False
        if failure is not None:
            self._fail(httpx.ReadError(str(failure) or type(failure).__name__))
        elif self._has_head and not self._is_complete and not self._has_framing:
            self._is_complete = True
            self._wake()
        else:
            within = "within its answer" if self._has_head else "without an answer"
            self._fail(httpx.RemoteProtocolError(f"the server closed the connection {within}"))

    # ---- what httptools calls

    def on_message_begin(self) -> None:
        if self._is_complete:  # an answer without a request
            self._stays_open = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:  # trailers are ignored
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self._is_complete:
            return
        self.status = self._parser.get_status_code()
        if self.status == 101:
            self._fail(httpx.RemoteProtocolError("the server changes to another protocol"))
        if self.status < 200:
            return
        names = {name.lower() for name, _ in self.headers}
        self._has_framing = bool(names & {b"content-length", b"transfer-encoding"})
        self._has_head = True

    def on_body(self, piece: bytes) -> None:
        if not self._is_complete:
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        if not self._has_head:
            # An interim answer such as 100: the next head is the one that counts.
            self.headers = []
        elif not self._is_complete:
            self._is_complete, self._stays_open = True, self._parser.should_keep_alive()


async def _ignore(_event: str, _info: Mapping[str, Any]) -> None:
    pass


def _serialize(method: str, target: bytes, headers: Iterable[tuple[bytes, bytes]], content: bytes) -> bytes:
    """The bytes of a request. Raises httpx.LocalProtocolError for a header with a control character."""
    lines = [b"%b %b HTTP/1.1" % (method.encode("ascii"), target)]
    for name, value in headers:
        if _CONTROL.search(value) or _CONTROL.search(name):
            raise httpx.LocalProtocolError(f"the header {name.decode('latin-1')!r} holds a control character")
        lines.append(b"%b: %b" % (name, value))
    return b"\r\n".join((*lines, b"", content))
