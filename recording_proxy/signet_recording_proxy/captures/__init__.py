"""Converts captures of other tools to traces, and traces to captures: what HAR and flow files have in common.

A capture is redacted when it becomes a trace; a trace already is.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec import Struct

from signet_conformance.errors import UsageError, printable
from signet_conformance.files import create_file, private_opener
from signet_conformance.trace import Body, Exchange, Header, Message, Trace, encode
from signet_conformance.trace.model import NOT_CAPTURED
from signet_recording_proxy.body import KeptBody, describe, unwritten
from signet_recording_proxy.redaction.redactor import Redactor

BODY_LIMIT = 32 * 1024 * 1024
DEFAULT_ORIGIN = "http://127.0.0.1:3850"
_HOOKS = "/api/hooks/"

Headers = list[tuple[str, str]]


class CapturedMessage(Struct, frozen=True):
    """What one side of a captured exchange sent. `coding` is the content coding that the bytes still have."""

    headers: Headers
    content: bytes
    coding: str | None = None
    lacks_content: bool = False
    """Whether a body was sent that the capture does not hold."""
    size: int | None = None
    """The size in bytes of a body that the capture does not hold, if known."""

    @property
    def media_type(self) -> str | None:
        """The media type that the headers name."""
        return next((value for name, value in self.headers if name == "content-type"), None)

    def body(self) -> dict[str, Any] | None:
        """The `body` member of a trace line."""
        if self.lacks_content:
            return unwritten(self.size, self.media_type, NOT_CAPTURED)
        kept = KeptBody(BODY_LIMIT)
        kept.feed(self.content)
        return describe(kept, self.media_type, self.coding)


class CapturedExchange(Struct, frozen=True):
    """One captured exchange. Instants are seconds since 1970; `answer` is None when no answer came."""

    method: str
    url: str
    request: CapturedMessage
    status: int | None
    answer: CapturedMessage | None
    begun: float
    ended: float
    error: str | None = None
    incomplete: bool = False
    """Whether nothing shows that a server received the request."""


class ConversionCounts(Struct, frozen=True):
    """Counts of a conversion: the written exchanges, and by origin those left out (`others`)."""

    exchanges: int
    uncaptured: int
    """How many bodies the capture does not hold."""
    origins: Sequence[str]
    others: Counter[str]


def write_trace(
    path: str, captured: Iterable[CapturedExchange], redactor: Redactor, origins: Sequence[str] = ()
) -> ConversionCounts:
    """Write the redacted trace of a capture.

    Without `origins`, the origins that hooks go to are taken, or else the daemon's default one. Raises UsageError if
    these are several, if the capture has no exchange, and if the file exists.
    """
    exchanges = sorted(captured, key=lambda exchange: exchange.begun)
    wanted, chosen = _select(exchanges, origins)
    zero = chosen[0].begun
    created = instant(zero).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    header = redactor.header(Header(created=created, upstream=origin_of(chosen[0].url)))
    lines = [redactor.exchange(_line(number, exchange, zero)) for number, exchange in enumerate(chosen, 1)]
    write_new(path, (encode(header.to_json()), *lines))
    messages = (each for exchange in chosen for each in (exchange.request, exchange.answer) if each is not None)
    others = Counter(origin for exchange in exchanges if (origin := origin_of(exchange.url)) not in wanted)
    return ConversionCounts(len(chosen), sum(message.lacks_content for message in messages), sorted(wanted), others)


def write_new(path: str, pieces: Iterable[bytes]) -> None:
    """Write a file that only its owner can read. Raises UsageError if it exists, or cannot be written completely."""
    try:
        create_file(Path(path), pieces, private_opener)
    except FileExistsError:
        raise UsageError("exists already", where=path, remedy="choose another name: nothing is replaced") from None
    except (OSError, ValueError) as failure:  # ValueError: no file has a null byte in its name
        problem = f"cannot be written: {getattr(failure, 'strerror', None) or failure}"
        raise UsageError(problem, where=path, remedy="name a file in a folder of yours, on a disk with room") from None


def instant(seconds: float, where: str = "") -> datetime:
    """The instant `seconds` after 1970. Raises UsageError for NaN, and outside the years 1 to 9999."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"timestamp {seconds:g} is out of range",
            where=where,
            remedy="correct the time, or leave the exchange out",
        ) from None


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL, without user name and password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _select(
    captured: Sequence[CapturedExchange], requested: Sequence[str]
) -> tuple[set[str], Sequence[CapturedExchange]]:
    """The origins `requested`, or else the daemon's, and the exchanges with them."""
    counts = Counter(origin_of(exchange.url) for exchange in captured)
    if not counts:
        raise UsageError("the capture holds no exchange", remedy="capture while the connector runs")
    wanted = {origin.rstrip("/") for origin in requested} or _daemon_origins(captured, counts)
    if unknown := sorted(wanted - counts.keys()):
        known = ", ".join(printable(name, 80) for name, _ in counts.most_common(5))
        raise UsageError(f"no exchange goes to {printable(unknown[0], 80)}", remedy=f"--origin one of {known}")
    return wanted, [exchange for exchange in captured if origin_of(exchange.url) in wanted]


