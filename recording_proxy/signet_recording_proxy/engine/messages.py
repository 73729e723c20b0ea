"""Parses requests and answers incrementally and strictly.

llhttp refuses what two parsers could read differently: a length beside a transfer coding, lengths that differ, folded
lines, bare line ends, chunk sizes that are not hexadecimal. This module also refuses transfer codings other than
chunked, chunks in HTTP/1.0, endless heads, upgrades, and targets that name another server.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import httptools
from msgspec import Struct

from signet_recording_proxy.engine import wire
from signet_recording_proxy.engine.wire import Fields
from signet_recording_proxy.trace_file import Headers

MAX_HEAD = 256 * 1024
"""The longest head or trailer; servers accept less."""
MAX_INTERIM = 1000
"""The most informational answers (1xx) before an answer."""
BAD_REQUEST, TOO_LONG, NOT_CARRIED, UNAVAILABLE = 400, 431, 501, 503


class Complaint(Struct, frozen=True):
    """Why a message is not passed on, and the status of the answer that says so."""

    reason: str
    status: int = BAD_REQUEST


class ComplaintError(Exception):
    """Ends the parsing of a message."""

    def __init__(self, complaint: Complaint) -> None:
        super().__init__(complaint.reason)
        self.complaint = complaint


class Incoming:
    """One message as far as it has arrived. `pieces` are the parts of its body since the last `take`.

    Attributes:
        keeps_open: whether the connection can be used after this message.
        until_closed: whether the end of the connection ends the answer.
    """

    __slots__ = (
        *("chunked", "complaint", "fields", "has_head", "has_length", "headers", "hosts", "keeps_open", "method"),
        *("pieces", "reason", "status", "target", "trailers", "until_closed", "version", "whole"),
    )

    def __init__(self, *, whole: bool = False) -> None:
        self.clear()
        self.whole = whole

    def clear(self) -> None:
        """Reset the message to its beginning."""
        # Every exchange has two messages, and a data class would take twice the time.
        self.fields: Fields = []
        self.headers: Headers = []
        self.pieces: list[bytes] = []
        self.trailers: Fields = []
        self.complaint: Complaint | None = None
        self.version = self.method = ""
        self.target = self.reason = b""
        self.status = self.hosts = 0
        self.keeps_open = True
        self.whole = self.chunked = self.has_length = self.has_head = self.until_closed = False

    def take(self) -> list[bytes]:
        """Return and forget the pieces of the body that came since the last call."""
        pieces, self.pieces = self.pieces, []
        return pieces

    def value(self, name: str) -> str | None:
        """The first value of the header with this lower-case name."""
        return next((value for key, value in self.headers if key == name), None)


class _Reader:
    """Turns bytes into messages: httptools calls the methods that begin with `on_`."""

    _parser: httptools.HttpRequestParser | httptools.HttpResponseParser

    def __init__(self) -> None:
        self.messages: deque[Incoming] = deque()
        self.broken = False
        """Whether parsing has stopped: the meaning of what follows is unknown."""
        self._last = Incoming(whole=True)
        self._head_size = 0
        self._fed = 0

    @property
    def at_rest(self) -> bool:
        """Whether every message is complete and was taken out of `messages`."""
        return self._last.whole and not self.messages and not self.broken

    def feed(self, data: bytes) -> None:
        """Read the next bytes."""
        if self.broken:
            return
        self._fed = len(data)
        try:
            self._parser.feed_data(data)
            if not self._last.has_head and not self._last.whole:
                self._count_head_bytes(self._fed)
        except httptools.HttpParserUpgrade as upgrade:
            self._handle_upgrade(data[upgrade.args[0] :])
        except (httptools.HttpParserError, ComplaintError) as failure:
            self._fail(failure)

    def _handle_upgrade(self, rest: bytes) -> None:
        """Handle `rest`, which the parser takes for another protocol."""
        del rest
        self.broken = True

    def close(self) -> None:
        """Stop reading, and break the reference cycle of parser and reader, to spare the garbage collector."""
        self.broken = True
        del self._parser

    def _fail(self, failure: Exception) -> None:
        self.broken = True
        last = self._last
        if last.whole and str(failure).startswith("Data after"):
            return  # the client had announced the end of the connection
        if last.whole:
            last = self._begin_message()
        if last.complaint is None:
            inner = failure.__context__ if isinstance(failure, httptools.HttpParserCallbackError) else failure
            last.complaint = inner.complaint if isinstance(inner, ComplaintError) else Complaint(str(failure))

    def _begin_message(self) -> Incoming:
        self._last = last = Incoming()
        self._head_size = 0
        self.messages.append(last)
        return last

    def _count_head_bytes(self, size: int) -> None:
        self._head_size += size
        if self._head_size > MAX_HEAD:
            raise ComplaintError(Complaint(f"a head of more than {MAX_HEAD >> 10} KiB", TOO_LONG))

    # ---- what httptools calls

    def on_message_begin(self) -> None:
        self._begin_message()

    def on_header(self, name: bytes, value: bytes) -> None:
        last = self._last
        if value[-1:] in _BLANKS:
            value = wire.without_blanks(name, value)
        if last.has_head:
            self._count_head_bytes(_size(name, value))
            last.trailers.append((name, value))
        else:
            last.fields.append((name, value))

    def on_body(self, piece: bytes) -> None:
        last = self._last
        if last.whole:
            last.keeps_open = False  # a body after an answer to HEAD, which must not have one
        else:
            last.pieces.append(piece)

    def on_message_complete(self) -> None:
        self._last.whole = True

    def _read_framing(self, last: Incoming) -> None:
        """Read from the header fields how the message ends, and whether the connection ends with it."""
        last.has_head = True
        before, self._head_size = self._head_size, 0
        if before + self._fed > MAX_HEAD:
            self._count_head_bytes(sum(_size(name, value) for name, value in last.fields))
            self._head_size = 0
        last.version = version = self._parser.get_http_version()
        last.headers = kept = wire.headers(last.fields)
        closes = version == "1.0"
        for name, value in kept:
            if name in _FRAMING_HEADERS:
                if name == "content-length":
                    last.has_length = True
                elif name == "host":
                    last.hosts += 1
                elif name == "connection":
                    words = {word.strip() for word in value.lower().split(",")}
                    closes = "close" in words or (closes and "keep-alive" not in words)
                elif name == "transfer-encoding":
                    if value.lower() != "chunked":
                        raise ComplaintError(Complaint("a transfer coding other than chunked"))
                    if version == "1.0":
                        raise ComplaintError(Complaint("a transfer coding in HTTP/1.0"))
                    last.chunked = True
        last.keeps_open = not closes
        if version not in ("1.0", "1.1"):
            raise ComplaintError(Complaint(f"HTTP/{version}, which is not supported"))


_BLANKS = frozenset((b" ", b"\t"))


def _size(name: bytes, value: bytes) -> int:
    return len(name) + len(": ") + len(value) + len("\r\n")


_LINE_BREAKS = re.compile(rb"[\r\n]*")
_REQUEST_LINE = re.compile(rb"([A-Z]{1,32}) ([^\s]{1,8192}) HTTP/1\.[01]\r\n")
_END_OF_HEAD = b"\r\n\r\n"
_TLS_HANDSHAKE = b"\x16\x03"
"""The first bytes of a client that speaks TLS (RFC 8446, 5.1)."""
_OFFERED = "h2c"
"""The upgrade that some clients, such as Java's, offer with each request; a server may ignore it."""
_PREFACE = "PRI"
"""The method in the connection preface of HTTP/2 (RFC 9113, 3.4)."""
_ABSOLUTE = re.compile(rb"http://([^/?#]+)(?=[/?]|\Z)", re.IGNORECASE)
"""The beginning of a target in absolute form (RFC 9112, 3.2.2)."""
_ADDON = "which the addon for mitmproxy records (signet-conformance record --addon)"
_FRAMING_HEADERS = frozenset({"connection", "content-length", "host", "transfer-encoding"})


