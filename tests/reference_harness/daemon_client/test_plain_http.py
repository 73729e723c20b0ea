"""The transport to a plain server: every way an answer can be framed, end or be missing; connections kept or not."""

from __future__ import annotations

import asyncio
import gzip
import re
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import pytest

from signet_reference_harness.daemon_client.plain_http import MOST_HEAD, PlainTransport

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
CLOSE = b""
"""In an answer: the server closes the connection here."""


@dataclass
class Server:
    """Answers each request with the next of `answers`: bytes, or several that it sends one after the other."""

    answers: list[bytes | tuple[bytes, ...]]
    asked: list[bytes] = field(default_factory=list)
    connections: int = 0
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    played: asyncio.Event = field(default_factory=asyncio.Event)
    """An answer was sent to its end, with the end of the connection where it has one."""
    silent: bool = False
    together: int = 0
    most_together: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def took(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A connection is there."""
        self.connections += 1
        self._tasks.add(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
                self.asked.append(head + await reader.readexactly(int(length[1]) if length else 0))
                self.heard.set()
                self.together += 1
                self.most_together = max(self.most_together, self.together)
                await asyncio.sleep(0.01)
                if self.silent:
                    await reader.read()
                    return
                answer = self.answers.pop(0)
                for piece in (answer,) if isinstance(answer, bytes) else answer:
                    if piece == CLOSE:
                        writer.close()
                        await writer.wait_closed()
                        self.played.set()
                        return
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0.01)
                self.played.set()
                self.together -= 1
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.left.set()
            writer.close()

    async def end(self) -> None:
        """Wait for the connections to end."""
        await asyncio.wait_for(asyncio.gather(*self._tasks), 20)


@asynccontextmanager
async def served(*answers: bytes | tuple[bytes, ...], most: int = 8) -> AsyncIterator[tuple[Server, PlainTransport]]:
    """A server with these answers, and a transport to it."""
    server = Server(list(answers))
    listener = await asyncio.start_server(server.took, "127.0.0.1", 0)
    transport = PlainTransport("127.0.0.1", listener.sockets[0].getsockname()[1], most)
    try:
        yield server, transport
    finally:
        await transport.aclose()
        listener.close()
        await server.end()


async def told(transport: PlainTransport, **headers: str) -> tuple[int, bytes]:
    """Status and body of one exchange."""
    request = httpx.Request("POST", "http://daemon.invalid/api/x?y=1", headers=headers, content=b"{}")
    response = await transport.handle_async_request(request)
    return response.status_code, await read(response)


async def read(response: httpx.Response) -> bytes:
    """The body, whose connection is then given back."""
    try:
        return b"".join([piece async for piece in response.aiter_raw()])
    finally:
        await response.aclose()


def run(work: Callable[[], Awaitable[None]]) -> None:
    """Run it, with a bound for a test that hangs."""

    async def bounded() -> None:
        async with asyncio.timeout(60):
            await work()

    asyncio.run(bounded())


FRAMED = {
    "length": (OK, 200, b"{}", True),
    "in single bytes": (tuple(OK[at : at + 1] for at in range(len(OK))), 200, b"{}", True),
    "chunks": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", 200, b"{}", True),
    "chunks and trailer": (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx: y\r\n\r\n",
        200,
        b"{}",
        True,
    ),
    "no body": (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True),
    "100 before": ((b"HTTP/1.1 100 Continue\r\n\r\n", OK), 200, b"{}", True),
    "100 and more at once": (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK, 200, b"{}", True),
    "until closed": ((b"HTTP/1.1 200 OK\r\n\r\n{", b"}", CLOSE), 200, b"{}", False),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}", 200, b"{}", False),
    "connection: close": (b"HTTP/1.1 500 No\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}", 500, b"{}", False),
    "more than the answer": (OK + b"HTTP/1.1 200 OK\r\n", 200, b"{}", False),
    "bytes nobody asked for": ((OK, b"HTTP/1.1 200 OK\r\n"), 200, b"{}", False),
    "closed after the answer": ((OK, CLOSE), 200, b"{}", False),
}


@pytest.mark.parametrize("case", FRAMED)
def test_answer_is_read_to_its_end(case: str) -> None:
    """Status and body are right however the answer is framed; its connection serves the next request if it can."""
    answer, status, body, stays = FRAMED[case]

    async def work() -> None:
        async with served(answer, OK) as (server, transport):
            assert await told(transport) == (status, body)
            await server.played.wait()
            assert await told(transport) == (200, b"{}")
            assert server.connections == (1 if stays else 2)
            assert server.asked[0] == server.asked[1]

    run(work)


BROKEN = {
    "closed without an answer": ((CLOSE,), "without an answer"),
    "closed within the head": ((b"HTTP/1.1 200 OK\r\ncont", CLOSE), "without an answer"),
    "cut body": (
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{", CLOSE),
        "within its answer",
    ),
    "cut chunks": (
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n", CLOSE),
        "within its answer",
    ),
    "not HTTP": (b"hello\r\n\r\n", "not HTTP"),
    "two lengths": (
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        "not HTTP",
    ),
    "another protocol": (
        b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        "protocol",
    ),
    "endless head": (
        (b"HTTP/1.1 200 OK\r\n", b"x: " + b"y" * MOST_HEAD, b"z"),
        f"larger than {MOST_HEAD} bytes",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_answer_that_cannot_be_read_says_why(case: str) -> None:
    """It ends in httpx's own error, and the next request has a connection of its own."""
    answer, words = BROKEN[case]

    async def work() -> None:
        async with served(answer, OK) as (server, transport):
            with pytest.raises(httpx.RemoteProtocolError, match=words):
                await told(transport)
            assert await told(transport) == (200, b"{}")
            assert server.connections == 2

    run(work)


def test_request_is_sent_as_it_stands() -> None:
    """Method, path and query, headers, an empty line and the body."""

    async def work() -> None:
        async with served(OK) as (server, transport):
            await told(transport, x="b")
            head, _, body = server.asked[0].partition(b"\r\n\r\n")
            first, *rest = head.split(b"\r\n")
            assert first == b"POST /api/x?y=1 HTTP/1.1"
            assert set(map(bytes.lower, rest)) == {b"host: daemon.invalid", b"x: b", b"content-length: 2"}
            assert body == b"{}"

    run(work)


def test_header_that_would_begin_another_line_is_not_sent() -> None:
    """It is refused before anything is sent."""

    async def work() -> None:
        async with served() as (server, transport):
            for bad in ("a\r\ny: c", "a\nb", "a\0"):
                with pytest.raises(httpx.LocalProtocolError):
                    await told(transport, x=bad)
            assert not server.asked

    run(work)


def test_nobody_listens() -> None:
    """A refused connection is told as such."""

    async def work() -> None:
        async with served() as (_, transport):
            pass
        with pytest.raises(httpx.ConnectError, match="connection refused"):
            await told(transport)

    run(work)


HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"
LATE = {
    "no connection": ({"connect": 0.0}, httpx.ConnectTimeout, OK),
    "no answer": ({"read": 0.05}, httpx.ReadTimeout, HEAD[:9]),
    "half an answer": ({"read": 0.05}, httpx.ReadTimeout, HEAD + b"{"),
}


@pytest.mark.parametrize("case", LATE)
def test_what_does_not_come_in_time_is_not_waited_for(case: str) -> None:
    """A bound of the request ends the wait in httpx's own error; the next request has a connection of its own."""
    bounds, failure, answer = LATE[case]

    async def work() -> None:
        async with served(answer) as (server, transport):
            request = httpx.Request("POST", "http://daemon.invalid/", content=b"{}", extensions={"timeout": bounds})
            with pytest.raises(failure, match="in time"):
                await read(await transport.handle_async_request(request))
            # One more than is read: the server may come to the first request only now.
            server.answers = [OK, OK]
            assert await told(transport) == (200, b"{}")

    run(work)


def test_connection_that_does_not_become_free_is_not_waited_for() -> None:
    """A request that may wait for no connection fails while the only one is in use, and not after it."""

    async def work() -> None:
        async with served(OK, OK, most=1) as (_, transport):
            request = httpx.Request("GET", "http://daemon.invalid/", extensions={"timeout": {"pool": 0.0}})
            first = await transport.handle_async_request(request)
            with pytest.raises(httpx.PoolTimeout):
                await transport.handle_async_request(request)
            assert await read(first) == b"{}"
            assert await read(await transport.handle_async_request(request)) == b"{}"

    run(work)


def test_client_can_be_given_it() -> None:
    """A client of httpx takes its answers, and reads them packed or not."""
    packed = gzip.compress(b"{}")
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)

    async def work() -> None:
        async with served(head + packed, OK) as (_, transport), httpx.AsyncClient(transport=transport) as client:
            assert [(await client.get("http://daemon.invalid/")).json() for _ in range(2)] == [{}, {}]

    run(work)


