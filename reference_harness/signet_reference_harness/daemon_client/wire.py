"""One HTTP exchange with the daemon. It has one deadline for the whole, and never raises.

It is asynchronous because such a deadline needs a task that can be cancelled anywhere: every byte of a slow body would
renew a timeout per read.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import httpx

from signet_reference_harness.config import HarnessConfig
from signet_reference_harness.daemon_client.plain_http import PlainAnswer, PlainTransport
from signet_reference_harness.daemon_client.reply import OK, OPERATIONS, FailureClass, Reply, held_back
from signet_reference_harness.daemon_client.restraint import RepeatGuard, identity_of, without_tokens
from signet_reference_harness.errors import with_cause

BODY_LIMIT: Final = 16 * 1024 * 1024
DETAIL_LIMIT: Final = 200
RETRY_AFTER_LIMIT_S: Final = 3_600.0
CONNECTIONS: Final = 32
KEPT_ALIVE_S: Final = 1.0
"""How long after an answer a kept connection is taken to be alive."""
ALWAYS_SENT: Final = {
    "user-agent": "signet-reference-harness/1",
    "accept": "application/json",
    "accept-encoding": "identity",
}


@dataclass(slots=True)
class _Progress:
    """How far an exchange came. `trusted` means that its connection was alive a moment before."""

    trusted: bool
    sent: bool = False
    status: int | None = None

    async def note(self, event: str, _info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            self.trusted = True
        elif event.endswith(".send_request_headers.started"):
            self.sent = True

    def failed(self, operation: str, failure: FailureClass, detail: str) -> Reply:
        # The daemon may have closed a connection that was idle for long: a request lost on it was sent, but perhaps
        # never read.
        taken = self.status is not None or self.trusted or failure is FailureClass.TIMEOUT
        return Reply(
            operation,
            status=self.status,
            failure=failure,
            detail=detail[:DETAIL_LIMIT],
            sent=self.sent,
            reached=self.sent and taken,
        )


class Wire:
    """The shared keep-alive client of a process. Close it with :meth:`aclose`."""

    def __init__(self, config: HarnessConfig, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._config = config
        self._transport = transport
        self._restraint = RepeatGuard()
        self._open: httpx.AsyncBaseTransport | None = None
        self._answered_at = -math.inf

    async def exchange(
        self,
        operation: str,
        arguments: Mapping[str, Any] = MappingProxyType({}),
        *,
        headers: Mapping[str, str],
        item: str = "",
        slots: asyncio.Semaphore | None = None,
        anew: bool = False,
    ) -> Reply:
        """Make one request and read its answer, all within the operation's deadline.

        `arguments` go into the query of a GET, else into the body; `item` ends the path, and is percent-encoded.
        Waiting for one of the `slots` counts against the deadline. A request that the user asks for `anew` is sent even
        if it equals one that the daemon refused.
        """
        method, target = OPERATIONS[operation]["method"], OPERATIONS[operation]["path"] + item
        if method == "GET" and arguments:
            target = f"{target}?{httpx.QueryParams(arguments)}"
        try:
            content = b"" if method == "GET" else encode(without_tokens(dict(arguments), self._config.credentials))
        except (ValueError, TypeError, RecursionError) as error:
            return held_back(operation, f"the arguments are not JSON: {error}")
        identity = identity_of(method, target, content)
        loop = asyncio.get_running_loop()
        if anew:
            self._restraint.lift_refusal(identity)
        reason = self._restraint.reason_to_wait(identity, loop.time())
        if reason is not None:
            return held_back(operation, reason)
        began = loop.time()
        progress = _Progress(trusted=began - self._answered_at < KEPT_ALIVE_S)
        try:
            async with asyncio.timeout(self._config.timeout_s(operation)), slots or contextlib.nullcontext():
                response = await self._respond(method, target, headers, content, progress)
                reply = await _read(operation, response, progress)
        except TimeoutError:
            limit = self._config.timeout_s(operation)
            reply = progress.failed(operation, FailureClass.TIMEOUT, f"no complete answer within {limit:g} s")
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            failure = FailureClass.OFFLINE if progress.status is None else FailureClass.BODY_READ
            reply = progress.failed(operation, failure, with_cause(error))
        ended = loop.time()
        if reply.status is not None:
            self._answered_at = ended
        self._restraint.note(identity, reply, began, ended)
        return reply

    async def aclose(self) -> None:
        """Close the connections; the wire can be used again and then opens new ones."""
        if self._open is not None:
            await self._open.aclose()
            self._open = None

    async def _respond(
        self, method: str, target: str, headers: Mapping[str, str], content: bytes, progress: _Progress
    ) -> httpx.Response | PlainAnswer:
        if self._open is None:
            self._open = self._transport or transport_to(self._config.origin)
        url = _address(self._config.origin + target)
        sent = {**ALWAYS_SENT, **headers, **({"content-type": "application/json"} if content else {})}
        if self._transport is None and isinstance(self._open, PlainTransport):
            return await self._open.request(method, url, sent, content, progress.note)
        # Without httpx's client: its handling of redirects, cookies and credentials takes a third of an exchange.
        trace = {"trace": progress.note}
        request = httpx.Request(method, url, headers=sent, content=content or None, extensions=trace)
        return await self._open.handle_async_request(request)


async def _read(operation: str, response: httpx.Response | PlainAnswer, progress: _Progress) -> Reply:
    try:
        progress.status = response.status_code
        received = bytearray()
        async for piece in response.aiter_raw():
            received += piece
            if len(received) > BODY_LIMIT:
                raise httpx.ReadError(f"the answer is larger than {BODY_LIMIT} bytes")
        return _reply_of(operation, response.status_code, response.headers.get("retry-after"), bytes(received))
    finally:
        await response.aclose()


_address = lru_cache(maxsize=256)(httpx.URL)
"""Parses an address, cached: to parse one takes as long as the rest of a request."""


def transport_to(origin: str) -> httpx.AsyncBaseTransport:
    """The transport to the daemon at an origin. Proxies of the environment are not meant for a loopback daemon."""
    url = httpx.URL(origin)
    if url.scheme == "http":
        return PlainTransport(url.host, url.port or 80, CONNECTIONS)
    limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
    return httpx.AsyncHTTPTransport(trust_env=False, limits=limits)


def encode(body: Mapping[str, Any]) -> bytes:
    """`body` as ASCII JSON, so that even a lone surrogate in a text travels. Raises ValueError for NaN."""
    return json.dumps(body, allow_nan=False, separators=(",", ":")).encode("ascii")


def _reply_of(operation: str, status: int, retry_after: str | None, content: bytes) -> Reply:
    reply = Reply(operation, status=status, sent=True, reached=True, retry_after_s=_seconds(retry_after))
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
        failure = FailureClass.INVALID_JSON
    else:
        failure = FailureClass.SHAPE
    if status not in OK:
        error = value.get("error") if isinstance(value, dict) else None
        text = error if isinstance(error, str) else ""
        return replace(
            reply, failure=FailureClass.HTTP, detail=f"status {status} {text}".strip()[:DETAIL_LIMIT], error=text
        )
    if not isinstance(value, dict):
        return replace(reply, failure=failure, detail="the answer is not a JSON object")
    return replace(reply, body=value, is_object=True)


def _seconds(retry_after: str | None) -> float:
    try:
        seconds = float(retry_after or 0)
    except ValueError:
        return 0.0
    return min(seconds, RETRY_AFTER_LIMIT_S) if math.isfinite(seconds) and seconds > 0 else 0.0
