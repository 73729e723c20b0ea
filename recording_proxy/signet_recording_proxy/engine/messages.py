"""Reads requests and answers from bytes as they come, strictly.

llhttp refuses what two readers could take apart in two ways: a length beside a transfer coding, lengths that differ,
folded lines, bare line ends, sizes of chunks that are not hexadecimal numbers. Here the rest is refused: other
codings than chunked, chunks of HTTP/1.0, heads without end, upgrades, targets that name another server.
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
"""No server takes a longer head, nor a longer trailer."""
BAD_REQUEST, TOO_LONG, NOT_CARRIED, UNAVAILABLE = 400, 431, 501, 503


class Complaint(Struct, frozen=True):
    """Why a message is not carried, and the status that tells a client so."""

    reason: str
    status: int = BAD_REQUEST


class ComplaintError(Exception):
    """Ends the parsing of a message."""

    def __init__(self, complaint: Complaint) -> None:
        super().__init__(complaint.reason)
        self.complaint = complaint


class Incoming:
    """One message as far as it has come. `pieces` is what has come of its body since the last `take`.

    Attributes:
        keeps_open: whether the connection is of use after this message.
        until_closed: whether an answer ends with its connection.
    """

    __slots__ = (
        *("chunked", "complaint", "fields", "has_head", "has_length", "headers", "hosts", "keeps_open", "method"),
        *("pieces", "reason", "status", "target", "trailers", "until_closed", "version", "whole"),
    )

    def __init__(self, *, whole: bool = False) -> None:
        self.clear()
        self.whole = whole

    def clear(self) -> None:
        """Forget what has come of it."""
        # Two for every exchange: a data class takes twice the time.
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
        """Whether nothing more can be read: what follows has no known meaning."""
        self._last = Incoming(whole=True)
        self._head_size = 0
        self._fed = 0

    @property
    def at_rest(self) -> bool:
        """Whether nothing has come but what was taken out of `messages` whole."""
        return self._last.whole and not self.messages and not self.broken

    def feed(self, data: bytes) -> None:
        """Read the next bytes."""
        if self.broken:
            return
        self._fed = len(data)
        try:
            self._parser.feed_data(data)
            if not self._last.has_head and not self._last.whole:
                self._grew(self._fed)
        except httptools.HttpParserUpgrade as upgrade:
            self._upgraded(data[upgrade.args[0] :])
        except (httptools.HttpParserError, ComplaintError) as failure:
            self._broke(failure)

    def _upgraded(self, rest: bytes) -> None:
        """The parser takes what follows a head for another protocol."""
        del rest
        self.broken = True

    def close(self) -> None:
        """Stop reading, and break the reference cycle of parser and reader: the collector has nothing to search for."""
        self.broken = True
        del self._parser

    def _broke(self, failure: Exception) -> None:
        self.broken = True
        last = self._last
        if last.whole and str(failure).startswith("Data after"):
            return  # of a client that said it would send nothing more
        if last.whole:
            last = self._begun()
        if last.complaint is None:
            inner = failure.__context__ if isinstance(failure, httptools.HttpParserCallbackError) else failure
            last.complaint = inner.complaint if isinstance(inner, ComplaintError) else Complaint(str(failure))

    def _begun(self) -> Incoming:
        self._last = last = Incoming()
        self._head_size = 0
        self.messages.append(last)
        return last

    def _grew(self, size: int) -> None:
        self._head_size += size
        if self._head_size > MAX_HEAD:
            raise ComplaintError(Complaint(f"a head of more than {MAX_HEAD >> 10} KiB", TOO_LONG))

    # ---- what httptools calls

    def on_message_begin(self) -> None:
        self._begun()

    def on_header(self, name: bytes, value: bytes) -> None:
        last = self._last
        if value[-1:] in _BLANKS:
            value = wire.without_blanks(name, value)
        if last.has_head:
            self._grew(_size(name, value))
            last.trailers.append((name, value))
        else:
            last.fields.append((name, value))

    def on_body(self, piece: bytes) -> None:
        last = self._last
        if last.whole:
            last.keeps_open = False  # of an answer to HEAD: what follows it belongs to nothing
        else:
            last.pieces.append(piece)

    def on_message_complete(self) -> None:
        self._last.whole = True

    def _framing(self, last: Incoming) -> None:
        """What fields say about the end of a message, and of the connection."""
        last.has_head = True
        before, self._head_size = self._head_size, 0
        if before + self._fed > MAX_HEAD:
            self._grew(sum(_size(name, value) for name, value in last.fields))
            self._head_size = 0
        last.version = version = self._parser.get_http_version()
        last.headers = kept = wire.headers(last.fields)
        closes = version == "1.0"
        for name, value in kept:
            if name in _TELLING:
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
"""What clients such as Java's offer with each request; a server that does not speak it answers as if they had not."""
_PREFACE = "PRI"
"""The method with which a client of HTTP/2 begins (RFC 9113, 3.4)."""
_ABSOLUTE = re.compile(rb"http://([^/?#]+)(?=[/?]|\Z)", re.IGNORECASE)
"""The beginning of a target that names its server too (RFC 9112, 3.2.2)."""
_ADDON = "which the addon for mitmproxy records (signet-conformance record --addon)"
_TELLING = frozenset({"connection", "content-length", "host", "transfer-encoding"})


class _Seen(NamedTuple):
    """What had come of a request before a piece of data: its head or not, and how many pieces of its body."""

    has_head: bool
    pieces: int


