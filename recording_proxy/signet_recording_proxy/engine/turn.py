"""One request and its answer: passed on, recorded, and changed by faults.

If the daemon gives no answer, neither does the recorder. A request that the recorder cannot pass on gets an answer
of the recorder, since no daemon sees it.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections import deque
from collections.abc import Coroutine
from typing import Any, Protocol

from signet_conformance.trace.model import NOT_CARRIED
from signet_recording_proxy.engine import wire
from signet_recording_proxy.engine.answer_forwarder import AnswerForwarder, ClientPresence
from signet_recording_proxy.engine.connection_limits import ConnectionLimits
from signet_recording_proxy.engine.daemon_connection import DaemonConnection, PauseReason, ReadControl
from signet_recording_proxy.engine.messages import Complaint, Incoming
from signet_recording_proxy.faults import Fault, MadeUpAnswer
from signet_recording_proxy.listener import PAGE_REFUSED, Listener
from signet_recording_proxy.recorder import OngoingExchange
from signet_recording_proxy.upstream import Upstream

STREAMED_FROM = 8 * 1024 * 1024
"""Requests with larger bodies are passed on while they arrive; smaller ones when they are complete."""
_CHANGED_HEADERS = frozenset({"host", "origin", "expect"})
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class ClientSide(Protocol):
    """The connection of the client whose request is passed on."""

    listener: Listener
    number: int
    presence: ClientPresence
    limits: ConnectionLimits
    read_control: ReadControl

    def write(self, data: bytes) -> None:
        """Send bytes to the client."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine. A bug in it ends this connection with a message, but no other connection."""

    def daemon_at_hand(self, upstream: Upstream) -> DaemonConnection | None:
        """The connection that is open to this daemon, if any."""

    def take_daemon(self, daemon: DaemonConnection | None) -> None:
        """Use this connection to the daemon from now on, and drop the previous one."""

    def note_activity(self) -> None:
        """Note that data passed on this connection."""

    def crashed(self, bug: Exception) -> None:
        """Report a bug, without any content of the messages, and close this connection."""

    def end_turn(self, *, keeps_open: bool) -> None:
        """End the turn: the next request begins, or the connection closes."""

    def end(self) -> None:
        """Close the connection once everything written has been sent."""

    def reset(self) -> None:
        """Reset the client's connection."""


