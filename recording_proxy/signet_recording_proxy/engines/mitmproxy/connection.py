"""One client connection: what mitmproxy's reverse mode tells of it becomes exchanges; faults act here.

Where the daemon gave no answer, the client gets none either: mitmproxy's own 502 never reaches it (its
400 does, for what is not HTTP). A client that closes its sending side counts as one that left.

mitmproxy passes a head on by itself, or waits for the whole body however long that takes; it cannot wait for a moment,
as the lean engine does. So whether an answer was heard by a client that leaves once it has the head (`client_closed`)
depends here on whether the body had come by then.
"""

from __future__ import annotations

import asyncio
import errno
import math
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from mitmproxy.connection import Connection
from mitmproxy.http import HTTPFlow
from mitmproxy.proxy import events, layer, layers
from mitmproxy.proxy.commands import StartHook
from mitmproxy.proxy.layers.http import HTTPMode
from mitmproxy.proxy.server import LiveConnectionHandler
from mitmproxy.proxy.server_hooks import ServerConnectionHookData
from mitmproxy.tls import TlsData

from signet_conformance.errors import KitError
from signet_conformance.trace.model import NOT_CARRIED
from signet_recording_proxy.client import Client
from signet_recording_proxy.engines.mitmproxy.fault_answers import add_members, made_up
from signet_recording_proxy.engines.mitmproxy.http_layers import RecordedLayer
from signet_recording_proxy.engines.mitmproxy.way import Way
from signet_recording_proxy.faults import Fault
from signet_recording_proxy.listener import PAGE_REFUSED
from signet_recording_proxy.recorder import Headers, Ongoing, Sent

