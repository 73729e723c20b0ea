"""Forwards an answer from the daemon to the client, unchanged or as a fault changes it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, Protocol

from signet_recording_proxy.content_coding import redo, undo
from signet_recording_proxy.engine import wire
from signet_recording_proxy.engine.messages import Incoming
from signet_recording_proxy.faults import Fault
from signet_recording_proxy.recorder import OngoingExchange, Recorder

MOST_KEPT: Final = 8 * 1024 * 1024
"""How many bytes of an answer a fault may hold back; then reading from the daemon stops."""
_DRIP_S = 0.25
_SMALL: Final = 64 * 1024
_BODY_WAIT_S: Final = 0.5
"""How long the head of an answer waits for its small body, so that both are sent at once."""


class ClientPresence:
    """Knows whether a client is connected, and can wait while it stays.

    `left_at` is the instant of `time.monotonic()` at which it left by itself.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.left_at: float | None = None
        self._recorder = recorder
        self._gone = asyncio.Event()

    def note_left(self, at: float | None = None) -> None:
        """Note that the client left by itself at this instant (None: now)."""
        self.left_at = time.monotonic() if at is None else at
        self._gone.set()

    def note_closed(self) -> None:
        """Note that the recorder ends the connection: nothing need wait for the client any more."""
        self._gone.set()

    async def stays(self, fault: Fault, seconds: float | None) -> bool:
        """Wait `seconds` (None: no end), until the fault goes off, or the client leaves; return whether it stayed."""
        waiting = [asyncio.create_task(self._gone.wait()), asyncio.create_task(fault.off.wait())]
        try:
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        return not self._gone.is_set()

    def finish_before(self, exchange: OngoingExchange, then: Callable[[], None]) -> None:
        """Write the exchange's line, as `finish` does, then call `then`, which sends the client the answer's end."""
        if self.left_at is None:
            self._recorder.finish_before(exchange, then)
        else:
            self.finish(exchange)
            then()

    def finish(self, exchange: OngoingExchange) -> None:
        """Write the exchange's line: answered, or cut off by the client when it left."""
        if self.left_at is None:
            self._recorder.finish(exchange)
        else:
            self._recorder.finish(exchange, "client_closed", at=self.left_at)


class AnsweredRequest(Protocol):
    """The request that is being answered, and the client that made it."""

    request: Incoming
    over: bool

    @property
    def presence(self) -> ClientPresence:
        """Whether the client is connected."""

    def write(self, data: bytes) -> None:
        """Send bytes to the client."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the background."""

    def keep_back(self, *, on: bool) -> None:
        """Stop or resume reading the daemon's answer."""

    def answer_was_sent(self, *, keeps_open: bool) -> None:
        """Note that the client was sent the whole answer."""

    def crashed(self, bug: Exception) -> None:
        """Report an error that was raised by sending."""


