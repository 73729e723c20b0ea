"""Reach a server with the package `mcp`: over the standard streams of a process, or over streamable HTTP.

The package has two supported ranges. They differ in the modules of types, in the HTTP library, and in what a transport
yields beside its two streams. This module hides the differences.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, Final

from signet_reference_harness import guardian
from signet_reference_harness.errors import ConfigError, pip_install
from signet_reference_harness.mcp_servers.settings import ServerSettings

LONGEST_TAIL: Final = 4_096
"""How many bytes of the end of a server's standard error are kept."""
OnLoss = Callable[[str], None]
"""Called with the reason when a connection is lost."""
OWN_END_S: Final = 2.0
"""How long a server may take to end by itself once its input is closed."""
KILL_GRACE_S: Final = 1.0
"""How long it may take after SIGTERM. After two seconds the package kills the whole group, including the guardian."""


def import_package() -> Any:
    """Import the package `mcp`, which only servers need. Raises ConfigError saying what to install."""
    try:
        package = import_module("mcp")
        import_module("mcp.client.stdio")
        import_module("mcp.client.streamable_http")
    except ImportError as error:
        lacking = error.name or "mcp"
        problem = "is not installed" if lacking == "mcp" else f"cannot be imported: {lacking} is missing or too old"
        raise ConfigError(f"the package 'mcp' {problem}", remedy=pip_install("harness")) from None
    except Exception as error:
        broken = f"the package 'mcp' cannot be imported: {type(error).__name__}: {error}"
        raise ConfigError(broken[:300], remedy=f"{pip_install('harness')} --force-reinstall") from error
    _silence_logging(Path(str(package.__file__)).parent)
    return package


def _silence_logging(folder: Path) -> None:
    """Keep the log of the package in `folder` off the terminal, since it quotes output of servers."""
    logger = logging.getLogger("mcp")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    # Some messages are logged by the root logger.
    logging.getLogger().addFilter(lambda record: folder not in Path(record.pathname).parents)


class Tail(asyncio.Protocol):
    """The end of a process's standard error, which does not reach the terminal."""

    def __init__(self) -> None:
        self._kept = b""
        self.closed = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        """Append data, and keep the end."""
        self._kept = (self._kept + data)[-LONGEST_TAIL:]

    def connection_lost(self, _error: Exception | None) -> None:
        """Note that no process has the other end open."""
        self.closed.set()

    @property
    def text(self) -> str:
        """The kept text."""
        return self._kept.decode(errors="replace").strip()


def connection(server: ServerSettings, tail: Tail, on_loss: OnLoss) -> AbstractAsyncContextManager[Any]:
    """Connect to a server, and end its process on exit. Yields the package's two streams, perhaps with more.

    `on_loss` is called if an answer over HTTP breaks off: the package would wait for it for ever.
    """
    return _over_http(server, on_loss) if server.url else _over_stdio(server, tail)


@contextlib.asynccontextmanager
async def _over_stdio(server: ServerSettings, tail: Tail) -> AsyncIterator[Any]:
    stdio = import_module("mcp.client.stdio")
    read_end, write_end = os.pipe()
    try:
        reading, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: tail, os.fdopen(read_end, "rb", 0))
    except BaseException:
        os.close(write_end)
        raise
    try:
        with os.fdopen(write_end, "w") as errors:
            parameters = stdio.StdioServerParameters(
                command=sys.executable,
                args=["-I", "-S", guardian.__file__, str(OWN_END_S), str(KILL_GRACE_S), *server.command],
                env={name: secret.reveal() for name, secret in server.env.items()},
                cwd=server.cwd,
                encoding_error_handler="replace",
            )
            async with stdio.stdio_client(parameters, errlog=errors) as streams:
                errors.close()
                yield streams
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(tail.closed.wait(), 0.5)
    finally:
        reading.close()


@contextlib.asynccontextmanager
async def _over_http(server: ServerSettings, on_loss: OnLoss) -> AsyncIterator[Any]:
    transport = import_module("mcp.client.streamable_http")
    connect = transport.streamable_http_client
    # Newer releases of the package have a lower limit of their own.
    option = "max_sse_event_size"
    more = {option: guardian.LONGEST_LINE} if option in signature(connect).parameters else {}
    async with (
        _http_client(transport, server, on_loss) as client,
        connect(server.url, http_client=client, **more) as streams,
    ):
        yield streams


def _http_client(transport: Any, server: ServerSettings, on_loss: OnLoss) -> Any:
    """A client of the HTTP library that the package uses. It follows no redirect, and bounds what it reads."""
    http = import_module(type(transport.create_mcp_http_client()).__module__.partition(".")[0])

    class Bounded(http.AsyncByteStream):  # type: ignore[misc,name-defined] # the library is known only now
        def __init__(self, response: Any, *, is_answer: bool) -> None:
            self._stream = response.stream
            # A stream of events may go on for ever, but each of its lines ends.
            self._has_lines = response.headers.get("content-type", "").startswith("text/event-stream")
            self._is_answer = is_answer

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            try:
                async for piece in self._stream:
                    at = piece.rfind(b"\n") if self._has_lines else -1
                    size = size + len(piece) if at < 0 else len(piece) - at
                    if size > guardian.LONGEST_LINE:
                        raise http.ReadError(f"an answer has more than {guardian.LONGEST_LINE} bytes")
                    yield piece
            except http.HTTPError as error:
                if self._is_answer:
                    on_loss(str(error) or type(error).__name__)
                raise

        async def aclose(self) -> None:
            await self._stream.aclose()

    class Transport(http.AsyncHTTPTransport):  # type: ignore[misc,name-defined] # as above
        async def handle_async_request(self, request: Any) -> Any:
            is_answer = request.method == "POST"
            try:
                response = await super().handle_async_request(request)
            except http.HTTPError as error:
                if is_answer:
                    on_loss(str(error) or type(error).__name__)
                raise
            response.stream = Bounded(response, is_answer=is_answer)
            return response

    return http.AsyncClient(
        headers={name: secret.reveal() for name, secret in server.headers.items()},
        # A stream of events may be silent for long; callers that wait for an answer have deadlines of their own.
        timeout=http.Timeout(server.start_timeout_s, read=None),
        transport=Transport(),
        follow_redirects=False,
    )