_EXCHANGE = "signet-exchange"
_DRIP_S = 0.25
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class ClientConnection(LiveConnectionHandler):
    """Carries one client's requests to the daemon, one at a time, and records them."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Way, number: int) -> None:
        super().__init__(reader, writer, way.options, way.mode)
        self._way = way
        self._recorder = way.listener.recorder
        self._client = Client(self._recorder)
        self._number = number
        self._stream = writer
        self._exchange: Ongoing | None = None
        self._closed_by_us = False
        self._timed_out = False
        self._connect_error: str | None = None
        self._kept_back: list[bytes] = []
        self._hooks: dict[str, Callable[[Any], Awaitable[None] | None]] = {
            "next_layer": self._next_layer,
            "server_connect_error": self._connect_failed,
            "tls_start_server": way.start_tls,
            "tls_failed_server": self._tls_failed,
            "requestheaders": self._request_head,
            "request": self._request,
            "responseheaders": self._response_head,
            "response": self._response,
            "error": self._error,
        }

    async def server_event(self, event: events.Event) -> None:
        """Note the instant at which the client leaves, whatever a hook is waiting for."""
        if isinstance(event, events.ConnectionClosed) and event.connection is self.client and not self._closed_by_us:
            self._client.left()
        await super().server_event(event)

    def close_connection(self, connection: Connection, half_close: bool = False) -> None:
        """Remember that the client was sent away, so that its leaving is not taken for its own wish."""
        if connection is self.client and self._client.left_at is None:
            self._closed_by_us = True
        super().close_connection(connection, half_close)

    async def on_timeout(self) -> None:
        """Nothing passed for mitmproxy's ten minutes."""
        self._timed_out = True
        await super().on_timeout()

    async def handle_hook(self, hook: StartHook) -> None:
        """Run our function for the hook. A bug in it ends this connection with a message, and no other connection."""
        handler = self._hooks.get(hook.name)
        if handler is None:
            return
        try:
            waiting = handler(*hook.args())
            if waiting is not None:
                await waiting
        except Exception as bug:  # noqa: BLE001 - mitmproxy would wait for ever for a hook that raised
            self._crashed(hook.name, type(bug).__name__)

    def log(self, message: str, level: int = 0, exc_info: object = None) -> None:  # noqa: ARG002 - mitmproxy's signature
        """Drop mitmproxy's log lines, they quote traffic. One with an exception tells that this connection is lost."""
        if exc_info:
            self._crashed("mitmproxy", type(sys.exception()).__name__)

    def reset(self) -> None:
        """Send the client a reset in place of whatever it waits for."""
        self._closed_by_us = True
        connection: socket.socket | None = self._stream.get_extra_info("socket")
        if connection is not None and not self._stream.is_closing():
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self._stream.transport.abort()
        self._client.sent_away()

    def cut_off(self, fault: Fault) -> None:
        """Reset the client because `fault` takes the whole daemon away."""
        if self._exchange is not None and not self._exchange.done:
            self._exchange.fault, self._exchange.faulted = fault, True
            self._recorder.finish(self._exchange, "upstream_reset")
        self.reset()

    def _crashed(self, where: str, what: str) -> None:
        self._way.listener.report(KitError(f"an exchange could not be carried: {what} in {where}"))
        if self._exchange is not None:
            self._recorder.finish(self._exchange, "upstream_reset", note="the recorder could not carry this exchange")
        self.reset()

    def _next_layer(self, data: layer.NextLayer) -> None:
        if any(isinstance(above, layers.modes.ReverseProxy) for above in data.context.layers):
            data.layer = RecordedLayer(data.context, HTTPMode.transparent, self._take)
        else:
            data.layer = layers.modes.ReverseProxy(data.context)

    # ---- the request

    def _request_head(self, flow: HTTPFlow) -> None:
        request, headers = flow.request, _headers(flow.request.headers.fields)
        if self._way.listener.is_foreign(headers):
            self._way.listener.refuse_page(request.method, request.path.partition("?")[0], headers)
            flow.response, flow.request.stream = made_up(PAGE_REFUSED), False
            return
        exchange = self._recorder.begin(self._number, request.method, request.path, headers)
        flow.metadata[_EXCHANGE] = self._exchange = exchange
        self._way.direct(request)
        if exchange.fault is not None and exchange.fault.keeps_the_request:
            request.stream = False

    def _take(self, flow: HTTPFlow, data: bytes) -> bool:
        """Record the next bytes of a request; whether the daemon gets them."""
        exchange: Ongoing | None = flow.metadata.get(_EXCHANGE)
        if exchange is None:
            return False
        exchange.request.body.feed(data)
        return exchange.fault is None or not exchange.fault.keeps_the_request

    async def _request(self, flow: HTTPFlow) -> None:
        exchange: Ongoing | None = flow.metadata.get(_EXCHANGE)
        if exchange is None:
            return
        fault = exchange.fault
        if fault is None:
            return
        if fault.kind in ("reset", "hang"):
            exchange.faulted = True
            if fault.kind == "hang" and not await self._client.stays(fault, None):
                self._client.finish(exchange)
            else:
                self._recorder.finish(exchange, "upstream_reset")
                self.reset()
            flow.kill()
            return
        answer = fault.answer()
        if answer is not None:
            exchange.faulted = True
            flow.response = made_up(answer)

    # ---- the answer

    async def _response_head(self, flow: HTTPFlow) -> None:
        exchange: Ongoing | None = flow.metadata.get(_EXCHANGE)
        response = flow.response
        if exchange is None or response is None:
            return
        fault = exchange.fault
        sent = exchange.answered(response.status_code, _headers(response.headers.fields))
        if exchange.faulted:
            return
        endless = (sent.header("content-type") or "").startswith("text/event-stream")
        if fault is not None and fault.kind == "slow_body":
            exchange.faulted = True
            response.stream = self._keep_back(sent)
        elif fault is not None and fault.kind in ("delay", "extra_fields") and not endless:
            pass  # buffered: the response hook deals with it
        else:
            if fault is not None and fault.kind == "delay":
                exchange.faulted = True
                await self._client.stays(fault, fault.delay_s)
            response.stream = self._pass_on(exchange, sent)

    def _pass_on(self, exchange: Ongoing, sent: Sent) -> Callable[[bytes], bytes]:
        length = sent.header("content-length")
        total = int(length) if length is not None and length.isdecimal() else None

        def tee(data: bytes) -> bytes:
            sent.body.feed(data)
            # Who has heard the end finds the line on disk: it is written before the last bytes go out.
            if not data or sent.body.size == total:
                self._client.finish(exchange)
            return data

        return tee

    def _keep_back(self, sent: Sent) -> Callable[[bytes], list[bytes]]:
        self._kept_back.clear()

        def tee(data: bytes) -> list[bytes]:
            sent.body.feed(data)
            self._kept_back.append(data)
            return []

        return tee

    async def _response(self, flow: HTTPFlow) -> None:
        exchange: Ongoing | None = flow.metadata.get(_EXCHANGE)
        if exchange is None:
            return
        response, sent, fault = flow.response, exchange.response, exchange.fault
        if exchange.done or response is None or sent is None:
            return
        if fault is not None and fault.kind == "slow_body" and sent.body.size:
            await self._drip(exchange, fault, "chunked" in (sent.header("transfer-encoding") or "").lower())
            return
        if fault is not None and fault.kind == "extra_fields" and add_members(response, fault):
            exchange.faulted = True
            sent = exchange.answered(response.status_code, _headers(response.headers.fields))
        if not sent.body.size:
            sent.body.feed(response.raw_content or b"")
        if fault is not None and fault.kind == "delay" and not exchange.faulted:
            exchange.faulted = True
            await self._client.stays(fault, fault.delay_s)
        self._client.finish(exchange)

    async def _drip(self, exchange: Ongoing, fault: Fault, chunked: bool) -> None:
        """Send a kept-back body piece by piece, the last piece when the delay is over."""
        body = b"".join(self._kept_back)
        pieces = min(len(body), max(2, math.ceil(fault.delay_s / _DRIP_S)))
        size = math.ceil(len(body) / pieces)
        starts = range(0, len(body), size)
        for start in starts:
            if not await self._client.stays(fault, fault.delay_s / len(starts)):
                break
            if start == starts[-1]:
                self._client.finish(exchange)
            piece = body[start : start + size]
            # mitmproxy has sent the head and waits for this hook; it has no way to send the body slowly.
            self._stream.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
        self._client.finish(exchange)

    # ---- the ends

    def _error(self, flow: HTTPFlow) -> None:
        exchange: Ongoing | None = flow.metadata.get(_EXCHANGE)
        if exchange is None or self._client.left_at is not None:
            if exchange is not None:
                exchange.incomplete = flow.request.timestamp_end is None
                self._client.finish(exchange)
            return
        begun = exchange.response is not None and not exchange.done
        if self._timed_out:
            self._recorder.finish(exchange, "upstream_timeout", note="nothing passed for ten minutes")
        elif self._connect_error is not None:
            timed_out = f"Errno {errno.ETIMEDOUT}]" in self._connect_error or "timed out" in self._connect_error
            self._recorder.finish(exchange, "upstream_timeout" if timed_out else "upstream_refused")
        elif flow.server_conn.timestamp_start is None:
            self._recorder.finish(exchange, NOT_CARRIED, note="mitmproxy could not carry it")
        else:
            where = "in the middle of its answer" if begun else "before it answered"
            self._recorder.finish(exchange, "upstream_reset", note=f"the daemon closed the connection {where}")
        if begun and flow.response is not None and flow.response.stream:
            self._closed_by_us = True
        else:
            self.reset()

    def _connect_failed(self, data: ServerConnectionHookData) -> None:
        self._connect_error = data.server.error or "failed"

    def _tls_failed(self, _data: TlsData) -> None:
        self._connect_error = "TLS"


def _headers(fields: tuple[tuple[bytes, bytes], ...]) -> Headers:
    return [
        (name.decode("utf-8", "surrogateescape").lower(), value.decode("utf-8", "surrogateescape"))
        for name, value in fields
    ]