def _daemon_origins(captured: Sequence[CapturedExchange], counts: Counter[str]) -> set[str]:
    """The origins of the daemon, recognised by its paths; two names of one port of this machine are one daemon."""
    if len(counts) == 1:
        return set(counts)
    with_hooks = {origin_of(each.url) for each in captured if urlsplit(each.url).path.startswith(_HOOKS)}
    found = with_hooks or (counts.keys() & {DEFAULT_ORIGIN})
    machines = {_machine_and_port(origin) for origin in found}
    if len(machines) == 1:
        return {origin for origin in counts if _machine_and_port(origin) in machines}
    listed = ", ".join(f"{printable(name, 80)} ({count})" for name, count in counts.most_common(5))
    raise UsageError(
        f"the capture speaks to {len(counts)} origins: {listed}",
        remedy=f"choose the daemon's: --origin {printable(counts.most_common(1)[0][0], 80)}",
    )


def _machine_and_port(origin: str) -> str:
    scheme, _, authority = origin.partition("://")
    host, colon, port = authority.rpartition(":")
    return f"{scheme} this machine {port}" if colon and host in ("localhost", "127.0.0.1", "[::1]") else origin


def _line(number: int, exchange: CapturedExchange, zero: float) -> dict[str, Any]:
    parts = urlsplit(exchange.url)
    line: dict[str, Any] = {
        "kind": "exchange",
        "seq": number,
        "conn": None,
        "t0": round(exchange.begun - zero, 6),
        "t1": round(max(exchange.ended, exchange.begun) - zero, 6),
        "request": {
            "method": exchange.method,
            "path": parts.path or "/",
            "query": parse_qsl(parts.query, keep_blank_values=True),
            "headers": exchange.request.headers,
            "body": exchange.request.body(),
        },
        "response": None,
    }
    if exchange.answer is not None:
        line["response"] = {
            "status": exchange.status,
            "headers": exchange.answer.headers,
            "body": exchange.answer.body(),
        }
    if exchange.incomplete:
        line["request"]["incomplete"] = True
    if exchange.error is not None:
        line["error"] = {"kind": exchange.error}
    return line


def captured_of(trace: Trace) -> Iterator[CapturedExchange]:
    """The exchanges of a trace as a capture; a body that was cut has only its beginning.

    Raises UsageError if the header's `upstream` is not an address, or the time of an exchange is out of range.
    """
    zero = _created(trace.header.created)
    origin = _origin(trace.header.upstream)
    for exchange in trace.exchanges:
        answer = None if exchange.response is None else _message_of(exchange.response)
        instant(zero + exchange.t0, f"exchange {exchange.seq}")
        yield CapturedExchange(
            exchange.request.method,
            origin + _target(exchange),
            _message_of(exchange.request),
            exchange.response.status if exchange.response is not None else None,
            answer,
            zero + exchange.t0,
            zero + exchange.t1,
            exchange.error,
        )


def _created(text: str | None) -> float:
    try:
        return datetime.fromisoformat(text or "").timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


def _origin(upstream: str | None) -> str:
    origin = (upstream or DEFAULT_ORIGIN).rstrip("/")
    try:
        parts = urlsplit(origin)
        known = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
    except ValueError:
        known = False
    if not known or not origin.isascii() or not origin.isprintable() or " " in origin:
        raise UsageError(
            f"upstream {printable(repr(origin), 80)} is not an address",
            where="the trace's header",
            remedy=f"write it as {DEFAULT_ORIGIN}",
        )
    return origin


def _target(exchange: Exchange) -> str:
    query = urlencode([(as_sent(name), as_sent(value)) for name, value in exchange.request.query])
    # A URL cannot have the target `*` of `OPTIONS *`.
    path = "/" + exchange.request.path.removeprefix("/")
    return f"{path}?{query}" if query else path


def as_sent(text: str) -> bytes:
    """The bytes of a text from a trace, in which surrogates represent bytes that are not UTF-8."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _message_of(message: Message) -> CapturedMessage:
    # The bodies of a trace are decoded, so no header may name a content coding.
    headers = [(name, value) for name, value in message.headers if name.lower() != "content-encoding"]
    body = message.body
    if body is not None and body.undecoded == NOT_CAPTURED:
        return CapturedMessage(headers, b"", lacks_content=True, size=body.size)
    return CapturedMessage(headers, b"" if body is None else _content(body))


def _content(body: Body) -> bytes:
    if body.kind == "json":
        return json.dumps(body.value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if body.kind == "base64":
        return base64.b64decode(body.value)
    return str(body.value).encode("utf-8", "surrogatepass")
