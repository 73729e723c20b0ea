"""What the HTTP layers of mitmproxy lack: trailers of requests, answers before the answer, requests beyond memory.

A connection of mitmproxy gives up at a trailer and takes a 103 for the answer. These classes stand in the places of
its own, which it looks up in the module of its layers; the recorder is a process of its own, so nobody else is
concerned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from h11 import EndOfMessage
from h11._readers import ChunkedReader
from h11._receivebuffer import ReceiveBuffer
from mitmproxy.http import HTTPFlow
from mitmproxy.net.http import http1
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import http
from mitmproxy.proxy.layers.http import HttpLayer, HTTPMode, HttpStream
from mitmproxy.proxy.layers.http._events import HttpEvent, RequestData
from mitmproxy.proxy.layers.http._http1 import Http1Client, Http1Server

STREAMED_FROM = 8 * 1024 * 1024
"""Request bodies of more bytes are passed on while they come; smaller ones when they are complete."""

_Commands: TypeAlias = "layer.CommandGenerator[None]"
Take = Callable[[HTTPFlow, bytes], bool]
"""Takes the next bytes of a request's body; False when the daemon is not to get them."""


class RecordedLayer(HttpLayer):
    """One client's HTTP. `take` hears of each piece of a request's body as it comes."""

    def __init__(self, context: Context, mode: HTTPMode, take: Take) -> None:
        super().__init__(context, mode)
        self._take = take

    def make_stream(self, stream_id: int) -> _Commands:
        """One exchange of it."""
        stream = self.streams[stream_id] = _RecordedStream(self.context.fork(), stream_id)
        stream.take = self._take
        yield from self.event_to_child(stream, events.Start())


class _RecordedStream(HttpStream):
    """One exchange. A request's body is heard when it comes, since it is not kept where it is large."""

    take: Take
    _sends_again = False

    def state_consume_request_body(self, event: events.Event) -> _Commands:
        if isinstance(event, RequestData) and not self.take(self.flow, event.data):
            return
        # A body that turns out to be large is given to the state below once more, from its beginning.
        self._sends_again = True
        yield from super().state_consume_request_body(event)
        self._sends_again = False

    def state_stream_request_body(self, event: HttpEvent) -> _Commands:
        if isinstance(event, RequestData) and not self._sends_again:
            self.take(self.flow, event.data)
        yield from super().state_stream_request_body(event)

    def check_body_size(self, request: bool) -> layer.CommandGenerator[bool]:
        """Whether the exchange is given up: never. Of answers it is said elsewhere which are streamed."""
        return (yield from super().check_body_size(request)) if request else False


class _WithoutTrailer:
    """Reads a chunked body and leaves its trailer out: nobody passes one on."""

    def __init__(self, reader: ChunkedReader) -> None:
        self._reader = reader

    def __call__(self, buffer: ReceiveBuffer) -> object:
        """The next event of the body, or None if more bytes are needed."""
        event = self._reader(buffer)
        return EndOfMessage() if isinstance(event, EndOfMessage) else event

    def read_eof(self) -> object:
        """What the end of the connection means to the body."""
        return self._reader.read_eof()


class _Server(Http1Server):
    """The client's side."""

    def read_body(self, event: events.Event) -> _Commands:
        if isinstance(self.body_reader, ChunkedReader):
            self.body_reader = _WithoutTrailer(self.body_reader)  # type: ignore[assignment]
        yield from super().read_body(event)


class _Client(Http1Client):
    """The daemon's side."""

    def read_headers(self, event: events.ConnectionEvent) -> _Commands:
        while self.request is not None and (interim := self._interim()):
            # A client of HTTP/1.0 knows no answers before the answer.
            if self.request.http_version == "HTTP/1.1":
                yield commands.SendData(self.context.client, interim)
        yield from super().read_headers(event)

    def _interim(self) -> bytes | None:
        """The next whole head in the buffer, taken out of it, when it is one of 1xx; None otherwise.

        101 is an answer: another protocol follows.
        """
        before = bytes(self.buf)
        head, mark, _ = before.partition(b"\r\n\r\n")
        if not mark:
            return None
        try:
            status = http1.read_response_head(head.split(b"\r\n")).status_code
        except ValueError:
            return None
        if not 100 <= status <= 199 or status == 101:
            return None
        self.buf.maybe_extract_at_most(len(head) + len(mark))
        return head + mark


def install() -> None:
    """Let mitmproxy's layers use these connections."""
    places = vars(http)
    places["Http1Server"], places["Http1Client"] = _Server, _Client
