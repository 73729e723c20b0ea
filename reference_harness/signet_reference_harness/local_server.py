"""Serves an application on a port of this machine: prints when it is ready, ends on a signal, refuses foreign pages."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import json
import os
import re
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from signet_reference_harness.errors import ConfigError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK: Final = "127.0.0.1"
_LOCAL: Final = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?", re.IGNORECASE)
_PORT: Final = re.compile(r":\d+\Z")


async def serving(app: ASGIApp, port: int = 0, *, host: str = LOOPBACK, until_stdin_closes: bool = False) -> None:
    """Serve until SIGTERM or SIGINT, or the end of standard input; port 0 is a free one.

    Prints one JSON line, `{"url": ...}`, when requests can be sent. Raises ConfigError when the port is taken, when
    `host` is not an address of this machine, or when standard output is closed, so that the address cannot be printed.
    """
    if sys.stdout is None:
        raise ConfigError("standard output is closed", remedy="leave it open: the address is printed there")
    listener = _listen(host, port)
    config = uvicorn.Config(
        app, log_config=None, log_level="critical", access_log=False, lifespan="off",
        server_header=False, timeout_graceful_shutdown=1, ws="none",
    )  # fmt: skip
    shown = f"[{host}]" if ":" in host else host
    server = _QuietServer(config, json.dumps({"url": f"http://{shown}:{listener.getsockname()[1]}"}))

    def stop() -> None:
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    if until_stdin_closes:
        _watch_stdin(loop, stop)
    await server.serve(sockets=[listener])


async def answer_request(
    scope: Scope, receive: Receive, send: Send, respond: Callable[[Request], Awaitable[Response | None]]
) -> None:
    """Send the response that `respond` returns, if it returns one, unless the client has left."""
    if scope["type"] == "http":
        with suppress(ClientDisconnect):
            response = await respond(Request(scope, receive))
            if response is not None:
                await response(scope, receive, send)


def foreign(request: Request, *, any_host: bool = False) -> str | None:
    """Why a request is refused, which a browser sent for a page of another server; None if it is not.

    With `any_host`, the Host header may name something else than this machine's loopback. A page from such a host is
    foreign all the same, since the owner of any domain can point it here.
    """
    host = request.headers.get("host", "")
    if not any_host and not _LOCAL.fullmatch(host):
        return f"the host {host[:80]!r} is not this machine"
    own = f"http://{host}" if _LOCAL.fullmatch(host) or _is_address(host) else None
    origins = request.headers.getlist("origin")
    if any(origin != own for origin in origins) or request.headers.get("sec-fetch-site") == "cross-site":
        return "the request comes from a foreign page"
    return None


async def body_within(request: Request, most: int) -> bytes | None:
    """The body of a request; None when it is larger than `most` bytes. Raises ClientDisconnect."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            return None
    return bytes(body)


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value as a JSON answer, in ASCII, since texts may hold lone surrogates."""
    return Response(json.dumps(value), status, dict(headers or {}), "application/json")


def _is_address(host: str) -> bool:
    """Whether a Host header names an IP address."""
    try:
        return bool(ipaddress.ip_address(_PORT.sub("", host).removeprefix("[").removesuffix("]")))
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server at the address `host`; False unless it is an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(host).version == 6 else socket.AF_INET
    except ValueError:
        raise ConfigError(
            f"{host!r} is not an IP address", remedy=f"name an address of this machine, such as {LOOPBACK}"
        ) from None
    # The protocol is named because asyncio sets TCP_NODELAY only on such a socket.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRNOTAVAIL:
            remedy = f"name an address of this machine, such as {LOOPBACK}"
            raise ConfigError(f"{host} is not an address of this machine", remedy=remedy) from None
        why = "is in use by another program" if error.errno == errno.EADDRINUSE else f"cannot be opened: {error}"
        raise ConfigError(f"port {port} {why}", remedy="leave --port out, so that a free one is taken") from None
    return listener


def _watch_stdin(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    def drain() -> None:
        if not os.read(sys.stdin.fileno(), 65_536):
            loop.remove_reader(sys.stdin.fileno())
            stop()

    try:
        loop.add_reader(sys.stdin.fileno(), drain)
    except (AttributeError, OSError, ValueError):
        # An event loop cannot wait for some kinds of standard input, such as a file: they count as closed.
        stop()


class _QuietServer(uvicorn.Server):
    """Prints a line when it is ready, and leaves the signals to `serving`."""

    def __init__(self, config: uvicorn.Config, ready: str) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, then print the line."""
        await super().startup(sockets)
        sys.stdout.write(f"{self._ready}\n")
        sys.stdout.flush()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield
