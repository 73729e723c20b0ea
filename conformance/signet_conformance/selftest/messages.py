"""A request and an answer on their way, as changes see them: whole, and free of any transport."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from signet_conformance.contract import route_table

_FRAMING = frozenset({"content-length", "transfer-encoding", "connection"})
"""Headers that belong to one transport and are made anew by the next."""
JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One request. `headers` have lower-case names; `json` is the body's JSON value, None when it has none."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    content: bytes

    @classmethod
    async def of(cls, request: httpx.Request) -> Outgoing:
        """Read a request of httpx."""
        headers = {name.lower(): value for name, value in request.headers.items() if name.lower() not in _FRAMING}
        path = request.url.raw_path.partition(b"?")[0].decode("ascii")
        return cls(request.method, path, dict(request.url.params), headers, await request.aread())

    def to_httpx(self, like: httpx.Request) -> httpx.Request:
        """The request for httpx, to where `like` goes."""
        url = like.url.copy_with(raw_path=self.path.encode("ascii"))
        return httpx.Request(
            self.method,
            url.copy_merge_params(self.query) if self.query else url,
            headers=dict(self.headers),
            content=self.content or None,
            extensions=like.extensions,
        )

    @property
    def operation(self) -> str | None:
        """The operation of the contract that method and path name, as the newest daemon serves them."""
        route = route_table("0.205").find(self.method, self.path)
        return None if route is None else route.operation

    @property
    def json(self) -> Any:
        """The body's JSON value, a new one each time, or None without a body."""
        return _parsed(self.content)


@dataclass(frozen=True, slots=True)
class Heard:
    """One answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @classmethod
    async def of(cls, response: httpx.Response) -> Heard:
        """Read an answer of httpx."""
        try:
            content = b"".join([piece async for piece in response.aiter_raw()])
        finally:
            await response.aclose()
        headers = {name.lower(): value for name, value in response.headers.items() if name.lower() not in _FRAMING}
        return cls(response.status_code, headers, content)

    @classmethod
    def made(cls, status: int, body: Any) -> Heard:
        """An answer that nobody sent."""
        return cls(status, {"content-type": JSON_TYPE}, encoded(body))

    def to_httpx(self, request: httpx.Request) -> httpx.Response:
        """The answer for httpx, as one that has not been read yet."""
        headers = {**self.headers, "content-length": str(len(self.content))}
        return httpx.Response(self.status, headers=headers, stream=httpx.ByteStream(self.content), request=request)

    @property
    def json(self) -> Any:
        """The body's JSON value, a new one each time, or None without a body."""
        return _parsed(self.content)


def encoded(body: Any) -> bytes:
    """A JSON value as a body."""
    return json.dumps(body, separators=(",", ":")).encode("ascii")


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
