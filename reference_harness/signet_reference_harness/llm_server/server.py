"""Serves a script on a port of the loopback; says when it is ready, and ends with its standard input or a signal."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from signet_reference_harness.errors import ConfigError
from signet_reference_harness.llm_server.app import ScriptedModelApp
from signet_reference_harness.llm_server.script import Script

HOST = "127.0.0.1"


def serve(script: Script, port: int = 0, *, until_stdin_closes: bool = False) -> None:
    """Serve until SIGTERM or SIGINT, or the end of standard input; port 0 is a free one.

    Prints one JSON line, `{"url": ...}`, when requests can be sent. Raises ConfigError when the port is taken, or when
    there is no standard output to say where.
    """
    if sys.stdout is None:
        raise ConfigError("standard output is closed", remedy="leave it open: the address is printed there")
    listener = _listen(port)
    asyncio.run(_serve(script, listener, until_stdin_closes=until_stdin_closes))


def _listen(port: int) -> socket.socket:
    # A socket that says that it is TCP: asyncio sends its small writes at once only then.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        why = "is in use by another program" if error.errno == errno.EADDRINUSE else f"cannot be opened: {error}"
        raise ConfigError(f"port {port} {why}", remedy="leave --port out, so that a free one is taken") from None
    return listener


async def _serve(script: Script, listener: socket.socket, *, until_stdin_closes: bool) -> None:
    config = uvicorn.Config(
        ScriptedModelApp(script), log_config=None, log_level="critical", access_log=False, lifespan="off",
        server_header=False, timeout_graceful_shutdown=1, ws="none",
    )  # fmt: skip
    server = _QuietServer(config, json.dumps({"url": f"http://{HOST}:{listener.getsockname()[1]}"}))

    def stop() -> None:
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    if until_stdin_closes:
        _watch_stdin(loop, stop)
    await server.serve(sockets=[listener])


def _watch_stdin(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    def drain() -> None:
        if not os.read(sys.stdin.fileno(), 65_536):
            loop.remove_reader(sys.stdin.fileno())
            stop()

    try:
        loop.add_reader(sys.stdin.fileno(), drain)
    except (AttributeError, OSError, ValueError):
        # A standard input that cannot be waited for, such as a file, is as good as closed.
        stop()


class _QuietServer(uvicorn.Server):
    """Prints a line when it is ready, and leaves the signals to `_serve`."""

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