class RequestTurn:
    """The current request on a client's connection, until it is answered."""

    def __init__(self, client: ClientSide, request: Incoming) -> None:
        self.client = client
        self.request = request
        self.exchange: OngoingExchange | None = None
        """None for what is not recorded: a request of a foreign page, and bytes that are not a request."""
        self.over = False
        self._held: list[bytes] = []
        self._held_size = 0
        self._connecting = False
        self._daemon: DaemonConnection | None = None
        self._forwarder: AnswerForwarder | None = None
        self._early = False
        """Whether the answer was sent while the request was still arriving."""

    # ---- the request

    def begin(self) -> None:
        """The head has arrived, or bytes that are not a request."""
        request, client = self.request, self.client
        if not request.method:
            if request.complaint is not None:
                client.listener.mark_no_request(client.number, request.complaint.reason)
            return
        target = request.target.decode("utf-8", "surrogateescape")
        headers = request.headers or wire.headers(request.fields)
        if client.listener.is_foreign(headers):
            client.listener.refuse_page(request.method, target.partition("?")[0], headers)
            return
        self.exchange = client.listener.recorder.begin(client.number, request.method, target, headers)
        if request.complaint is None and not request.whole and not request.pieces and _expects_continue(request):
            client.write(_CONTINUE)

    def request_arrived(self) -> None:
        """More of the request has arrived."""
        request, exchange = self.request, self.exchange
        pieces = request.take()
        if exchange is not None and not exchange.done:
            for piece in pieces:
                exchange.request.body.feed(piece)
        if request.complaint is not None:
            self._refuse(request.complaint)
        elif self._early:
            if request.whole:
                self._end(keeps_open=True)
        elif self._forwarder is not None and self._daemon is None:
            pass  # the daemon has answered and reads no more; a fault delays the answer
        elif exchange is None:
            if request.whole:
                self._answer(PAGE_REFUSED)
        elif exchange.fault is not None and exchange.fault.keeps_the_request:
            if request.whole:
                self._apply_fault(exchange, exchange.fault)
        elif pieces or request.whole:
            self._forward(pieces)

    def _refuse(self, complaint: Complaint) -> None:
        begun = self._forwarder is not None
        self.give_up(NOT_CARRIED, complaint.reason)
        if begun:
            self.client.reset()
            return
        closes = (("connection", "close"),)
        self._answer(MadeUpAnswer(complaint.status, json={"error": complaint.reason}, headers=closes))

    def _forward(self, pieces: list[bytes]) -> None:
        if self._daemon is not None:
            self._daemon.write(b"".join(self._framed(pieces)))
            return
        self._held += pieces
        self._held_size += sum(map(len, pieces))
        if not self.request.whole and self._held_size <= STREAMED_FROM:
            return
        if self._connecting:
            self.client.read_control.shut(PauseReason.NO_DAEMON)
            return
        daemon = self.client.daemon_at_hand(self.client.listener.upstream)
        if daemon is not None:
            self._ask(daemon)
        else:
            self._connecting = True
            self.client.spawn(self._connect())

    async def _connect(self) -> None:
        upstream = self.client.listener.upstream
        loop, limits = asyncio.get_running_loop(), self.client.limits
        if not limits.take():
            limits.give_back()
            self._refuse(limits.complaint())
            return
        try:
            _, daemon = await loop.create_connection(
                lambda: DaemonConnection(upstream, limits), upstream.host, upstream.port, ssl=upstream.tls
            )
        except OSError as failure:
            limits.give_back()
            if self.over:
                return
            if failure.errno in (errno.EMFILE, errno.ENFILE):
                self._refuse(limits.complaint())
            else:
                note = f"TLS: {failure}" if isinstance(failure, ssl.SSLError) else ""
                self.give_up("upstream_timeout" if failure.errno == errno.ETIMEDOUT else "upstream_refused", note)
                self.client.reset()
            return
        if self.over:
            daemon.drop()
            return
        self.client.take_daemon(daemon)
        self._ask(daemon)
        self.client.read_control.open(PauseReason.NO_DAEMON)

    def _ask(self, daemon: DaemonConnection) -> None:
        self._daemon = daemon
        held, self._held = self._held, []
        request, recorder = b"".join([self._head(), *self._framed(held)]), self.client.listener.recorder
        # Sending wakes a daemon that waits, which takes most of the time: requests sent together wake it once.
        at_once = not self.request.whole or recorder.in_flight == 1
        daemon.ask(self, request, head_only=self.request.method == "HEAD", at_once=at_once)
        if self.request.whole and self.exchange is not None:
            recorder.request_is_whole(self.exchange)

    def _head(self) -> bytes:
        request, listener = self.request, self.client.listener
        fields = []
        for field, (name, value) in zip(request.fields, request.headers, strict=True):
            if name not in _CHANGED_HEADERS:
                fields.append(field)
            elif name == "host":
                fields.append((field[0], listener.host_for(value).encode("utf-8", "surrogateescape")))
            elif name == "origin":
                fields.append((field[0], listener.origin_for(value).encode("utf-8", "surrogateescape")))
            elif value.lower() != "100-continue":
                fields.append(field)
        first = b"%b %b HTTP/%b" % (request.method.encode(), request.target, request.version.encode())
        return wire.head(first, fields)

    def _framed(self, pieces: list[bytes]) -> list[bytes]:
        request = self.request
        if not request.chunked:
            return pieces
        return wire.chunks(pieces) + ([wire.last_chunk(request.trailers)] if request.whole else [])

    # ---- faults that answer, or prevent an answer

    def _apply_fault(self, exchange: OngoingExchange, fault: Fault) -> None:
        exchange.faulted = True
        answer = fault.answer()
        if answer is not None:
            self._answer(answer)
        elif fault.kind == "hang":
            self.client.spawn(self._hang(exchange, fault))
        else:
            self.give_up("upstream_reset")
            self.client.reset()

    async def _hang(self, exchange: OngoingExchange, fault: Fault) -> None:
        if await self.client.presence.stays(fault, None) and not exchange.done:
            self.give_up("upstream_reset")
            self.client.reset()

    def _answer(self, answer: MadeUpAnswer) -> None:
        fields, body = wire.fields_and_body(answer)
        if self.request.method == "HEAD":
            body = b""
        exchange = self.exchange
        if exchange is not None and not exchange.done:
            exchange.begin_answer(answer.status, wire.headers(fields)).body.feed(body)
            self.client.listener.recorder.finish(exchange)
        self.client.write(wire.head(wire.status_line(answer.status), fields) + body)
        self._end(keeps_open=self.request.keeps_open and ("connection", "close") not in answer.headers)

    # ---- the answer

    def answer_arrived(self, messages: deque[Incoming]) -> None:
        """More of the answer has arrived, perhaps after informational answers (1xx)."""
        self.client.note_activity()
        while messages and not self.over:
            answer = messages[0]
            if answer.complaint is not None:
                self.give_up("upstream_reset", f"the daemon's answer could not be passed on: {answer.complaint.reason}")
                self._break_off()
                return
            if not answer.has_head or self.exchange is None:
                return
            if answer.status >= 200:
                if self._forwarder is None:
                    self._forwarder = AnswerForwarder(self, self.exchange, answer)
                if answer.whole:
                    messages.popleft()
                    self._free_daemon(answer)
                self._forwarder.receive()
                return
            if not answer.whole:
                return
            messages.popleft()
            # HTTP/1.0 has no informational answers.
            if self.request.version == "1.1":
                first = f"HTTP/{answer.version} {answer.status} ".encode() + answer.reason
                self.client.write(wire.head(first, answer.fields))

    def _free_daemon(self, answer: Incoming) -> None:
        daemon, self._daemon = self._daemon, None
        if daemon is not None:
            daemon.free(reusable=answer.keeps_open and self.request.whole and self.request.keeps_open)

    def daemon_left(self, messages: deque[Incoming], failure: Exception | None) -> None:
        """The daemon closed the connection before the answer was complete."""
        answer = messages[0] if messages else None
        if answer is not None and answer.until_closed and failure is None and self._forwarder is not None:
            answer.whole = True
            self._daemon = None
            self._forwarder.receive()
            return
        where = "before it answered" if self._forwarder is None else "in the middle of its answer"
        self.give_up("upstream_reset", f"the daemon closed the connection {where}")
        self._break_off(seen_as_whole=answer is not None and answer.until_closed)

    def _break_off(self, *, seen_as_whole: bool = False) -> None:
        """End the connection within an answer, such that the client sees that the answer is incomplete."""
        if self._forwarder is not None:
            self._forwarder.send_received()
        if self._forwarder is None or not self._forwarder.begun or seen_as_whole:
            self.client.reset()
        else:
            self.client.end()

    def answer_was_sent(self, *, keeps_open: bool) -> None:
        """The whole answer was sent to the client."""
        keeps_open = keeps_open and self.request.keeps_open
        if self.request.whole or not keeps_open:
            self._end(keeps_open=keeps_open)
            return
        self._early = True
        self.client.take_daemon(None)
        self.client.read_control.open(PauseReason.OTHER_SIDE, PauseReason.NO_DAEMON)

    def keep_back(self, *, on: bool) -> None:
        """Stop or resume reading the daemon's answer."""
        if self._daemon is not None:
            (self._daemon.read_control.shut if on else self._daemon.read_control.open)(PauseReason.KEPT_BACK)

    def daemon_is_full(self, *, full: bool) -> None:
        """Stop or resume reading the client's request."""
        (self.client.read_control.shut if full else self.client.read_control.open)(PauseReason.OTHER_SIDE)

    @property
    def presence(self) -> ClientPresence:
        """Whether the client is still connected."""
        return self.client.presence

    def write(self, data: bytes) -> None:
        """Send bytes to the client."""
        self.client.write(data)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine."""
        self.client.spawn(work)

    def crashed(self, bug: Exception) -> None:
        """Handling the daemon's answer raised `bug`."""
        self.client.crashed(bug)

    # ---- the ends

    def give_up(self, error: str, note: str = "") -> None:
        """Record that the exchange ends without an answer, or within it."""
        self.over = True
        if self.exchange is not None:
            self.client.listener.recorder.finish(self.exchange, error, note=note)

    def client_left(self) -> None:
        """The client closed the connection."""
        self.over = True
        if self.exchange is not None:
            self.exchange.incomplete = not self.request.whole
            self.client.presence.finish(self.exchange)

    def cut_off(self, fault: Fault) -> None:
        """`fault` takes the daemon away."""
        self.over = True
        if self.exchange is not None and not self.exchange.done:
            self.exchange.fault, self.exchange.faulted = fault, True
            self.exchange.incomplete = not self.request.whole
            self.client.listener.recorder.finish(self.exchange, "upstream_reset")

    def _end(self, *, keeps_open: bool) -> None:
        self.over = True
        self._forwarder = None  # breaks a reference cycle, to spare the garbage collector
        self.client.end_turn(keeps_open=keeps_open)


def _expects_continue(request: Incoming) -> bool:
    return request.version == "1.1" and (request.value("expect") or "").lower() == "100-continue"
