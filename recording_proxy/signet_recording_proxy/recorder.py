"""Records exchanges and marks in the current trace file, and assigns faults to exchanges.

It uses neither sockets nor the proxy. All of it runs on one thread, in the event loop.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from signet_conformance.errors import KitError, SignetConformanceError, UsageError
from signet_conformance.trace import Header
from signet_conformance.trace.marks import FaultMark
from signet_conformance.trace.recordings import MODEL
from signet_recording_proxy import faults
from signet_recording_proxy.body import KeptBody, describe
from signet_recording_proxy.faults import Fault
from signet_recording_proxy.line_maker import LineMaker
from signet_recording_proxy.redaction.redactor import Ready, Redactor
from signet_recording_proxy.trace_file import EndedExchange, Headers, Line, SentMessage, TraceFile, request_member

_MOST_TOGETHER, _LARGE = 64, 64 * 1024
"""How many lines may wait to be written together. A line of more bytes than the second figure is written at once."""
_AT_ONCE_MOST, _CODED_MOST = 16 * 1024, 1024
"""Lines with larger bodies are made by another process; for encoded bodies the limit is less, since they grow."""
_CODING = "content-encoding"
_LEAST_HELD_S = 0.001
_WATCH_INTERVAL_S = 1.0


class OngoingExchange(Struct, eq=False):
    """An exchange that has begun and has no line yet. Instants are those of `time.monotonic()`."""

    file: TraceFile
    seq: int
    conn: int
    begun: float
    method: str
    target: str
    request: SentMessage
    status: int | None = None
    response: SentMessage | None = None
    fault: Fault | None = None
    faulted: bool = False
    done: bool = False
    incomplete: bool = False
    """Whether the client left before its request was complete."""
    ready: Ready | None = None
    held_s: float = 0.0
    """How long the recorder itself held back the end of the answer."""

    @property
    def path(self) -> str:
        """The path as it was sent, without the query."""
        return self.target.partition("?")[0]

    def begin_answer(self, status: int, headers: Headers) -> SentMessage:
        """Note that the head of an answer has come; return the message that collects its body."""
        self.status, self.response = status, SentMessage(headers, KeptBody(self.request.body.limit))
        return self.response


class Recorder:
    """Writes every exchange exactly once, to the file in which it began."""

    def __init__(self, file: TraceFile, redactor: Redactor, body_limit: int) -> None:
        self.file = file
        self._model: TraceFile | None = None
        self._loop = asyncio.get_running_loop()
        self.failure: asyncio.Future[SignetConformanceError] = self._loop.create_future()
        self.internal_errors = 0
        self._redactor = redactor
        self._body_limit = body_limit
        self._ongoing: dict[int, OngoingExchange] = {}
        self._maker = LineMaker(redactor)
        self._making = 0
        self._watched = False
        self._line_made: asyncio.Future[None] | None = None
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._waiting: list[tuple[TraceFile, Callable[[], None]]] = []
        self._faults: dict[int, Fault] = {}
        self._fault_count = 0

    @property
    def in_flight(self) -> int:
        """How many exchanges have begun and have no line yet, in all files."""
        return len(self._ongoing) + self._making

    def begin(self, conn: int, method: str, target: str, headers: Headers) -> OngoingExchange:
        """Begin the exchange of a request whose head has come: give it the next number, and a fault if one matches."""
        request = SentMessage(headers, KeptBody(self._body_limit))
        now = time.monotonic()
        exchange = OngoingExchange(self.file, self.file.begin_exchange(), conn, now, method, target, request)
        if self._faults:
            exchange.fault = self._pick(method, exchange.path)
        self._ongoing[id(exchange)] = exchange
        self._quiet.clear()
        return exchange

    def finish(
        self, exchange: OngoingExchange, error: str | None = None, *, note: str = "", at: float | None = None
    ) -> None:
        """Write the exchange's line; a second call does nothing.

        `error` is one of the trace format's kinds, `at` the instant at which it happened.
        """
        ended = self._end_exchange(exchange, error, note, at)
        if ended is None:
            return
        if _is_large(ended.request, ended.response):
            self._add_pending(exchange, ended)
            self._write(exchange.file)
            self._make(exchange, ended)
            return
        exchange.file.end_exchange(self._line_of(exchange, ended))
        self._write(exchange.file)
        self._check_quiet()

    def finish_before(self, exchange: OngoingExchange, then: Callable[[], None]) -> None:
        """As `finish` without an error, but call `then`, which sends the client the end, once the line is written.

        Lines of exchanges that end in the same loop turn are written together. The line of a large body takes longer to
        make, so a pending line is written before `then`.
        """
        ended = self._end_exchange(exchange, None, "", None)
        if ended is None:
            then()
            return
        if _is_large(ended.request, ended.response):
            self._add_pending(exchange, ended)
            self._waiting.append((exchange.file, partial(self._send_then_make, then, exchange, ended)))
            self._write_waiting()
            return
        line = self._line_of(exchange, ended)
        exchange.file.end_exchange(line)
        self._waiting.append((exchange.file, then))
        if not self._ongoing or len(self._waiting) == _MOST_TOGETHER or (line is not None and len(line) > _LARGE):
            self._write_waiting()
        elif len(self._waiting) == 1:
            self._loop.call_soon(self._write_waiting)
        self._check_quiet()

    def _add_pending(self, exchange: OngoingExchange, ended: EndedExchange) -> None:
        try:
            exchange.file.add_pending(ended.pending_line(self._redactor))
        except Exception as bug:  # noqa: BLE001 - a bug costs this line, and no answer
            self._report_lost(exchange, type(bug).__name__)

    def _line_of(self, exchange: OngoingExchange, ended: EndedExchange) -> bytes | None:
        """The line; None, after a report, if it cannot be made: the client gets its answer all the same."""
        line = None
        try:
            line = ended.line(self._redactor, exchange.ready)
        except Exception as bug:  # noqa: BLE001 - as above
            self._report_lost(exchange, type(bug).__name__)
        ended.forget()
        return line

    def _report_lost(self, exchange: OngoingExchange, why: str) -> None:
        self.internal_errors += 1
        lost = KitError(f"the line of exchange {exchange.seq} could not be made: {why}", where=exchange.file.path)
        print(f"error: {lost}", file=sys.stderr, flush=True)

    def _send_then_make(self, then: Callable[[], None], exchange: OngoingExchange, ended: EndedExchange) -> None:
        then()
        self._make(exchange, ended)

    def _write_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for file in dict.fromkeys([file for file, _ in waiting]):
            self._write(file)
        for _, then in waiting:
            then()

    def _write(self, file: TraceFile) -> None:
        try:
            file.write_waiting()
        except KitError as failure:
            self.fail(failure)

    def _check_quiet(self) -> None:
        if not self._ongoing and not self._making:
            self._quiet.set()

    def _end_exchange(
        self, exchange: OngoingExchange, error: str | None, note: str, at: float | None
    ) -> EndedExchange | None:
        """Take an exchange out of those in flight; return its final state, or None if it has ended before."""
        if exchange.done:
            return None
        exchange.done = True
        del self._ongoing[id(exchange)]
        return self._snapshot(exchange, error, note, at)

    def request_is_whole(self, exchange: OngoingExchange) -> None:
        """Note that a request was passed on completely: its part of the line is made while the daemon works.

        Not if other requests are in flight: there is no idle time then, and making the line in one step costs less.
        """
        if len(self._ongoing) == 1 and not exchange.done and not _is_large(exchange.request):
            exchange.ready = self._redactor.request(request_member(exchange, decode=False))

    def _snapshot(self, exchange: OngoingExchange, error: str | None, note: str, at: float | None) -> EndedExchange:
        ended = time.monotonic() if at is None else max(at, exchange.begun)
        seconds = exchange.file.seconds
        frame = {
            "kind": "exchange",
            "seq": exchange.seq,
            "conn": exchange.conn,
            "t0": seconds(exchange.begun),
            "t1": seconds(ended),
        }
        outcome: dict[str, Any] = {}
        if error == "client_closed":
            outcome["error"] = {"kind": error, "t": seconds(ended)}
        elif error is not None:
            outcome["error"] = {"kind": error, "note": note}
        if exchange.fault is not None and exchange.faulted:
            outcome["fault"] = dict(exchange.fault.spec)
        return EndedExchange(
            frame, exchange.method, exchange.target, exchange.request, exchange.incomplete, exchange.status,
            exchange.response, outcome,
        )  # fmt: skip

    def _make(self, exchange: OngoingExchange, ended: EndedExchange) -> None:
        """Have the line of an exchange with a large body made, whose pending line is in the file."""
        if exchange.held_s >= _LEAST_HELD_S:
            ended.frame.update(t1=exchange.file.seconds(), held_ms=round(exchange.held_s * 1000, 1))
        self._making += 1

        def deliver(line: Line | None, why: str) -> None:
            self._making -= 1
            if line is None:
                self._report_lost(exchange, why)
            exchange.file.end_exchange(line)
            self._write(exchange.file)
            self._check_quiet()
            if self._line_made is not None and not self._line_made.done():
                self._line_made.set_result(None)

        self._maker.make(ended, deliver)

    def mark(self, name: str, data: Mapping[str, Any]) -> int:
        """Write a mark and return its number; the model's file also gets it if there is one."""
        name, data = self._redactor.text(name), self._redactor.document(dict(data))
        if self._model is not None:
            self._model.mark(name, data)
        return self.file.mark(name, data)

    def note_model_request(self, path: str, body: Mapping[str, Any] | None, answer: Mapping[str, Any]) -> None:
        """Write a request of a played host to its model, and the answer, to the model's file.

        Without a `body`, only the time of the request is known.
        """
        if self._model is None:
            raise UsageError(
                "no model's side is written", remedy='{"op":"trace","out":"b.jsonl","model":"b.model.jsonl"}'
            )
        file, kept = self._model, KeptBody(self._body_limit)
        kept.feed(b"" if body is None else json.dumps(body).encode())
        now = file.seconds()
        line = {
            "kind": "exchange", "seq": file.begin_exchange(), "conn": None, "t0": now, "t1": now,
            "request": {
                "method": "POST", "path": path, "query": [], "headers": [],
                "body": describe(kept, "application/json", None),
            },
            "response": {"status": 200, "headers": [], "body": {"json": answer} if answer else None},
        }  # fmt: skip
        file.end_exchange(self._redactor.exchange(line))
        self._write(file)

    def switch(self, path: str, header: Header, model: str | None = None) -> None:
        """Begin a new file. Exchanges in flight end in the old one; faults that are on are marked in the new one.

        `model` is the file for the requests of a played host to its model from now on; None: they are not written.
        """
        header = self._redactor.header(header)
        new = TraceFile(path, header)
        model_header = replace(header, side=MODEL, played=True, upstream=None, daemon_version=None)
        model_file = None if model is None else TraceFile(model, model_header)
        for file in filter(None, (self.file, self._model)):
            file.supersede()
        self.file, self._model = new, model_file
        for fault in self._faults.values():
            self._mark_fault(fault, on=True)

    async def idle(self, timeout_s: float) -> bool:
        """Wait until no exchange is in flight; return False if one still is after `timeout_s` seconds."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._quiet.wait()
        except TimeoutError:
            return False
        return True

    def fail(self, failure: SignetConformanceError) -> None:
        """Report that the recording cannot go on: the process ends with this error."""
        if not self.failure.done():
            self.failure.set_result(failure)

    def watch(self) -> None:
        """Check every second that the recording file is still there and unchanged; if not, fail."""
        self._watched = True
        try:
            self._check_files()
        except KitError as failure:
            self.fail(failure)
        else:
            self._loop.call_later(_WATCH_INTERVAL_S, self.watch)

    def _check_files(self) -> None:
        for file in filter(None, (self.file, self._model)):
            file.demand_intact()

    def abandon(self, note: str) -> None:
        """Write the exchanges in flight as cut off, because the recorder ends."""
        self._write_waiting()
        for exchange in list(self._ongoing.values()):
            self.finish(exchange, "upstream_reset", note=note)

    async def wait_for_lines(self) -> None:
        """Wait until the unfinished lines are made, or until the recording cannot go on."""
        while self._making and not self.failure.done():
            self._line_made = self._loop.create_future()
            either: list[asyncio.Future[Any]] = [self._line_made, self.failure]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        await self._maker.end()
        if self._watched:
            try:
                self._check_files()
            except KitError as failure:
                self.fail(failure)

    # ---- faults

    @property
    def refusing(self) -> bool:
        """Whether a fault is on that closes the listener."""
        return any(fault.kind == "refuse" for fault in self._faults.values())

    def switch_on(self, fault: object, match: object, count: object) -> Fault:
        """Switch a fault on, mark it, and return it. Raises UsageError for an invalid one."""
        parsed = faults.parse(self._fault_count + 1, fault, match, count)
        self._fault_count += 1
        self._faults[parsed.id] = parsed
        self._mark_fault(parsed, on=True)
        return parsed

    def switch_off(self, number: int | None) -> list[Fault]:
        """Switch off the fault with this number, or all; return those that were on."""
        chosen = [f for f in self._faults.values() if number is None or f.id == number]
        for fault in chosen:
            del self._faults[fault.id]
            fault.off.set()
            self._mark_fault(fault, on=False)
        return chosen

    def _pick(self, method: str, path: str) -> Fault | None:
        for fault in self._faults.values():
            if fault.kind != "refuse" and fault.matches(method, path):
                fault.met += 1
                if fault.left is not None:
                    fault.left -= 1
                    if not fault.left:
                        # It still affects this exchange, so `off` stays unset.
                        del self._faults[fault.id]
                        self._mark_fault(fault, on=False)
                return fault
        return None

    def _mark_fault(self, fault: Fault, *, on: bool) -> None:
        spec = {name: value for name, value in fault.spec.items() if name != "kind"}
        mark = FaultMark(kind=fault.kind, on=on, match=dict(fault.match), id=fault.id, other=spec)
        self.mark(mark.NAME, mark.data)


def _is_large(request: SentMessage, response: SentMessage | None = None) -> bool:
    """Whether the line of an exchange with these messages takes too long to be made between two others."""
    request_bytes, answer_bytes = request.body.size, 0 if response is None else response.body.size
    return (
        request_bytes + answer_bytes > _AT_ONCE_MOST
        or (request_bytes > _CODED_MOST and request.header(_CODING) is not None)
        or (answer_bytes > _CODED_MOST and response is not None and response.header(_CODING) is not None)
    )
