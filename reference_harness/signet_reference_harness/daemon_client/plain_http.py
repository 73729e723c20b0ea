"""Plain HTTP/1.1 to one server over kept connections, as a transport of httpx.

httpx's own transport passes each request and each piece of an answer through three more layers. With them, a
conformance run of the harness takes half as much processor time again (8.2 s, and 12.4 s with httpx's).
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
    """Sends requests to `host` and `port`, over at most `most` connections at once."""

    def __init__(self, host: str, port: int, most: int) -> None:
        self._place = (host, port)
        self._free = asyncio.Semaphore(most)
        self._idle: list[_Connection] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and read the head of its answer; the body is read as the answer is iterated over.

        Raises httpx.TransportError. A `timeout` extension bounds, in seconds, each wait: for a
        free connection, for a new one, and for the next bytes. A `trace` extension hears of a new connection and of
        the sending.
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
        """Send a request as `handle_async_request` does, without objects of httpx: making those takes as long again."""
        told = [(b"Host", url.netloc)]
        told += [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
        if content:
            told.append((b"Content-Length", b"%d" % len(content)))
        return await self.ask(_serialize(method, url.raw_path, told, content), trace)

    async def ask(
        self, request: bytes, trace: Trace, bounds: Mapping[str, float | None] = MappingProxyType({})
    ) -> PlainAnswer:
        """Send a request that is written out, and read the head of its answer."""
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
            self.give_back(connection)
            raise
        return PlainAnswer(self, connection)

    async def aclose(self) -> None:
        """Close the connections that wait for a request."""
        for connection in self._idle:
            connection.drop()
        self._idle.clear()
        # Sockets are closed by the loop, in its next step.
        await asyncio.sleep(0)

    def _take_idle(self) -> _Connection | None:
        """A connection that waits and is alive, the one that was used last."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if now - connection.idle_since < IDLE_S and connection.alive():
                return connection
            connection.drop()
        return None

    async def _open(self, patience_s: float | None) -> _Connection:
        try:
            async with asyncio.timeout(patience_s):
                opening = asyncio.get_running_loop().create_connection(_Connection, *self._place)
                _, connection = await opening
        except TimeoutError as error:
            raise httpx.ConnectTimeout("no connection in time") from error
        except OSError as error:
            refused = isinstance(error, ConnectionRefusedError)
            raise httpx.ConnectError("connection refused" if refused else str(error)) from error
        return connection

    def give_back(self, connection: _Connection | None) -> None:
        """Give back the connection of an answer that is not read any further, and keep it if it can be used again."""
        self._free.release()
        if connection is None:
            return
        if connection.reusable:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
        else:
            connection.drop()


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
            self._transport.give_back(connection)


class _Connection(asyncio.Protocol):
    """One connection: a request, its answer, then perhaps the next. httptools calls the methods `on_`."""

    def __init__(self) -> None:
        self._patience_s: float | None = None
        self.idle_since = 0.0
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._news: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._asked = self._headed = self._framed = self._whole = self._stays = False
        self._head_size = 0

    @property
    def reusable(self) -> bool:
        """Whether the answer was read to its end, and the connection serves another request."""
        sent = self._transport is not None and not self._transport.get_write_buffer_size()
        return self._whole and self._stays and not self._pieces and self._failure is None and sent

    def alive(self) -> bool:
        """Whether the server has sent nothing since the last answer, not even the end of the connection."""
        if self._failure is not None or self._transport is None or self._transport.is_closing():
            return False
        # The loop may not have heard of it yet.
        waiting = select.poll()
        waiting.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not waiting.poll(0)

    async def ask(self, request: bytes, patience_s: float | None = None) -> None:
        """Send a request and wait for the head of the answer; `patience_s` is for each wait for the next bytes."""
        self._patience_s = patience_s
        self._asked, self._headed, self._whole, self._stays = True, False, False, False
        self.headers = []
        self._head_size = 0
        if self._transport is not None:
            self._transport.write(request)
        while not self._headed:
            await self._more()

    async def body(self) -> AsyncIterator[bytes]:
        """The pieces of the answer's body."""
        while True:
            if self._pieces:
                # Pass on together what arrived together: each piece costs its reader more than its bytes do.
                piece = b"".join(self._pieces)
                self._pieces.clear()
                yield piece
            elif self._whole:
                return
            else:
                await self._more()

    def drop(self) -> None:
        """End it at once."""
        self._fail(httpx.ReadError("the connection was closed"))
        if self._transport is not None:
            self._transport.abort()

    async def _more(self) -> None:
        if self._failure is not None:
            raise self._failure
        loop = asyncio.get_running_loop()
        self._news = loop.create_future()
        late = None if self._patience_s is None else loop.call_later(self._patience_s, self._late)
        try:
            await self._news
        finally:
            self._news = None
            if late is not None:
                late.cancel()

    def _late(self) -> None:
        self._fail(httpx.ReadTimeout("nothing came in time"))

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _fail(self, failure: Exception) -> None:
        self._failure = self._failure or failure
        self._tell()

    # ---- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if not self._asked or self._whole:
            self._stays = False
            self.drop()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._stays = False
            self._fail(httpx.RemoteProtocolError(f"the answer is not HTTP: {error}"))
        else:
            if not self._headed:
                self._head_size += len(data)
                if self._head_size > MOST_HEAD:
                    self._fail(httpx.RemoteProtocolError(f"the answer's head is larger than {MOST_HEAD} bytes"))
        self._tell()

    def connection_lost(self, failure: Exception | None) -> None:
        self._stays = False
        if failure is not None:
            self._fail(httpx.ReadError(str(failure) or type(failure).__name__))
        elif self._headed and not self._whole and not self._framed:
            self._whole = True
            self._tell()
        else:
            within = "within its answer" if self._headed else "without an answer"
            self._fail(httpx.RemoteProtocolError(f"the server closed the connection {within}"))

    # ---- what httptools calls

    def on_message_begin(self) -> None:
        if self._whole:  # an answer without a request
            self._stays = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._headed:  # a trailer tells nothing here
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self._whole:
            return
        self.status = self._parser.get_status_code()
        if self.status == 101:
            self._fail(httpx.RemoteProtocolError("the server changes to another protocol"))
        if self.status < 200:
            return
        names = {name.lower() for name, _ in self.headers}
        self._framed = bool(names & {b"content-length", b"transfer-encoding"})
        self._headed = True

    def on_body(self, piece: bytes) -> None:
        if not self._whole:
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        if not self._headed:
            # An interim answer such as 100: the next head is the one that counts.
            self.headers = []
        elif not self._whole:
            self._whole, self._stays = True, self._parser.should_keep_alive()


async def _ignore(_event: str, _info: Mapping[str, Any]) -> None:
    pass


def _serialize(method: str, target: bytes, headers: Iterable[tuple[bytes, bytes]], content: bytes) -> bytes:
    """The request as it is sent. Raises httpx.LocalProtocolError for a header that would begin another line."""
    lines = [b"%b %b HTTP/1.1" % (method.encode("ascii"), target)]
    for name, value in headers:
        if _CONTROL.search(value) or _CONTROL.search(name):
            raise httpx.LocalProtocolError(f"the header {name.decode('latin-1')!r} holds a control character")
        lines.append(b"%b: %b" % (name, value))
    return b"\r\n".join((*lines, b"", content))