class AnswerForwarder:
    """Forwards one answer. `begun` is True once any of it was sent to the client."""

    def __init__(self, turn: AnsweredRequest, exchange: OngoingExchange, answer: Incoming) -> None:
        self.begun = False
        self._turn = turn
        self._exchange = exchange
        self._answer = answer
        self._sent = exchange.begin_answer(answer.status, answer.headers)
        self._kept: list[bytes] = []
        self._kept_size = 0
        self._chunked = answer.chunked and turn.request.version == "1.1"
        """Whether the client gets chunks: HTTP/1.0 has none, and the end of the connection is the end of the answer."""
        self._holding_fault = self._start_fault()
        self._dripping = False
        self._body_timer: asyncio.TimerHandle | None = None
        self._body_is_late = False

    def _start_fault(self) -> Fault | None:
        """Start the fault of this exchange; return it if it holds the answer back."""
        exchange, fault = self._exchange, self._exchange.fault
        if fault is None:
            return None
        if fault.kind == "slow_body":
            if self._answer.whole and not self._answer.pieces:
                return None
            exchange.faulted = True
            self._begin()
            return fault
        if fault.kind == "delay":
            exchange.faulted = True
            self._turn.spawn(self._wait(fault))
            return fault
        endless = (self._sent.header("content-type") or "").startswith("text/event-stream")
        return fault if fault.kind == "extra_fields" and not endless else None

    def receive(self) -> None:
        """Take in more of the answer, or its end."""
        pieces = self._answer.take()
        for piece in pieces:
            self._sent.body.feed(piece)
        if self._holding_fault is None:
            self._kept += pieces
            if not self._waits_for_the_body():
                self.send_received()
            return
        self._kept += pieces
        self._kept_size += sum(map(len, pieces))
        full = self._kept_size >= MOST_KEPT
        if full:
            self._turn.keep_back(on=True)
        if not full and not self._answer.whole:
            return
        if self._holding_fault.kind == "extra_fields":
            if self._answer.whole:
                self._add(self._holding_fault)
            self._release()
        elif self._holding_fault.kind == "slow_body" and not self._dripping:
            self._dripping = True
            self._turn.spawn(self._drip(self._holding_fault))

    def _waits_for_the_body(self) -> bool:
        """Whether the head is sent together with the body.

        A client that needs only the status leaves when it has the head. If the body had not come by then, the answer
        would count as cut off: sending both together leaves that not to chance.
        """
        answer = self._answer
        if self.begun or self._body_is_late or answer.whole or answer.chunked or answer.until_closed:
            return False
        if not 0 < int(answer.value("content-length") or 0) <= _SMALL:
            return False
        if self._body_timer is None:
            self._body_timer = asyncio.get_running_loop().call_later(_BODY_WAIT_S, self._stop_waiting)
        return True

    def _stop_waiting(self) -> None:
        self._body_is_late = True
        if not self._turn.over and not self.begun:
            self.send_received()

    def send_received(self) -> None:
        """Send the client all that was received and not sent yet, unless a fault holds it back."""
        if self._holding_fault is not None:
            return
        if self._body_timer is not None:
            self._body_timer.cancel()
        kept, self._kept = self._kept, []
        self._send(kept)

    def _begin(self) -> None:
        self.begun = True
        self._turn.write(self._head())

    def _head(self) -> bytes:
        answer = self._answer
        fields = answer.fields
        if answer.chunked and not self._chunked:
            fields = [field for field in fields if field[0].lower() != b"transfer-encoding"]
        return wire.head(b"HTTP/%b %d %b" % (answer.version.encode(), answer.status, answer.reason), fields)

    def _send(self, pieces: list[bytes]) -> None:
        answer = self._answer
        begun = time.monotonic()
        out = wire.chunks(pieces) if self._chunked else pieces
        if not self.begun:
            self.begun = True
            out.insert(0, self._head())
        if not answer.whole:
            self._turn.write(b"".join(out))
            return
        if self._chunked:
            out.append(wire.last_chunk(answer.trailers))
        # A client that received the end finds the line on disk: the line is written before the last bytes go out.
        self._turn.presence.finish_before(self._exchange, partial(self._send_end, b"".join(out), begun))

    def _send_end(self, end: bytes, received_at: float) -> None:
        if self._turn.over:
            return  # the client left, or was reset, in the loop turn in which the answer ended
        try:
            self._turn.write(end)
            self._exchange.held_s = time.monotonic() - received_at
            answer = self._answer
            self._turn.answer_was_sent(keeps_open=answer.keeps_open and self._chunked is answer.chunked)
        except Exception as bug:  # noqa: BLE001 - a bug costs this exchange, and none of those that end with it
            self._turn.crashed(bug)

    def _release(self) -> None:
        """Send what was held back, and from now on send at once."""
        self._holding_fault = None
        self._turn.keep_back(on=False)
        self.send_received()

    async def _wait(self, fault: Fault) -> None:
        await self._turn.presence.stays(fault, fault.delay_s)
        if not self._turn.over:
            self._release()

    async def _drip(self, fault: Fault) -> None:
        """Send what was held back piece by piece; the last piece goes when the delay is over."""
        body, count = b"".join(self._kept), len(self._kept)
        pieces = max(1, min(len(body), max(2, math.ceil(fault.delay_s / _DRIP_S))))
        size = math.ceil(len(body) / pieces) or 1
        starts = range(0, len(body), size)
        for start in starts:
            await self._turn.presence.stays(fault, fault.delay_s / len(starts))
            if self._turn.over:
                return
            piece = body[start : start + size]
            if start == starts[-1]:
                self._kept = [piece, *self._kept[count:]]
                break
            self._turn.write(b"".join(wire.chunks([piece])) if self._chunked else piece)
        self._release()

    def _add(self, fault: Fault) -> None:
        """Add the fault's members to an answer that is a JSON object, in the coding that it came in."""
        answer, exchange = self._answer, self._exchange
        codings = ",".join(value for name, value in answer.headers if name == "content-encoding")
        undone = undo(b"".join(self._kept), codings, MOST_KEPT)
        changed = fault.with_unknown_members(undone[0]) if undone is not None and undone[1] else None
        coded = None if changed is None else redo(changed, codings)
        if coded is None:
            return
        answer.fields = [
            *((n, v) for n, v in answer.fields if n.lower() not in (b"content-length", b"transfer-encoding")),
            (b"content-length", str(len(coded)).encode()),
        ]
        answer.chunked = self._chunked = False
        exchange.faulted = True
        self._sent = exchange.begin_answer(answer.status, wire.headers(answer.fields))
        self._sent.body.feed(coded)
        self._kept = [coded]
