"""HAR 1.2 files: read as a capture, and written from a trace."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from signet_conformance.errors import UsageError, printable
from signet_conformance.trace.model import NOT_CARRIED
from signet_recording_proxy.captures.common import Captured, CapturedMessage, Headers, instant

MAX_BYTES = 512 * 1024 * 1024
ERRORS = frozenset({"upstream_refused", "upstream_reset", "upstream_timeout", "client_closed", NOT_CARRIED, "fault"})
_REMEDY = "export it again, as HAR 1.2 with content"


def read(path: str) -> list[Captured]:
    """The exchanges of a HAR file. Raises UsageError naming the file and the wrong entry."""
    where = printable(path, 400)
    try:
        if Path(path).stat().st_size > MAX_BYTES:
            raise UsageError(f"is larger than {MAX_BYTES >> 20} MiB", where=where, remedy="export a part of it")
        data = json.loads(Path(path).read_bytes())
    except OSError as failure:
        problem = f"cannot be read: {failure.strerror or failure}"
        raise UsageError(problem, where=where, remedy="check the path and its permissions") from None
    except (ValueError, RecursionError) as failure:
        raise UsageError(f"is not JSON: {printable(failure, 160)}", where=where, remedy=_REMEDY) from None
    log = data.get("log") if isinstance(data, dict) else None
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(entries, list):
        raise UsageError("has no log.entries", where=where, remedy=_REMEDY)
    exchanges = []
    for number in range(1, len(entries) + 1):
        # What was read is let go: a capture may be as large as the memory allows once.
        entry, entries[number - 1] = entries[number - 1], None
        try:
            exchanges.append(_captured(entry))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
            what = f"{type(problem).__name__}: {printable(problem, 120)}"
            raise UsageError(
                f"the entry cannot be read ({what})", where=f"{where}, entry {number}", remedy=_REMEDY
            ) from None
    return exchanges


def _captured(entry: dict[str, Any]) -> Captured:
    request, response = entry["request"], entry["response"]
    begun = datetime.fromisoformat(entry["startedDateTime"]).astimezone(UTC).timestamp()
    took = float(entry.get("time") or 0) / 1000
    if not isfinite(took):
        raise ValueError("time is not a number of milliseconds")
    instant(begun + max(took, 0.0))
    parts = urlsplit(request["url"])
    if not parts.scheme or not parts.netloc:
        raise ValueError("request.url is not a whole URL")
    status = int(response["status"])
    kind = (entry.get("_signet") or {}).get("error")
    if kind is None and status <= 0:
        kind = "upstream_reset"
    return Captured(
        str(request["method"]),
        request["url"],
        CapturedMessage(_headers(request), _posted(request.get("postData"))),
        status if status > 0 else None,
        CapturedMessage(_headers(response), _content(response.get("content") or {})) if status > 0 else None,
        begun,
        begun + max(took, 0.0),
        kind if kind in ERRORS else None,
    )


def _headers(message: dict[str, Any]) -> Headers:
    # HTTP/2 exports carry the request line as headers that begin with a colon.
    pairs = [(str(pair["name"]).lower(), str(pair["value"])) for pair in message.get("headers") or []]
    return [(name, value) for name, value in pairs if not name.startswith(":")]


def _posted(data: dict[str, Any] | None) -> bytes:
    if not data:
        return b""
    if data.get("params") and not data.get("text"):
        pairs = ((pair["name"], pair.get("value") or "") for pair in data["params"])
        return "&".join(f"{name}={value}" for name, value in pairs).encode()
    return _content(data)


def _content(content: dict[str, Any]) -> bytes:
    text = content.get("text")
    if text is None:
        return b""
    if content.get("encoding") == "base64":
        return base64.b64decode(text)
    return str(text).encode("utf-8", "surrogatepass")


def write(captured: Iterable[Captured]) -> Iterator[bytes]:
    """The pieces of a HAR 1.2 file."""
    creator = {"name": "signet-conformance", "version": version("signet-conformance")}
    yield f'{{"log": {{"version": "1.2", "creator": {json.dumps(creator)}, "entries": ['.encode()
    for number, exchange in enumerate(captured):
        yield (b",\n" if number else b"\n") + json.dumps(_entry(exchange)).encode()
    yield b"\n]}}\n"


def _entry(exchange: Captured) -> dict[str, Any]:
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


def _request(exchange: Captured) -> dict[str, Any]:
    request: dict[str, Any] = {
        "method": exchange.method,
        "url": exchange.url,
        "queryString": [
            {"name": name, "value": value}
            for name, value in parse_qsl(urlsplit(exchange.url).query, keep_blank_values=True)
        ],
        **_common(exchange.request),
    }
    if exchange.request.content:
        request["postData"] = {"mimeType": exchange.request.media_type or "", **_text(exchange.request.content)}
    return request


def _response(exchange: Captured) -> dict[str, Any]:
    said = exchange.answer or CapturedMessage([], b"")
    content = {"size": len(said.content), "mimeType": said.media_type or "", **_text(said.content)}
    return {"status": exchange.status or 0, "statusText": "", "redirectURL": "", "content": content, **_common(said)}


def _common(said: CapturedMessage) -> dict[str, Any]:
    headers = [{"name": name, "value": value} for name, value in said.headers]
    return {
        "httpVersion": "HTTP/1.1", "headers": headers, "cookies": [], "headersSize": -1, "bodySize": len(said.content)
    }  # fmt: skip


def _text(content: bytes) -> dict[str, str]:
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"text": base64.b64encode(content).decode("ascii"), "encoding": "base64"}
