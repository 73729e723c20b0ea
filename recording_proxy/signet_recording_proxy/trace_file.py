"""Writes trace files line by line, and makes the line of an exchange from its messages."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl

from msgspec import Struct
from msgspec.structs import replace

from signet_conformance.errors import KitError, UsageError, counted
from signet_conformance.trace import Header, encode
from signet_conformance.trace.model import NOT_WRITTEN, PENDING
from signet_conformance.trace.reading import MAX_LINE_BYTES
from signet_recording_proxy.body import KeptBody, as_carried, describe, unwritten
from signet_recording_proxy.redaction.redactor import Ready, Redactor

Line = bytes | memoryview


class TraceFile:
    """One `signet-trace/1` file being written: its clock, its numbers, its lines.

    A number is given when a request begins or a mark is taken; a line is written when it is complete. So lines may be
    out of order, and a killed recorder leaves only whole lines.
    """

    def __init__(self, path: str, header: Header) -> None:
        """Create `path` and write the header; raise UsageError when it exists or cannot be created."""
        self.path = path
        self.written = 0
        """How many exchanges have their lines in the file."""
        self.open_exchanges = 0
        self._seq = 0
        self._superseded = False
        self._waiting: list[Line] = []
        self._waiting_exchanges = 0
        self._size = 0
        self._fd = _create(path)
        self._zero = time.monotonic()
        created = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.header = replace(header, created=created, clock_s=round(self._zero, 6))
        self._write(encode(self.header.to_json()))

    def next_number(self) -> int:
        """The next number, from 1; exchanges and marks share the count."""
        self._seq += 1
        return self._seq

    def seconds(self, instant: float | None = None) -> float:
        """Seconds from the header's `created` to `instant` of `time.monotonic()` (now, when None)."""
        passed = (time.monotonic() if instant is None else instant) - self._zero
        return int(passed * 1e6 + 0.5) / 1e6  # `round` takes four times as long

    def begin_exchange(self) -> int:
        """The number of an exchange that begins now; the file stays open until its line is written."""
        self.open_exchanges += 1
        return self.next_number()

    def add_pending(self, line: bytes) -> None:
        """Take the pending line of an exchange; it waits for `write_waiting`."""
        self._waiting.append(line)

    def end_exchange(self, line: Line | None) -> None:
        """Take the line of an exchange that `begin_exchange` announced; it waits for `write_waiting`.

        None: it could not be made, and a pending line stays.
        """
        self.open_exchanges -= 1
        if line is not None:
            self._waiting_exchanges += 1
            self._waiting.append(line)

    def write_waiting(self) -> None:
        """Write the lines that wait, at once."""
        if self._waiting:
            lines, self._waiting = self._waiting, []
            self.written, self._waiting_exchanges = self.written + self._waiting_exchanges, 0
            self._write(lines[0] if len(lines) == 1 else b"".join(lines))
        self._close_when_done()

    def mark(self, name: str, data: Mapping[str, Any]) -> int:
        """Write a mark, return its number."""
        seq = self.next_number()
        self.write_waiting()
        self._write(encode({"kind": "mark", "seq": seq, "t": self.seconds(), "name": name, "data": data}))
        return seq

    def supersede(self) -> None:
        """Close this file as soon as its open exchanges have their lines, because another file follows."""
        self._superseded = True
        self.write_waiting()

    def _close_when_done(self) -> None:
        if self._superseded and not self.open_exchanges and self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def demand_intact(self) -> None:
        """Raise KitError if another program deleted, replaced or truncated the file.

        Renaming is allowed: later lines still reach the file.
        """
        if self._fd < 0:
            return
        status = os.fstat(self._fd)
        if not status.st_nlink:
            damage = "was replaced" if Path(self.path).exists() else "was deleted"
            lost = counted(self.written, "exchange")
        elif status.st_size < self._size:
            damage = f"was truncated from {self._size:,} to {status.st_size:,} bytes"
            lost = f"up to {counted(self.written, 'exchange')}"
        else:
            return
        raise KitError(
            f"the trace {damage} while it was written; lost: {lost}",
            where=self.path,
            remedy="let no other program change it (renaming is allowed), and record again",
        )

    def _write(self, lines: Line) -> None:
        try:
            written = os.write(self._fd, lines)
            while written < len(lines):  # only a full disk or a signal cuts a write to a file short
                written += os.write(self._fd, lines[written:])
            self._size += len(lines)
        except OSError as failure:
            with suppress(OSError):  # what is written later would continue half a line
                os.ftruncate(self._fd, self._size)
            raise KitError(
                f"the trace cannot be written: {failure.strerror or failure}",
                where=self.path,
                remedy="free some space and record again; the exchanges written so far can be read",
            ) from None


def demand_creatable(path: str) -> None:
    """Raise UsageError when a trace could not be created at `path`; nothing is left there.

    It is called early, before anything has to wait. Creating the trace may still fail later.
    """
    os.close(_create(path))
    Path(path).unlink()


def _create(path: str) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise UsageError(
            "the file exists, and a recording never overwrites one",
            where=path,
            remedy="name another file with --out, or remove this one",
        ) from None
    except (OSError, ValueError) as failure:
        # ValueError: a name with a null byte, which no file has.
        raise UsageError(
            f"the trace file cannot be created: {getattr(failure, 'strerror', None) or failure}",
            where=path,
            remedy="name a file in a folder that exists and can be written to",
        ) from None


Headers = list[tuple[str, str]]
# How much is kept of headers and a query that are too long for a line; servers refuse far shorter ones.
_LONGEST_KEPT = 8192
_MOST_KEPT = 200
_SMALL = 2048
"""A larger body is not searched for secrets while a client waits."""


