"""HAR 1.2 files: read as a capture, and written from a trace."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct

from signet_conformance.errors import UsageError, os_errors, printable
from signet_conformance.trace.model import ERRORS
from signet_recording_proxy.captures import CapturedExchange, CapturedMessage, Headers, instant

MAX_BYTES = 512 * 1024 * 1024
_REMEDY = "export it again, as HAR 1.2 with content"
_DESCRIBING = frozenset({"mimeType", "text", "params", "encoding", "comment"})
"""Members of `postData` with or about the body; any other, such as `_file`, says that the body is elsewhere."""
_HIGHEST_STATUS = 599


class Capture(Struct, frozen=True):
    """The exchanges of a HAR file, and how many entries were left out for each reason."""

    exchanges: list[CapturedExchange]
    left_out: Counter[str]


def read(path: str) -> Capture:
    """The exchanges of a HAR file. Raises UsageError naming the file and the wrong entry."""
    try:
        with os_errors("cannot be read", where=path, remedy="check the path and its permissions"):
            if Path(path).stat().st_size > MAX_BYTES:
                raise UsageError(f"is larger than {MAX_BYTES >> 20} MiB", where=path, remedy="export a part of it")
            raw = Path(path).read_bytes()
            if raw.startswith(b"\x1f\x8b"):
                raise UsageError(
                    "is compressed with gzip", where=path, remedy="unpack it, and convert the unpacked file"
                )
            data = json.loads(raw)
    except (ValueError, RecursionError) as failure:
        raise UsageError(f"is not JSON: {printable(failure, 160)}", where=path, remedy=_REMEDY) from None
    log = data.get("log") if isinstance(data, dict) else None
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(entries, list):
        raise UsageError("has no log.entries", where=path, remedy=_REMEDY)
    exchanges: list[CapturedExchange] = []
    left_out: Counter[str] = Counter()
    for number in range(1, len(entries) + 1):
        place = f"{printable(path, 400)}, entry {number}"
        # Each entry is dropped once it is read, so that a large capture is in memory once, not twice.
        entry, entries[number - 1] = entries[number - 1], None
        try:
            if why := _why_left_out(entry):
                left_out[why] += 1
            else:
                exchanges.append(_captured(entry, place))
        except KeyError as missing:
            raise UsageError(f"the entry lacks {printable(missing, 60)}", where=place, remedy=_REMEDY) from None
        except (TypeError, ValueError, AttributeError, OverflowError) as problem:
            cause = f"a member has another type or value than HAR 1.2 says ({printable(problem, 120)})"
            raise UsageError(f"the entry cannot be read: {cause}", where=place, remedy=_REMEDY) from None
    return Capture(exchanges, left_out)


def _why_left_out(entry: dict[str, Any]) -> str | None:
    """Why an entry is left out; None if it is an exchange with a server."""
    url = str(entry["request"]["url"])
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    scheme = parts.scheme.lower()
    if not scheme:
        return "a relative address"
    if scheme not in ("http", "https"):
        return f"an address of the scheme {printable(scheme, 20)}"
    if not parts.netloc:
        return "an address without a host"
    return "no answer yet when the capture was saved" if entry.get("response") is None else None


def _captured(entry: dict[str, Any], place: str) -> CapturedExchange:
    request, response = entry["request"], entry["response"]
    begun = datetime.fromisoformat(entry["startedDateTime"]).astimezone(UTC).timestamp()
    took = float(entry.get("time") or 0) / 1000
    if not isfinite(took):
        raise ValueError("time is not a number of milliseconds")
    instant(begun + max(took, 0.0), place)
    status = _status(response.get("status"))
    kind = (entry.get("_signet") or {}).get("error")
    # Tools leave the status blank when the client gave the request up.
    given_up = response.get("status") in (None, "")
    if kind not in ERRORS:
        kind = None if status is not None else "client_closed" if given_up else "upstream_reset"
    sent = _request_of(request)
    return CapturedExchange(
        str(request["method"]),
        request["url"],
        sent,
        status,
        None if status is None else _answer_of(response, status, str(request["method"])),
        begun,
        begun + max(took, 0.0),
        kind,
        incomplete=given_up and not sent.content and not sent.lacks_content,
    )


def _headers(message: dict[str, Any]) -> Headers:
    # HTTP/2 exports carry the request line as headers that begin with a colon.
    pairs = [(str(pair["name"]).lower(), str(pair["value"])) for pair in message.get("headers") or []]
    return [(name, value) for name, value in pairs if not name.startswith(":")]


def _status(value: Any) -> int | None:
    """The status of an answer; None if none came, for which tools write null, 0 or an empty text."""
    try:
        status = int(value)
    except (TypeError, ValueError):
        return None
    return status if 100 <= status <= _HIGHEST_STATUS else None


def _request_of(request: dict[str, Any]) -> CapturedMessage:
    headers, posted = _headers(request), request.get("postData") or {}
    content, size = _posted(posted), _declared_size(headers, request.get("bodySize"))
    # With HTTP/2 no header gives the length, and a tool that keeps no bodies may give no size either.
    may_send = (
        size is None and str(request["method"]).upper() in ("POST", "PUT", "PATCH") and posted.get("text") is None
    )
    return _message(headers, content, size, lacks=may_send or bool(posted.keys() - _DESCRIBING))


def _answer_of(response: dict[str, Any], status: int, method: str) -> CapturedMessage:
    headers, content = _headers(response), response.get("content") or {}
    if method.upper() == "HEAD" or status in (204, 304):
        return CapturedMessage(headers, b"")
    size = _declared_size(headers, content.get("size"), response.get("bodySize"))
    return _message(headers, _content(content), size, lacks=size is None and content.get("text") is None)


def _message(headers: Headers, content: bytes, size: int | None, *, lacks: bool) -> CapturedMessage:
    """A message. It lacks its body if none was captured, but the size, or else `lacks`, shows that one was sent."""
    if content or size == 0 or not (size or lacks):
        return CapturedMessage(headers, content)
    return CapturedMessage(headers, b"", lacks_content=True, size=size)


def _declared_size(headers: Headers, *sizes: Any) -> int | None:
    """The size in bytes of a body, from its header or else from the capture; None if neither gives one."""
    lengths = [value for name, value in headers if name == "content-length" and value.isascii() and value.isdigit()]
    known = [size for size in sizes if isinstance(size, int) and size >= 0]
    return int(lengths[0]) if lengths else max(known, default=None)


def _posted(data: dict[str, Any]) -> bytes:
    if data.get("params") and not data.get("text"):
        pairs = ((pair["name"], pair.get("value") or "") for pair in data["params"])
        return "&".join(f"{name}={value}" for name, value in pairs).encode()
    return _content(data)


def _content(content: dict[str, Any]) -> bytes:
    text = content.get("text")
    if text is None:
        return b""
    # Some tools write JSON as what it says.
    plain = (text if isinstance(text, str) else json.dumps(text)).encode("utf-8", "surrogatepass")
    if content.get("encoding") != "base64":
        return plain
    try:
        decoded = base64.b64decode(b"".join(plain.split()), validate=True)
    except ValueError:
        return plain  # some tools call plain text base64
    size = content.get("size")
    return plain if size == len(plain) and size != len(decoded) else decoded


def write(captured: Iterable[CapturedExchange]) -> Iterator[bytes]:
    """The pieces of a HAR 1.2 file."""
    creator = {"name": "signet-conformance", "version": version("signet-conformance")}
    yield f'{{"log": {{"version": "1.2", "creator": {json.dumps(creator)}, "entries": ['.encode()
    for number, exchange in enumerate(captured):
        yield (b",\n" if number else b"\n") + json.dumps(_entry(exchange)).encode()
    yield b"\n]}}\n"


def _entry(exchange: CapturedExchange) -> dict[str, Any]:
    took = round((exchange.ended - exchange.begun) * 1000, 3)
    entry: dict[str, Any] = {
        "startedDateTime": instant(exchange.begun).isoformat(timespec="microseconds"),
        "time": took,
        "request": _request(exchange),
        "response": _response(exchange),
        "cache": {},
        "timings": {"send": 0, "wait": took, "receive": 0},
    }
    if exchange.error is not None:
        entry["_signet"] = {"error": exchange.error}
    return entry


def _request(exchange: CapturedExchange) -> dict[str, Any]:
    request: dict[str, Any] = {
        "method": exchange.method,
        "url": exchange.url,
        "queryString": [
            {"name": name, "value": value}
            for name, value in parse_qsl(urlsplit(exchange.url).query, keep_blank_values=True)
        ],
        **_common(exchange.request),
    }
    if exchange.request.content or exchange.request.lacks_content:
        request["postData"] = {"mimeType": exchange.request.media_type or "", **_text(exchange.request)}
    return request


def _response(exchange: CapturedExchange) -> dict[str, Any]:
    message = exchange.answer or CapturedMessage([], b"")
    content = {"size": _size(message), "mimeType": message.media_type or "", **_text(message)}
    return {"status": exchange.status or 0, "statusText": "", "redirectURL": "", "content": content, **_common(message)}


def _common(message: CapturedMessage) -> dict[str, Any]:
    headers = [{"name": name, "value": value} for name, value in message.headers]
    return {
        "httpVersion": "HTTP/1.1", "headers": headers, "cookies": [], "headersSize": -1, "bodySize": _size(message)
    }  # fmt: skip


def _size(message: CapturedMessage) -> int:
    if not message.lacks_content:
        return len(message.content)
    return -1 if message.size is None else message.size


def _text(message: CapturedMessage) -> dict[str, str]:
    if message.lacks_content:
        return {}
    try:
        return {"text": message.content.decode()}
    except UnicodeDecodeError:
        return {"text": base64.b64encode(message.content).decode("ascii"), "encoding": "base64"}
