"""An MCP server over streamable HTTP, called by the official client, which the extra `harness` installs."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, ExitStack
from typing import Any, Self

import anyio
from anyio.from_thread import start_blocking_portal

from signet_conformance.drivers.hosts.mcp_server import CALL_TIMEOUT_S, START_TIMEOUT_S
from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.server_process import ServerProcess

_LOOK_S = 0.25


class McpHttpServer:
    """One session of a client with the server, initialised; `tools` are the schemas of what it offers, by name.

    Raises StepError when the server refuses, gives no answer in time, or ends.
    """

    def __init__(self, server: ServerProcess, client: str) -> None:
        self._server = server
        self._stack = ExitStack()
        try:
            self._portal = self._stack.enter_context(start_blocking_portal())
            self._session = self._stack.enter_context(
                self._portal.wrap_async_context_manager(_Session(server.url, client))
            )
            listed = self._ask("tools/list", START_TIMEOUT_S, self._session.client.list_tools)
        except BaseException as failure:
            self.close()
            raise _error_words(server.url, "initialize", failure) from failure
        self.tools: Mapping[str, Any] = {
            tool.name: tool.model_dump(by_alias=True).get("inputSchema") for tool in listed.tools
        }

    def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Call a tool; its text, and whether the server calls it an error."""
        result = self._ask("tools/call", CALL_TIMEOUT_S, lambda: self._session.client.call_tool(name, dict(arguments)))
        said = result.model_dump(by_alias=True)
        return "\n".join(str(part.get("text", "")) for part in said.get("content", ())), said.get("isError") is True

    def _ask(self, what: str, timeout_s: float, ask: Callable[[], Awaitable[Any]]) -> Any:
        # The client waits on for a server that ends in the middle of an answer.
        future = self._portal.start_task_soon(ask)
        deadline = time.monotonic() + timeout_s
        try:
            while True:
                try:
                    return future.result(_LOOK_S)
                except TimeoutError:
                    self._server.demand_alive()
                    if future.done() or time.monotonic() > deadline:
                        raise
        except Exception as failure:
            future.cancel()
            raise _error_words(self._server.url, what, failure) from failure

    def take_printed(self) -> str:
        """Nothing: what a server prints that several sessions share is printed by this process."""
        return ""

    def close(self) -> None:
        """Leave the session; the server goes on."""
        try:
            self._stack.close()
        except Exception:  # noqa: BLE001 - a server that is gone cannot be taken leave of
            return


class _Session:
    """The official client's session, entered and left in one task."""

    def __init__(self, url: str, client: str) -> None:
        self._url = url
        self._name = client
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        from mcp import ClientSession
        from mcp.client import streamable_http
        from mcp.types import Implementation

        try:
            # By its name: releases before 2 do not mark it as exported.
            http_client = vars(streamable_http)["create_mcp_http_client"](headers=_authorization())
            http = await self._stack.enter_async_context(http_client)
            streaming = streamable_http.streamable_http_client(self._url, http_client=http)
            streams = await self._stack.enter_async_context(streaming)
            about = Implementation(name=self._name, version="1.0.0")
            session = ClientSession(streams[0], streams[1], client_info=about)
            self.client = await self._stack.enter_async_context(session)
            # Only around what enters nothing: scopes are left in the order in which they were entered.
            with anyio.fail_after(START_TIMEOUT_S):
                await self.client.initialize()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._stack.aclose()


def _authorization() -> dict[str, str]:
    """The token that the harness's user has set up; None without one."""
    token = os.environ.get("SIGNET_TOKEN")
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def _error_words(url: str, what: str, failure: BaseException) -> BaseException:
    """What went wrong, as an error of the step; any other exception is raised again."""
    if isinstance(failure, StepError) or not isinstance(failure, Exception):
        return failure
    cause: BaseException = failure
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    if isinstance(cause, TimeoutError):
        return StepError(f"the MCP server at {url} gave no answer to {what} in time")
    return StepError(f"the MCP server at {url} answers {what}: {type(cause).__name__}: {cause}")