def test_request_that_is_given_up_ends_its_connection() -> None:
    """The server sees the client leave, and the next request opens another connection."""

    async def work() -> None:
        async with served(OK, most=1) as (server, transport):
            server.silent = True
            asking = asyncio.create_task(told(transport))
            await server.heard.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await server.left.wait()
            server.silent = False
            assert await told(transport) == (200, b"{}")
            assert server.connections == 2

    run(work)


def test_caller_goes_on_after_the_connection_of_its_given_up_request_has_closed() -> None:
    """Otherwise the daemon could still send the answer, and take it for delivered."""

    async def work() -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            transport = PlainTransport("127.0.0.1", listener.getsockname()[1], 1)
            connections: list[socket.socket] = []

            async def give_up() -> bytes:
                with pytest.raises(asyncio.CancelledError):
                    await told(transport)
                return connections[0].recv(1)

            asking = asyncio.create_task(give_up())
            connections.append((await loop.sock_accept(listener))[0])
            with connections[0]:
                await loop.sock_recv(connections[0], 65536)
                asking.cancel()
                assert await asking == CLOSE

    run(work)


def test_requests_at_once_have_connections_of_their_own_within_the_bound() -> None:
    """Six requests over at most two connections are all answered, and both connections are used again."""

    async def work() -> None:
        async with served(*[OK] * 6, most=2) as (server, transport):
            assert await asyncio.gather(*(told(transport) for _ in range(6))) == [(200, b"{}")] * 6
            assert (server.connections, server.most_together) == (2, 2)

    run(work)


def test_body_that_nobody_reads_ends_its_connection() -> None:
    """What is left of an answer is not taken for the next."""

    async def work() -> None:
        async with served(OK, OK) as (server, transport):
            request = httpx.Request("GET", "http://daemon.invalid/")
            await (await transport.handle_async_request(request)).aclose()
            assert await told(transport) == (200, b"{}")
            assert server.connections == 2

    run(work)


def test_connection_that_was_closed_unheard_is_not_used() -> None:
    """A server that closes a kept connection while the loop is busy gets the next request on another."""
    closed = threading.Event()

    def serve(listener: socket.socket) -> None:
        for _ in range(2):
            connection, _ = listener.accept()
            with connection:
                while not connection.recv(65536).endswith(b"{}"):
                    pass
                connection.sendall(OK)
            closed.set()

    async def work() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            serving = threading.Thread(target=serve, args=(listener,))
            serving.start()
            transport = PlainTransport("127.0.0.1", listener.getsockname()[1], 1)
            assert await told(transport) == (200, b"{}")
            assert closed.wait(20)
            assert await told(transport) == (200, b"{}")
            await transport.aclose()
            serving.join()

    run(work)
