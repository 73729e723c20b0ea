"""The requests that reached the server, kept within bounds, without credentials."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

MOST_REQUESTS: Final = 2_000
MOST_BYTES: Final = 64 * 1024 * 1024
REDACTED: Final = "[redacted]"
_SECRET: Final = re.compile(r"auth|cookie|key|password|secret|token", re.IGNORECASE)
_SCHEME: Final = re.compile(r"(?:Basic|Bearer)(?= )", re.IGNORECASE)


@dataclass
class KeptRequest:
    """One request, and its outcome. Times are seconds since the epoch."""

    number: int
    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    began: float
    api: str | None = None
    asked: Mapping[str, Any] | None = None
    """The request to a model, in the form of all interfaces."""
    turn: str | None = None
    status: int | None = None
    first_chunk: float | None = None
    ended: float | None = None
    outcome: str | None = None
    """complete, client_closed, or the kind of the scripted fault."""

    def to_json(self) -> dict[str, Any]:
        """The request as GET /requests shows it."""
        return {**vars(self), **_shown_body(self.body)}


def _shown_body(body: bytes) -> dict[str, Any]:
    if not body:
        return {"body": None}
    try:
        value = parse_json(body)
        json.dumps(value)
    except (ValueError, RecursionError):
        return {"body": None, "body_text": body.decode("utf-8", "backslashreplace")}
    return {"body": value}


def parse_json(body: bytes) -> Any:
    """The value of a JSON text. Raises ValueError for invalid JSON, such as NaN, and RecursionError."""
    return json.loads(body, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


async def wait_until(is_met: Callable[[], bool], changed: asyncio.Condition, timeout_s: float) -> None:
    """Wait until `is_met` returns True, for `timeout_s` seconds at most. Each change must notify `changed`."""
    with suppress(TimeoutError):
        async with changed, asyncio.timeout(timeout_s):
            await changed.wait_for(is_met)


@dataclass(slots=True)
class Requests:
    """The newest requests; the oldest are dropped when there are too many or they are too large together."""

    dropped: int = 0
    _kept: deque[KeptRequest] = field(default_factory=deque)
    _bytes: int = 0
    _count: int = 0
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def begin(self, method: str, path: str, query: str, headers: Iterable[tuple[str, str]], body: bytes) -> KeptRequest:
        """Store a request that has arrived completely."""
        self._count += 1
        redacted = tuple((name, _redact(name, value)) for name, value in headers)
        kept = KeptRequest(self._count, method, path, _redact_query(query), redacted, body, time.time())
        self._kept.append(kept)
        self._bytes += len(body)
        while len(self._kept) > 1 and (len(self._kept) > MOST_REQUESTS or self._bytes > MOST_BYTES):
            self._bytes -= len(self._kept.popleft().body)
            self.dropped += 1
        return kept

    async def announce(self) -> None:
        """Wake the calls of `after` that wait for a request."""
        async with self._changed:
            self._changed.notify_all()

    async def after(self, number: int, wait_s: float) -> list[KeptRequest]:
        """The requests with a higher number; waits `wait_s` at most for the first of them."""
        if wait_s > 0:
            await wait_until(lambda: bool(self._kept) and self._kept[-1].number > number, self._changed, wait_s)
        return [kept for kept in self._kept if kept.number > number]

    def forget(self) -> int:
        """Forget all requests, and return the number of the last; numbers continue."""
        self._kept.clear()
        self._bytes = self.dropped = 0
        return self._count


def _redact(name: str, value: str) -> str:
    if not _SECRET.search(name):
        return value
    scheme = _SCHEME.match(value)
    return f"{scheme[0]} {REDACTED}" if scheme else REDACTED


def _redact_query(query: str) -> str:
    pairs = [pair.partition("=") for pair in query.split("&")]
    return "&".join(
        f"{name}={REDACTED}" if _SECRET.search(name) else name + sign + value for name, sign, value in pairs
    )
