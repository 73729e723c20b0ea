"""mitmproxy's flow files: read as a capture, and written from a trace."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

from mitmproxy import connection, exceptions, flow, http
from mitmproxy.io import FlowReader, FlowWriter

from signet_conformance.errors import UsageError, os_errors, printable
from signet_conformance.trace.model import NOT_CARRIED
from signet_recording_proxy.captures import CapturedExchange, CapturedMessage, Headers, as_sent, instant

_LOOPBACK = ("127.0.0.1", 0)

_DAMAGE = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError, MemoryError)


def read(path: str) -> list[CapturedExchange]:
    """The HTTP exchanges of a flow file; other flows are passed over. Raises UsageError when it is damaged."""
    unread = os_errors("cannot be read", where=path, remedy="check the path and its permissions")
    try:
        with unread, Path(path).open("rb") as stream:
            flows = (each for each in FlowReader(stream).stream() if isinstance(each, http.HTTPFlow))
            return [_captured(captured, path) for captured in flows]
    # A damaged file makes the reader raise many kinds of errors.
    except (exceptions.FlowReadException, *_DAMAGE) as failure:
        raise UsageError(
            f"is not a flow file that can be read: {printable(failure, 160)}",
            where=path,
            remedy="save it again with mitmproxy's own version: mitmdump -r OLD -w NEW",
        ) from None


def _captured(captured: http.HTTPFlow, where: str) -> CapturedExchange:
    request, response = captured.request, captured.response
    begun = request.timestamp_start
    ended = (response.timestamp_end or response.timestamp_start) if response is not None else None
    if ended is None:
        ended = captured.error.timestamp if captured.error is not None else request.timestamp_end or begun
    instant(begun, where)
    instant(ended, where)
    urlsplit(request.url)
    return CapturedExchange(
        request.method,
        request.url,
        _message_of(request),
        response.status_code if response is not None else None,
        None if response is None else _message_of(response),
        begun,
        ended,
        None if response is not None else error_kind(captured.error),
    )


def _message_of(message: http.Message) -> CapturedMessage:
    headers: Headers = [(name.lower(), value) for name, value in message.headers.items(multi=True)]
    # mitmproxy keeps nothing of a body that it streamed.
    lacks = message.raw_content is None
    return CapturedMessage(
        headers, message.raw_content or b"", message.headers.get("content-encoding"), lacks_content=lacks
    )


def error_kind(error: flow.Error | None) -> str:
    """The trace's kind of error for an error of mitmproxy, recognised by words of its message."""
    text = "" if error is None else error.msg.lower()
    return next((kind for kind, words in _KINDS if any(word in text for word in words)), "upstream_reset")


_KINDS = (
    ("client_closed", ("client",)),
    (NOT_CARRIED, ("not carried",)),
    ("upstream_timeout", ("timeout", "timed out")),
    ("upstream_refused", ("refused", "connect call failed", "could not connect", "certificate", "tls")),
)
"""The kinds of errors, and words in the messages of mitmproxy, or of `write` below, that show each kind."""


def write(captured: Iterable[CapturedExchange]) -> bytes:
    """The bytes of a flow file."""
    stream = BytesIO()
    writer = FlowWriter(stream)
    for exchange in captured:
        writer.add(_flow(exchange))
    return stream.getvalue()


def _flow(exchange: CapturedExchange) -> http.HTTPFlow:
    parts = urlsplit(exchange.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    client = connection.Client(peername=_LOOPBACK, sockname=_LOOPBACK, timestamp_start=exchange.begun)
    result = http.HTTPFlow(client, connection.Server(address=(parts.hostname or "", port)))
    target = exchange.url[len(f"{parts.scheme}://{parts.netloc}") :]
    result.request = http.Request(
        parts.hostname or "",
        port,
        as_sent(exchange.method),
        parts.scheme.encode(),
        b"",
        as_sent(target),
        b"HTTP/1.1",
        _headers(exchange.request),
        exchange.request.content,
        None,
        exchange.begun,
        exchange.begun,
    )
    if "content-length" in result.request.headers:
        result.request.content = exchange.request.content  # corrects the length of the encoded body
    if exchange.answer is not None:
        result.response = http.Response.make(exchange.status or 0, exchange.answer.content, _headers(exchange.answer))
        result.response.timestamp_start = result.response.timestamp_end = exchange.ended
    if exchange.error is not None:
        result.error = flow.Error(exchange.error.replace("_", " "), exchange.ended)
    return result


def _headers(message: CapturedMessage) -> http.Headers:
    return http.Headers([(as_sent(name), as_sent(value)) for name, value in message.headers])
