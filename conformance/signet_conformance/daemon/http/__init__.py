"""The HTTP server of the daemon; its application and its table of routes are modules of this package."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from signet_conformance.daemon.http.app import DaemonApp, create_app
from signet_conformance.daemon.state import Daemon, DaemonSettings
from signet_conformance.errors import UsageError

__all__ = ["DaemonSettings", "serve"]


def serve(settings: DaemonSettings) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP, or until the end of standard input if `settings` say so.

    Prints one JSON line when requests can be sent: ``{"url", "version", "workspace"}``. Raises `UsageError` when the
    host, the port or the workspace cannot be used; nothing was changed then.
    """
    _check_host(settings)
    listener = _listen(settings)
    try:
        fixed_time = settings.clock_stands_at
        app = create_app(settings) if fixed_time is None else create_app(settings, lambda: fixed_time)
    except UsageError:
        listener.close()
        raise
    app.daemon.port = listener.getsockname()[1]
    asyncio.run(_serve(app, listener))


def _check_host(settings: DaemonSettings) -> None:
    try:
        local = settings.host == "localhost" or ipaddress.ip_address(settings.host).is_loopback
    except ValueError:
        local = False
    if not local and not settings.allow_remote:
        raise UsageError(
            f"{settings.host} can be reached from other machines, and the daemon runs commands for any caller",
            remedy="leave --host out, or add --allow-remote if that is what you want",
        )


def _listen(settings: DaemonSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # The protocol is named because asyncio sets TCP_NODELAY only on such a socket. Without that, each answer on a kept
    # connection waits 40 ms for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(128)
    except (OSError, OverflowError) as problem:
        listener.close()
        taken = isinstance(problem, OSError) and problem.errno == errno.EADDRINUSE
        raise UsageError(
            "the port is in use by another program" if taken else f"the port cannot be opened: {problem}",
            where=f"{settings.host}:{settings.port}",
            remedy="name another one: --port 0 takes a free one",
        ) from problem
    return listener


def server_config(app: ASGIApp) -> uvicorn.Config:
    """The server's configuration, which the kit's broken daemons use too."""
    return uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=2,
        ws="none",
        # The mode hybrid trusts the peer of the socket, whatever a header names.
        proxy_headers=False,
    )


async def _serve(app: DaemonApp, listener: socket.socket) -> None:
    daemon = app.daemon
    ready = {"url": _url(daemon), "version": daemon.behaviour.reported, "workspace": str(daemon.workspace)}
    server = _QuietServer(server_config(app), json.dumps(ready))

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            loop.add_signal_handler(number, server.stop)
    if daemon.settings.until_stdin_closes:
        try:
            loop.add_reader(sys.stdin.fileno(), _drain_stdin, server.stop)
        except (AttributeError, OSError, ValueError):
            # An event loop cannot wait for some kinds of standard input, such as a file: they count as closed.
            loop.call_soon(server.stop)
    await server.serve(sockets=[listener])
    await daemon.close()


def _url(daemon: Daemon) -> str:
    host = f"[{daemon.settings.host}]" if ":" in daemon.settings.host else daemon.settings.host
    return f"http://{host}:{daemon.port}"


class _QuietServer(uvicorn.Server):
    """A server that prints a line when it is ready, and leaves the signals to `serve`, which has its own handlers."""

    def __init__(self, config: uvicorn.Config, ready: str) -> None:
        super().__init__(config)
        self._ready = ready
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """End at once; uvicorn alone would notice up to a tenth of a second later."""
        self.should_exit = True
        self._stopped.set()

    async def main_loop(self) -> None:
        """Serve until `stop` is called."""
        ticking = asyncio.create_task(super().main_loop())
        await self._stopped.wait()
        ticking.cancel()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, then print the line."""
        await super().startup(sockets)
        sys.stdout.write(f"{self._ready}\n")
        sys.stdout.flush()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals."""
        yield


def _drain_stdin(stop: Callable[[], None]) -> None:
    if not os.read(sys.stdin.fileno(), 65_536):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        stop()
