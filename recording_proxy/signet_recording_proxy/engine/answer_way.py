"""How an answer goes from the daemon to the client: as it comes, or as a fault changes it."""

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
"""How many bytes of an answer a fault holds back; the daemon waits with the rest."""
_DRIP_S = 0.25
_SMALL: Final = 64 * 1024
_TOGETHER_S: Final = 0.5
"""How long the head of an answer waits for its small body, so that both are sent at once."""


class ClientPresence:
    """Whether a client is connected, and waits as long as it is.

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

    def sent_away(self) -> None:
        """The recorder reset the client: its exchanges need no longer wait for it."""
        self._gone.set()

    async def stays(self, fault: Fault, seconds: float | None) -> bool:
        """Wait `seconds` (None: no end) unless the fault goes off or the client leaves; return whether it stayed."""
        waiting = [asyncio.create_task(self._gone.wait()), asyncio.create_task(fault.off.wait())]
        try:
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        return not self._gone.is_set()

    def hears_the_end(self, exchange: OngoingExchange, then: Callable[[], None]) -> None:
        """Write the exchange's line, as `finish` does, and call `then`, which sends the client the answer's end."""
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
        """Let the daemon wait with the rest, or let it go on."""

    def answer_is_out(self, *, keeps_open: bool) -> None:
        """Note that the client was sent the whole answer."""

    def crashed(self, bug: Exception) -> None:
        """Report an error that was raised by sending."""


class AnswerWay:
    """Passes one answer on. `begun` tells whether any of it was sent to the client."""

    def __init__(self, asked: AnsweredRequest, exchange: OngoingExchange, answer: Incoming) -> None:
        self.begun = False
        self._asked = asked
        self._exchange = exchange
        self._answer = answer
        self._sent = exchange.begin_answer(answer.status, answer.headers)
        self._kept: list[bytes] = []
        self._kept_size = 0
        self._chunked = answer.chunked and asked.request.version == "1.1"
        """Whether the client gets chunks: HTTP/1.0 has none, and the end of the connection is the end of the answer."""
        self._keeps_back = self._fault_that_keeps_back()
        self._dripping = False
        self._together: asyncio.TimerHandle | None = None
        self._waited = False

    def _fault_that_keeps_back(self) -> Fault | None:
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
            self._asked.spawn(self._wait(fault))
            return fault
        endless = (self._sent.header("content-type") or "").startswith("text/event-stream")
        return fault if fault.kind == "extra_fields" and not endless else None

    def came(self) -> None:
        """Take in more of the answer, or its end."""
        pieces = self._answer.take()
        for piece in pieces:
            self._sent.body.feed(piece)
        if self._keeps_back is None:
            self._kept += pieces
            if not self._waits_for_the_body():
                self.pass_what_came()
            return
        self._kept += pieces
        self._kept_size += sum(map(len, pieces))
        full = self._kept_size >= MOST_KEPT
        if full:
            self._asked.keep_back(on=True)
        if not full and not self._answer.whole:
            return
        if self._keeps_back.kind == "extra_fields":
            if self._answer.whole:
                self._add(self._keeps_back)
            self._release()
        elif self._keeps_back.kind == "slow_body" and not self._dripping:
            self._dripping = True
            self._asked.spawn(self._drip(self._keeps_back))

    def _waits_for_the_body(self) -> bool:
        """Whether the head is sent together with the body.

        A client that needs only the status leaves when it has the head. Whether the body had come by then, and so
        whether the answer counts as received, would be chance.
        """
        answer = self._answer
        if self.begun or self._waited or answer.whole or answer.chunked or answer.until_closed:
            return False
        if not 0 < int(answer.value("content-length") or 0) <= _SMALL:
            return False
        if self._together is None:
            self._together = asyncio.get_running_loop().call_later(_TOGETHER_S, self._waited_long)
        return True

    def _waited_long(self) -> None:
        self._waited = True
        if not self._asked.over and not self.begun:
            self.pass_what_came()

    def pass_what_came(self) -> None:
        """Send the client what has come and was not passed on, unless a fault holds it back."""
        if self._keeps_back is not None:
            return
        if self._together is not None:
            self._together.cancel()
        kept, self._kept = self._kept, []
        self._pass(kept)

    def _begin(self) -> None:
        self.begun = True
        self._asked.write(self._head())

    def _head(self) -> bytes:
        answer = self._answer
        fields = answer.fields
        if answer.chunked and not self._chunked:
            fields = [field for field in fields if field[0].lower() != b"transfer-encoding"]
        return wire.head(b"HTTP/%b %d %b" % (answer.version.encode(), answer.status, answer.reason), fields)

    def _pass(self, pieces: list[bytes]) -> None:
        answer = self._answer
        begun = time.monotonic()
        out = wire.chunks(pieces) if self._chunked else pieces
        if not self.begun:
            self.begun = True
            out.insert(0, self._head())
        if not answer.whole:
            self._asked.write(b"".join(out))
            return
        if self._chunked:
            out.append(wire.last_chunk(answer.trailers))
        # A client that received the end finds the line on disk: the line is written before the last bytes go out.
        self._asked.presence.hears_the_end(self._exchange, partial(self._let_hear, b"".join(out), begun))

    def _let_hear(self, end: bytes, came_at: float) -> None:
        if self._asked.over:
            return  # the client left, or was reset, in the turn of the loop in which the answer ended
        try:
            self._asked.write(end)
            self._exchange.held_s = time.monotonic() - came_at
            answer = self._answer
            self._asked.answer_is_out(keeps_open=answer.keeps_open and self._chunked is answer.chunked)
        except Exception as bug:  # noqa: BLE001 - a bug costs this exchange, and none of those that end with it
            self._asked.crashed(bug)

    def _release(self) -> None:
        """Send what was held back, and from now on whatever comes."""
        self._keeps_back = None
        self._asked.keep_back(on=False)
        self.pass_what_came()

    async def _wait(self, fault: Fault) -> None:
        await self._asked.presence.stays(fault, fault.delay_s)
        if not self._asked.over:
            self._release()

    async def _drip(self, fault: Fault) -> None:
        """Send what was held back piece by piece, the last piece when the delay is over."""
        body, count = b"".join(self._kept), len(self._kept)
        pieces = max(1, min(len(body), max(2, math.ceil(fault.delay_s / _DRIP_S))))
        size = math.ceil(len(body) / pieces) or 1
        starts = range(0, len(body), size)
        for start in starts:
            await self._asked.presence.stays(fault, fault.delay_s / len(starts))
            if self._asked.over:
                return
            piece = body[start : start + size]
            if start == starts[-1]:
                self._kept = [piece, *self._kept[count:]]
                break
            self._asked.write(b"".join(wire.chunks([piece])) if self._chunked else piece)
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