class SentMessage(Struct, eq=False):
    """A message as far as its sender has sent it."""

    headers: Headers
    body: KeptBody

    def header(self, name: str) -> str | None:
        """The first value of the header with this lower-case name."""
        for key, value in self.headers:
            if key == name:
                return value
        return None

    def body_json(self, *, decode: bool) -> dict[str, Any] | None:
        """The `body` member of the trace line. JSON stays as it was carried, unless `decode` is set."""
        if not self.body.size:
            return None
        media_type, codings = None, []
        for name, value in self.headers:
            if name == "content-type" and media_type is None:
                media_type = value
            elif name == "content-encoding":
                codings.append(value)
        if not decode and not codings:
            carried = as_carried(self.body)
            if carried is not None:
                return carried
        return describe(self.body, media_type, ",".join(codings))


class EndedExchange(Struct, eq=False):
    """An exchange that has ended. `frame` has the members before the request, `outcome` those after the response.

    `status` and `response` are None where no answer came.
    """

    frame: dict[str, Any]
    method: str
    target: str
    request: SentMessage
    incomplete: bool
    status: int | None
    response: SentMessage | None
    outcome: dict[str, Any]

    @property
    def size(self) -> int:
        """The bytes of its bodies that were kept."""
        return sum(min(sent.body.size, sent.body.limit) for sent in (self.request, self.response) if sent is not None)

    def line(self, redactor: Redactor, ready: Ready | None = None) -> bytes:
        """The line, without its secrets; `ready` is its request if that was made ahead."""
        rest = self._rest(decode=False)
        if ready is not None:
            encoded = redactor.completed(self.frame, ready, rest)
        else:
            encoded = redactor.unsuspected({**self.frame, "request": request_member(self, decode=False), **rest})
        if encoded is None:
            # Something in it looks like a secret.
            encoded = redactor.exchange(self._members())
        return self._readable(encoded, redactor)

    def large_line(self, redactor: Redactor) -> bytes:
        """The line of large bodies, searched for secrets at once: to check first if it may hold one costs extra."""
        return self._readable(redactor.exchange(self._members(), is_long=True), redactor)

    def _readable(self, encoded: bytes, redactor: Redactor) -> bytes:
        """The line, shortened if too long for readers: headers have no limit, and redaction can make a line longer."""
        return encoded if len(encoded) <= MAX_LINE_BYTES else redactor.exchange(self._shorten(self._members()))

    def pending_line(self, redactor: Redactor) -> bytes:
        """The line to be written until the whole one is made: without large bodies, so that it takes little time."""
        members = {
            **self.frame,
            "kind": PENDING,
            "request": _member(self, _small_body(self.request)),
            **self._answer(None if self.response is None else _small_body(self.response)),
        }
        return redactor.exchange(self._shorten(members, bodies=False))

    def forget(self) -> None:
        """Drop the bodies once the line is written."""
        self.request.body.forget()
        if self.response is not None:
            self.response.body.forget()

    def _members(self) -> dict[str, Any]:
        return {**self.frame, "request": request_member(self, decode=True), **self._rest(decode=True)}

    def _rest(self, *, decode: bool) -> dict[str, Any]:
        """The members of a line after the request."""
        return self._answer(None if self.response is None else self.response.body_json(decode=decode))

    def _answer(self, body: dict[str, Any] | None) -> dict[str, Any]:
        rest: dict[str, Any] = {"response": None}
        if self.response is not None:
            rest["response"] = {"status": self.status, "headers": self.response.headers, "body": body}
        if self.outcome:
            rest.update(self.outcome)
        return rest

    def _shorten(self, line: dict[str, Any], *, bodies: bool = True) -> dict[str, Any]:
        """A line with long names, values and paths cut; with `bodies`, the bodies are cut to nothing."""
        request, response = line["request"], line["response"]
        for message, sent in ((request, self.request), (response, self.response)):
            if message is None or sent is None:
                continue
            message["headers"] = [
                (name[:_LONGEST_KEPT], value[:_LONGEST_KEPT]) for name, value in message["headers"][:_MOST_KEPT]
            ]
            if bodies and message["body"] is not None:
                kept = sent.body
                message["body"] = {
                    "cut": True, "size": kept.size, "sha256": kept.sha256(), "text": "", "media_type": None
                }  # fmt: skip
        request["path"], request["method"] = request["path"][:_LONGEST_KEPT], request["method"][:_LONGEST_KEPT]
        query = request["query"][:_MOST_KEPT]
        request["query"] = [(name[:_LONGEST_KEPT], value[:_LONGEST_KEPT]) for name, value in query]
        return line


class ExchangeRequest(Protocol):
    """An exchange, ongoing or ended, as far as its request is concerned."""

    method: str
    target: str
    request: SentMessage
    incomplete: bool


def request_member(exchange: ExchangeRequest, *, decode: bool) -> dict[str, Any]:
    """The `request` member of the line; its JSON is decoded only if `decode` is set."""
    return _member(exchange, exchange.request.body_json(decode=decode))


def _member(exchange: ExchangeRequest, body: dict[str, Any] | None) -> dict[str, Any]:
    path, _, query = exchange.target.partition("?")
    member: dict[str, Any] = {
        "method": exchange.method,
        "path": path,
        "query": parse_qsl(query, keep_blank_values=True) if query else [],
        "headers": exchange.request.headers,
        "body": body,
    }
    if exchange.incomplete:
        member["incomplete"] = True
    return member


def _small_body(sent: SentMessage) -> dict[str, Any] | None:
    """The `body` member of a pending line."""
    if sent.body.size <= _SMALL and sent.header("content-encoding") is None:
        return sent.body_json(decode=True)
    return unwritten(sent.body.size, sent.header("content-type"), NOT_WRITTEN)
