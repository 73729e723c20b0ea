"""Captures that others made, as traces and back: what HAR and flow files have in common.

On the way in everything goes through the redactor; on the way out a trace has been redacted already.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from signet_conformance.errors import UsageError, printable
from signet_conformance.trace import Body, Exchange, Header, Message, Trace, encode
from signet_recording_proxy.body import KeptBody, describe
from signet_recording_proxy.redaction import Redactor

BODY_LIMIT = 32 * 1024 * 1024
DEFAULT_ORIGIN = "http://127.0.0.1:3850"

Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Said:
    """What one side of a captured exchange sent. `coding` is the content coding that the bytes still have."""

    headers: Headers
    content: bytes
    coding: str | None = None

    @property
    def media_type(self) -> str | None:
        """The media type that the headers name."""
        return next((value for name, value in self.headers if name == "content-type"), None)

    def body(self) -> dict[str, Any] | None:
        """The `body` member of a trace line."""
        kept = KeptBody(BODY_LIMIT)
        kept.feed(self.content)
        return describe(kept, self.media_type, self.coding)


@dataclass(frozen=True, slots=True)
class Captured:
    """One captured exchange. Instants are seconds since 1970; `answer` is None when nobody answered."""

    method: str
    url: str
    request: Said
    status: int | None
    answer: Said | None
    begun: float
    ended: float
    error: str | None = None


def write_trace(path: str, captured: Iterable[Captured], redactor: Redactor, origin: str | None = None) -> int:
    """Write the trace of a capture, redacted; how many exchanges it has.

    Raises UsageError when the capture speaks to several origins and none is chosen, when it holds no exchange,
    and when the file exists.
    """
    everything = sorted(captured, key=lambda one: one.begun)
    chosen = _of_origin(everything, origin)
    zero = chosen[0].begun
    created = datetime.fromtimestamp(zero, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    header = redactor.header(Header(created=created, upstream=origin_of(chosen[0].url)))
    lines = (redactor.exchange(_line(number, one, zero)) for number, one in enumerate(chosen, 1))
    write_new(path, (encode(header.to_json()), *lines))
    return len(chosen)


def write_new(path: str, pieces: Iterable[bytes]) -> None:
    """Write a file that must not exist; what is half written when it fails is taken away."""
    target = Path(path)
    try:
        with target.open("xb") as stream:
            try:
                stream.writelines(pieces)
            except BaseException:
                target.unlink(missing_ok=True)
                raise
    except FileExistsError:
        raise UsageError("exists already", where=path, remedy="choose another name: nothing is replaced") from None
    except OSError as failure:
        problem = f"cannot be written: {failure.strerror or failure}"
        raise UsageError(problem, where=path, remedy="name a file in a folder that you may write to") from None


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL, without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _of_origin(captured: Sequence[Captured], origin: str | None) -> list[Captured]:
    counts = Counter(origin_of(one.url) for one in captured)
    if origin is None and len(counts) > 1:
        named = ", ".join(f"{printable(name, 80)} ({count})" for name, count in counts.most_common(5))
        raise UsageError(
            f"the capture speaks to {len(counts)} origins: {named}",
            remedy=f"choose the daemon's: --origin {printable(counts.most_common(1)[0][0], 80)}",
        )
    chosen = [one for one in captured if origin is None or origin_of(one.url) == origin.rstrip("/")]
    if not chosen:
        known = ", ".join(printable(name, 80) for name, _ in counts.most_common(5))
        raise UsageError(
            "the capture holds no exchange" if not counts else f"no exchange goes to {printable(origin, 80)}",
            remedy=f"--origin one of {known}" if counts else "capture while the connector runs",
        )
    return chosen


def _line(number: int, one: Captured, zero: float) -> dict[str, Any]:
    parts = urlsplit(one.url)
    line: dict[str, Any] = {
        "kind": "exchange",
        "seq": number,
        "conn": None,
        "t0": round(one.begun - zero, 6),
        "t1": round(max(one.ended, one.begun) - zero, 6),
        "request": {
            "method": one.method,
            "path": parts.path or "/",
            "query": parse_qsl(parts.query, keep_blank_values=True),
            "headers": one.request.headers,
            "body": one.request.body(),
        },
        "response": None,
    }
    if one.answer is not None:
        line["response"] = {"status": one.status, "headers": one.answer.headers, "body": one.answer.body()}
    if one.error is not None:
        line["error"] = {"kind": one.error}
    return line


def captured_of(trace: Trace) -> Iterator[Captured]:
    """The exchanges of a trace as a capture; of a body that was cut, its beginning."""
    zero = _created(trace.header.created)
    origin = trace.header.upstream or DEFAULT_ORIGIN
    for exchange in trace.exchanges:
        answer = None if exchange.response is None else _said(exchange.response)
        yield Captured(
            exchange.request.method,
            origin.rstrip("/") + _target(exchange),
            _said(exchange.request),
            exchange.response.status if exchange.response is not None else None,
            answer,
            zero + exchange.t0,
            zero + exchange.t1,
            exchange.error,
        )


def _created(text: str | None) -> float:
    try:
        return datetime.fromisoformat(text or "").timestamp()
    except ValueError:
        return 0.0


def _target(exchange: Exchange) -> str:
    query = urlencode([(name, value) for name, value in exchange.request.query])
    return f"{exchange.request.path}?{query}" if query else exchange.request.path


def _said(message: Message) -> Said:
    # The trace holds decoded bodies: a coding that the headers still name would have to be undone again.
    headers = [(name, value) for name, value in message.headers if name.lower() != "content-encoding"]
    return Said(headers, b"" if message.body is None else _content(message.body))


def _content(body: Body) -> bytes:
    if body.kind == "json":
        return json.dumps(body.value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if body.kind == "base64":
        return base64.b64decode(body.value)
    return str(body.value).encode("utf-8", "surrogatepass")
