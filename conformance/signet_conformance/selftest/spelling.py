"""Other spellings of a message, equal for a reader of HTTP and JSON: of its JSON, its headers, its framing."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import h11
import httpx

from signet_conformance.files.json_values import put, value_at
from signet_conformance.selftest.messages import Outgoing
from signet_conformance.selftest.mutants import Change

_MARK = "\ue000"
"""Stands for a byte that is not UTF-8 until the text has become bytes."""


def spelled(request: Outgoing, change: Change, like: httpx.Request) -> httpx.Request:
    """The request for httpx, to where `like` goes, as a `spell` writes it."""
    plain = request.to_httpx(like)
    content = request.content
    if content and request.json is not None and "body" in change:
        content = BODIES[change["body"]](request.json)
    if content and "not_utf8" in change:
        content = _with_stray_bytes(request.json, change["not_utf8"])
    coding = {}
    if content and "coding" in change:
        content, coding = CODINGS[change["coding"]](content), {"content-encoding": change["coding"]}
    url = plain.url
    if change.get("path") == "percent":
        url = url.copy_with(raw_path=url.raw_path.replace(b"-", b"%2D"))
    headers = list({**request.headers, **coding}.items())
    if "header_names" in change:
        headers = [(HEADER_NAMES[change["header_names"]](name), value) for name, value in headers]
    if change.get("header_order") == "reversed":
        headers.reverse()
    headers += [(name, value) for name, value in change.get("more_headers", ())]
    return httpx.Request(
        request.method, url, headers=headers, content=content or None, extensions=dict(like.extensions)
    )


def _with_stray_bytes(body: Any, pointers: list[str]) -> bytes:
    for pointer in pointers:
        if isinstance(value := value_at(body, pointer), str):
            put(body, pointer, value + _MARK)
    return _raw(body).replace(_MARK.encode(), b"\xff")


def _raw(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _escaped(value: Any) -> str:
    """A JSON text in which every character of every string is an escape."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_escaped(name)}:{_escaped(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_escaped, value)) + "]"
    if isinstance(value, str):
        units = value.encode("utf-16-be", "surrogatepass").hex()
        return '"' + "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)) + '"'
    return json.dumps(value)


def _floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _floats(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_floats(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _twice(body: Any) -> str:
    members = [f"{json.dumps(name)}:{json.dumps(value)}" for name, value in body.items()]
    return "{" + ",".join(member for pair in zip(members, members, strict=True) for member in pair) + "}"


BODIES: Mapping[str, Callable[[Any], bytes]] = {
    "raw": _raw,
    "escaped": lambda body: _escaped(body).encode("ascii"),
    "indented": lambda body: b"\r\n\t " + json.dumps(body, indent=4).encode("ascii") + b"\n",
    "reversed": lambda body: json.dumps(dict(reversed(body.items()))).encode("ascii"),
    "floats": lambda body: json.dumps(_floats(body)).encode("ascii"),
    "twice": lambda body: _twice(body).encode("ascii"),
}
CODINGS: Mapping[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}
HEADER_NAMES: Mapping[str, Callable[[str], str]] = {"upper": str.upper, "title": str.title}


WIRES = ("chunked", "close", "http10", "pieces")
"""`chunked`: no length, many pieces; `close`: a connection for each request; `http10`: HTTP/1.0, without kept
connections; `pieces`: a few bytes at a time."""
_PIECE = 16
_READ = 1 << 16


class RawTransport(httpx.AsyncBaseTransport):
    """Sends each request on a connection of its own, in a way that no client library offers: one of WIRES."""

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
    # So that the parser knows which answer to expect.
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