def _end_of(messages: Sequence[Incoming], data: bytes, seen: _Seen | None) -> int | None:
    """Where in `data` these requests end, and the line breaks behind them; None where it cannot be told.

    They follow each other from its beginning; of the first so much had been `seen` before, if it is not None.
    """
    at = 0
    for message in messages:
        pieces = message.pieces
        if seen is None or not seen.has_head:
            # The end of a head may have come in two pieces.
            at = -1 if seen is not None and data[:1] in (b"\r", b"\n") else data.find(_END_OF_HEAD, at)
            if at < 0:
                return None
            at += len(_END_OF_HEAD)
        else:
            pieces = pieces[seen.pieces :]
        seen = None
        if not message.chunked:
            at += sum(map(len, pieces))
            continue
        for piece in (*pieces, _END_OF_HEAD):
            # The last piece may have come in part with the data before.
            if (found := data.find(piece, at)) < 0:
                return None
            at = found + len(piece)
    breaks = _LINE_BREAKS.match(data, at)
    return at if breaks is None else breaks.end()


class RequestReader(_Reader):
    """Reads the requests of one client. They are complete in the order in which they came.

    `is_ours` says whether host and port name the recorder: a target may begin with them.
    """

    _parser: httptools.HttpRequestParser

    def __init__(self, is_ours: Callable[[str], bool] = lambda _: False) -> None:
        super().__init__()
        self._is_ours = is_ours
        self._parser = httptools.HttpRequestParser(self)
        self._goes_on = False
        self._again = b""

    def feed(self, data: bytes) -> None:
        """Read the next bytes."""
        before = self._last
        seen = _Seen(before.has_head, len(before.pieces)) if not before.whole else None
        super().feed(data)
        while self._again:
            data, self._again = self._again, b""
            before, seen = self._last, _Seen(has_head=False, pieces=0)
            super().feed(data)
        last = self._last
        if last.complaint is None or last.method:
            return
        # Told as far as it was understood: llhttp keeps a target to itself that it does not like.
        if last.target:
            last.method = self._parser.get_method().decode()
            if last.method == _PREFACE:
                last.method, last.complaint = "", Complaint(f"HTTP/2 without negotiation, {_ADDON}")
        elif last is not before:
            self._name_what_broke(last, before, data, seen)

    def _name_what_broke(self, last: Incoming, before: Incoming, data: bytes, seen: _Seen | None) -> None:
        """Say of bytes that llhttp took for no request which one they are, as far as they are one."""
        messages = list(self.messages)[:-1]
        # Those of an earlier piece of data are no part of this one, but for the one that was not whole by then.
        known = next((at for at, message in enumerate(messages) if message is before), None)
        here = messages if known is None else messages[known + (seen is None) :]
        begins = _end_of(here, data, seen)
        if begins is not None and (line := _REQUEST_LINE.match(data, begins)):
            last.method, last.target = line[1].decode(), line[2]
            return
        complaint = last.complaint
        if complaint is None or "method" not in complaint.reason.lower():
            return
        count = 0 if begins is None else len(data) - begins
        what, are = ("1 byte", "is") if count == 1 else (f"{count} bytes" if count else "bytes", "are")
        if before.method or messages:
            last.complaint = Complaint(
                f"{what} after the request {are} not a request: was a body sent without Content-Length?"
            )
            return
        why = (
            "the client uses TLS, but this address is http://" if data.startswith(_TLS_HANDSHAKE) else complaint.reason
        )
        last.complaint = Complaint(f"{what} that came {are} not a request: {why}")

    def on_url(self, part: bytes) -> None:
        """A part of the target has come."""
        self._last.target += part
        if len(self._last.target) > MAX_HEAD:
            self._grew(len(self._last.target))

    def on_headers_complete(self) -> None:
        """The head has come."""
        last = self._last
        last.method = self._parser.get_method().decode()
        self._framing(last)
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
        """A request begins, or the one goes on whose offer was passed over."""
        if self._goes_on:
            self._goes_on = False
        else:
            super().on_message_begin()

    def _upgraded(self, rest: bytes) -> None:
        """Pass over what was offered only, and read the request anew without it: llhttp lost sight of its body."""
        last = self._last
        fields = wire.without_offer(last.fields)
        first = b"%b %b HTTP/%b" % (last.method.encode(), last.target, last.version.encode())
        last.clear()  # and no new one: whoever waits for this request has it already
        self._head_size = 0
        self._parser = httptools.HttpRequestParser(self)
        self._goes_on = True
        self._again = wire.head(first, fields) + rest


class AnswerReader(_Reader):
    """Reads the answers of one daemon. `head_only` says that the next answer is to a HEAD."""

    _parser: httptools.HttpResponseParser

    def __init__(self) -> None:
        super().__init__()
        self._parser = httptools.HttpResponseParser(self)
        self.head_only = False
        self._over = False

    def on_status(self, part: bytes) -> None:
        """A part of the words beside the status has come."""
        self._last.reason += part

    def on_headers_complete(self) -> None:
        """The head has come."""
        last = self._last
        last.status = self._parser.get_status_code()
        self._framing(last)
        if last.status < 100:
            # llhttp takes it; here everything below 200 says that the answer is still to come.
            raise ComplaintError(Complaint("a status below 100"))
        if last.status == 101:
            raise ComplaintError(Complaint(f"another protocol, {_ADDON}"))
        if last.status < 200:
            return
        bare = self.head_only or last.status in (204, 304)
        last.until_closed = not (bare or last.chunked or last.has_length)
        if last.until_closed:
            last.keeps_open = False
        if self.head_only:
            last.whole = self._over = True

    def feed(self, data: bytes) -> None:
        """Read the next bytes."""
        super().feed(data)
        if self._over:
            # The parser waits for the body that an answer to HEAD only speaks of.
            self._over = False
            self._parser = httptools.HttpResponseParser(self)