class _Arrived(NamedTuple):
    """The part of a request that arrived before a piece of data: whether its head, and how many pieces of its body."""

    has_head: bool
    pieces: int


def _end_of(messages: Sequence[Incoming], data: bytes, arrived: _Arrived | None) -> int | None:
    """Where in `data` these requests, and the line breaks after them, end; None if that is unknown.

    The requests begin at the start of `data`, except that `arrived` is the part of the first that arrived before.
    """
    at = 0
    for message in messages:
        pieces = message.pieces
        if arrived is None or not arrived.has_head:
            # The end of a head may be split between two pieces of data.
            at = -1 if arrived is not None and data[:1] in (b"\r", b"\n") else data.find(_END_OF_HEAD, at)
            if at < 0:
                return None
            at += len(_END_OF_HEAD)
        else:
            pieces = pieces[arrived.pieces :]
        arrived = None
        if not message.chunked:
            at += sum(map(len, pieces))
            continue
        for piece in (*pieces, _END_OF_HEAD):
            # A part of the last piece may have arrived with the data before.
            if (found := data.find(piece, at)) < 0:
                return None
            at = found + len(piece)
    breaks = _LINE_BREAKS.match(data, at)
    return at if breaks is None else breaks.end()


class RequestReader(_Reader):
    """Reads the requests of one client; they become complete in order.

    `is_ours` says whether a host with port is the recorder itself, which a target in absolute form may name.
    """

    _parser: httptools.HttpRequestParser

    def __init__(self, is_ours: Callable[[str], bool] = lambda _: False) -> None:
        super().__init__()
        self._is_ours = is_ours
        self._parser = httptools.HttpRequestParser(self)
        self._continues = False
        self._unparsed = b""

    def feed(self, data: bytes) -> None:
        """Read the next bytes."""
        before = self._last
        arrived = _Arrived(before.has_head, len(before.pieces)) if not before.whole else None
        super().feed(data)
        while self._unparsed:
            data, self._unparsed = self._unparsed, b""
            before, arrived = self._last, _Arrived(has_head=False, pieces=0)
            super().feed(data)
        last = self._last
        if last.complaint is None or last.method:
            return
        # llhttp does not pass on a target that it refuses, so the method and target are found here.
        if last.target:
            last.method = self._parser.get_method().decode()
            if last.method == _PREFACE:
                last.method, last.complaint = "", Complaint(f"HTTP/2 without negotiation, {_ADDON}")
        elif last is not before:
            self._describe_failure(last, before, data, arrived)

    def _describe_failure(self, last: Incoming, before: Incoming, data: bytes, arrived: _Arrived | None) -> None:
        """Find method and target in bytes that llhttp refused as a request, or describe the bytes."""
        messages = list(self.messages)[:-1]
        # Requests of earlier data are not in this data, except the one that was incomplete then.
        known = next((at for at, message in enumerate(messages) if message is before), None)
        here = messages if known is None else messages[known + (arrived is None) :]
        begins = _end_of(here, data, arrived)
        if begins is not None and (line := _REQUEST_LINE.match(data, begins)):
            last.method, last.target = line[1].decode(), line[2]
            return
        complaint = last.complaint
        if complaint is None or "method" not in complaint.reason.lower():
            return
        count = 0 if begins is None else len(data) - begins
        amount, verb = ("1 byte", "is") if count == 1 else (f"{count} bytes" if count else "bytes", "are")
        if before.method or messages:
            last.complaint = Complaint(
                f"{amount} after the request {verb} not a request: was a body sent without Content-Length?"
            )
            return
        why = (
            "the client uses TLS, but this address is http://" if data.startswith(_TLS_HANDSHAKE) else complaint.reason
        )
        last.complaint = Complaint(f"{amount} that came {verb} not a request: {why}")

    def on_url(self, part: bytes) -> None:
        """A part of the target has come."""
        self._last.target += part
        if len(self._last.target) > MAX_HEAD:
            self._count_head_bytes(len(self._last.target))

    def on_headers_complete(self) -> None:
        """The head has come."""
        last = self._last
        last.method = self._parser.get_method().decode()
        self._read_framing(last)
        if last.method == "CONNECT":
            raise ComplaintError(Complaint(f"a tunnel, {_ADDON}", NOT_CARRIED))
        if self._parser.should_upgrade():
            wanted = [word.strip() for name, value in last.headers if name == "upgrade" for word in value.split(",")]
            if {word.lower() for word in wanted} != {_OFFERED}:
                raise ComplaintError(Complaint(f"an upgrade to {', '.join(wanted)}, {_ADDON}", NOT_CARRIED))
        if (absolute := _ABSOLUTE.match(last.target)) and self._is_ours(absolute[1].decode("utf-8", "surrogateescape")):
            rest = last.target[absolute.end() :]
            last.target = rest if rest.startswith(b"/") else b"/" + rest  # the path may lack (RFC 9112, 3.2.1)
        if not last.target.startswith(b"/") and (last.target, last.method) != (b"*", "OPTIONS"):
            raise ComplaintError(Complaint("a target on another server" if absolute else "a target that is not a path"))
        if last.hosts > 1:
            raise ComplaintError(Complaint("more than one Host"))

    def on_message_begin(self) -> None:
        """A request begins, or the one continues whose upgrade was ignored."""
        if self._continues:
            self._continues = False
        else:
            super().on_message_begin()

    def _handle_upgrade(self, rest: bytes) -> None:
        """Parse the request again without the offered upgrade, since llhttp stops before the body of such a request."""
        last = self._last
        fields = wire.without_offer(last.fields)
        first = b"%b %b HTTP/%b" % (last.method.encode(), last.target, last.version.encode())
        last.clear()  # not a new object: the turn already holds this one
        self._head_size = 0
        self._parser = httptools.HttpRequestParser(self)
        self._continues = True
        self._unparsed = wire.head(first, fields) + rest


