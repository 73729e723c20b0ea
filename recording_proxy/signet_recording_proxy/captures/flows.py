"""mitmproxy's flow files: read as a capture, and written from a trace."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

from mitmproxy import connection, exceptions, flow, http
from mitmproxy.io import FlowReader, FlowWriter

from signet_conformance.errors import UsageError, printable
from signet_recording_proxy.captures.common import Captured, Headers, Said, as_sent, instant

_LOOPBACK = ("127.0.0.1", 0)


def read(path: str) -> list[Captured]:
    """The HTTP exchanges of a flow file; other flows are passed over. Raises UsageError when it is damaged."""
    where = printable(path, 400)
    try:
        with Path(path).open("rb") as stream:
            return [_captured(one) for one in FlowReader(stream).stream() if isinstance(one, http.HTTPFlow)]
    except OSError as failure:
        problem = f"cannot be read: {failure.strerror or failure}"
        raise UsageError(problem, where=where, remedy="check the path and its permissions") from None
    # The reader lets what a damaged file makes of it through in many shapes.
    except (exceptions.FlowReadException, ValueError, TypeError, KeyError, AttributeError, RecursionError) as failure:
        raise UsageError(
            f"is no flow file that can be read: {printable(failure, 160)}",
            where=where,
            remedy="save it again with mitmproxy's own version: mitmdump -r OLD -w NEW",
        ) from None


def _captured(one: http.HTTPFlow) -> Captured:
    request, response = one.request, one.response
    begun = request.timestamp_start
    ended = (response.timestamp_end or response.timestamp_start) if response is not None else None
    if ended is None:
        ended = one.error.timestamp if one.error is not None else request.timestamp_end or begun
    instant(begun)
    urlsplit(request.url)
    return Captured(
        request.method,
        request.url,
        _said(request),
        response.status_code if response is not None else None,
        None if response is None else _said(response),
        begun,
        ended,
        None if response is not None else _error(one.error),
    )


def _said(message: http.Message) -> Said:
    headers: Headers = [(name.lower(), value) for name, value in message.headers.items(multi=True)]
    return Said(headers, message.raw_content or b"", message.headers.get("content-encoding"))


def _error(error: flow.Error | None) -> str:
    text = "" if error is None else error.msg.lower()
    if "refused" in text or "connect" in text:
        return "upstream_refused"
    if "timeout" in text or "timed out" in text:
        return "upstream_timeout"
    return "client_closed" if "client" in text else "upstream_reset"


def write(captured: Iterable[Captured]) -> bytes:
    """The bytes of a flow file."""
    stream = BytesIO()
    writer = FlowWriter(stream)
    for one in captured:
        writer.add(_flow(one))
    return stream.getvalue()


def _flow(one: Captured) -> http.HTTPFlow:
    parts = urlsplit(one.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    client = connection.Client(peername=_LOOPBACK, sockname=_LOOPBACK, timestamp_start=one.begun)
    found = http.HTTPFlow(client, connection.Server(address=(parts.hostname or "", port)))
    target = one.url[len(f"{parts.scheme}://{parts.netloc}") :]
    found.request = http.Request(
        parts.hostname or "",
        port,
        as_sent(one.method),
        parts.scheme.encode(),
        b"",
        as_sent(target),
        b"HTTP/1.1",
        _headers(one.request),
        one.request.content,
        None,
        one.begun,
        one.begun,
    )
    if "content-length" in found.request.headers:
        found.request.content = one.request.content  # mends the length, which was that of the coded body
    if one.answer is not None:
        found.response = http.Response.make(one.status or 0, one.answer.content, _headers(one.answer))
        found.response.timestamp_start = found.response.timestamp_end = one.ended
    if one.error is not None:
        found.error = flow.Error(one.error.replace("_", " "), one.ended)
    return found


def _headers(said: Said) -> http.Headers:
    return http.Headers([(as_sent(name), as_sent(value)) for name, value in said.headers])
