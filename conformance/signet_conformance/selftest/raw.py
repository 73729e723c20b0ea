"""HTTP written by hand, for the ways of sending a request that no client library offers."""

from __future__ import annotations

import asyncio

import h11
import httpx

WIRES = ("chunked", "close", "http10", "pieces")
"""`chunked`: no length, many pieces; `close`: a connection a request; `http10`: an old version of HTTP, which knows
no kept connections; `pieces`: a few bytes at a time."""
_PIECE = 16
_READ = 1 << 16


class RawTransport(httpx.AsyncBaseTransport):
    """Sends each request on a connection of its own, in the way that `wire` names."""

    def __init__(self, wire: str) -> None:
        self._wire = wire

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and read its answer to the end."""
        content = await request.aread()
        try:
            reader, writer = await asyncio.open_connection(request.url.host, request.url.port)
        except OSError as failure:
            raise httpx.ConnectError(str(failure)) from failure
        try:
            for piece in self._pieces(request, content):
                writer.write(piece)
                await writer.drain()
            return await _answer(reader, request)
        except (OSError, h11.RemoteProtocolError) as failure:
            raise httpx.ReadError(str(failure)) from failure
        finally:
            writer.close()

    def _pieces(self, request: httpx.Request, content: bytes) -> list[bytes]:
        version = b"HTTP/1.0" if self._wire == "http10" else b"HTTP/1.1"
        framing = (b"content-length", b"transfer-encoding", b"connection")
        headers = [(name, value) for name, value in request.headers.raw if name.lower() not in framing]
        if self._wire != "http10":
            headers.append((b"Connection", b"close"))
        chunked = self._wire == "chunked" and content
        if chunked:
            headers.append((b"Transfer-Encoding", b"chunked"))
        elif content:
            headers.append((b"Content-Length", str(len(content)).encode()))
        head = b"\r\n".join(
            [b" ".join((request.method.encode(), request.url.raw_path, version)), *map(b": ".join, headers), b"", b""]
        )
        if chunked:
            parts = [content[at : at + _PIECE] for at in range(0, len(content), _PIECE)]
            return [head, *(b"%x\r\n%s\r\n" % (len(part), part) for part in parts), b"0\r\n\r\n"]
        if self._wire == "pieces":
            whole = head + content
            return [whole[at : at + _PIECE] for at in range(0, len(whole), _PIECE)]
        return [head + content]


async def _answer(reader: asyncio.StreamReader, request: httpx.Request) -> httpx.Response:
    reading = h11.Connection(h11.CLIENT)
    # Only so that the parser knows which answer to expect.
    reading.send(h11.Request(method=request.method, target="/", headers=[("Host", "localhost")]))
    reading.send(h11.EndOfMessage())
    response: h11.Response | None = None
    body = bytearray()
    while True:
        event = reading.next_event()
        if event is h11.NEED_DATA:
            reading.receive_data(await reader.read(_READ))
        elif isinstance(event, h11.Response):
            response = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            break
        elif isinstance(event, h11.ConnectionClosed):
            raise h11.RemoteProtocolError("closed before the answer was complete")
    if response is None:
        raise h11.RemoteProtocolError("no answer")
    return httpx.Response(
        response.status_code, headers=list(response.headers), stream=httpx.ByteStream(bytes(body)), request=request
    )