class AnswerReader(_Reader):
    """Reads the answers of one daemon. `head_only` says that the next answer is to a HEAD."""

    _parser: httptools.HttpResponseParser

    def __init__(self) -> None:
        super().__init__()
        self._parser = httptools.HttpResponseParser(self)
        self.head_only = False
        self._restarts = False
        self._interim = 0

    def on_status(self, part: bytes) -> None:
        """A part of the reason phrase has come."""
        self._last.reason += part

    def on_headers_complete(self) -> None:
        """The head has come."""
        last = self._last
        last.status = self._parser.get_status_code()
        self._read_framing(last)
        if last.status < 100:
            # llhttp accepts it, but every status below 200 would count as informational here.
            raise ComplaintError(Complaint("a status below 100"))
        if last.status == 101:
            raise ComplaintError(Complaint(f"another protocol, {_ADDON}"))
        if last.status < 200:
            self._interim += 1
            if self._interim > MAX_INTERIM:
                raise ComplaintError(Complaint(f"more than {MAX_INTERIM} informational answers"))
            return
        self._interim = 0
        bare = self.head_only or last.status in (204, 304)
        last.until_closed = not (bare or last.chunked or last.has_length)
        if last.until_closed:
            last.keeps_open = False
        if self.head_only:
            last.whole = self._restarts = True

    def feed(self, data: bytes) -> None:
        """Read the next bytes."""
        super().feed(data)
        if self._restarts:
            # The parser would wait for the body, which an answer to HEAD does not have.
            self._restarts = False
            self._parser = httptools.HttpResponseParser(self)
