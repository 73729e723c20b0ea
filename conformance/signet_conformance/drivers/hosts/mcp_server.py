"""A harness's client of an MCP server: over standard input and output, or over HTTP.

The client over HTTP is the official one, of the extra `harness`; it is imported when needed.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

from signet_conformance.children.processes import ChildEndedError, LineProcess
from signet_conformance.drivers.hosts.protocol import Peer, Skipped, StepError
from signet_conformance.drivers.hosts.server_process import ServerProcess
from signet_conformance.errors import printable
from signet_conformance.files.json_values import json_in_utf8, object_in, objects_in

if TYPE_CHECKING:
    from mcp import ClientSession

REVISION = "2025-06-18"
START_TIMEOUT_S = 90.0
"""Long: a start that takes one second took more than 30 on a machine with a load of 20."""
CALL_TIMEOUT_S = 90.0
_SHOWN = 80
_MOST_PAGES = 100
"""A bound, for servers whose list of tools never ends."""
_CLOSED_CODE = -32000
_CLOSED = f"MCP error {_CLOSED_CODE}: Connection closed"
"""What clients give the model as the result of a tool whose server has ended."""
_EXCEPTION = re.compile(r"[\w.]*(Error|Exception)\b")
"""The beginning of a line in which Python or JavaScript names an uncaught exception."""


class _RefusedError(StepError):
    """Raised when the server answers a request with an error, of which a harness tells its model."""


class McpServer:
    """One server process, initialised; `tools` are the schemas of its tools, by name."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: str, client: str) -> None:
        self._next_id = 0
        self._stray_line: str | None = None
        self._is_reported = False
        self._has_ended = False
        self._failures: list[Mapping[str, Any]] = []
        name = next(iter(command), "")
        if which(Path(cwd, name) if os.sep in name else name, path=env.get("PATH")) is None:
            # Perhaps the connector named a wrong one, or it is not on this machine: the session goes on without it.
            raise Skipped(f"the MCP server's program {printable(name, 100)} is not there: install it, or name another")
        self._process = LineProcess("the MCP server", command, env=env, cwd=cwd, passed_over=self._pass_over)
        try:
            about = {"name": client, "version": "1.0.0"}
            self._ask(
                "initialize", {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": about}, START_TIMEOUT_S
            )
            self._send({"method": "notifications/initialized"})
            self.tools: Mapping[str, Any] = dict(self._list_tools())
        except ChildEndedError as ended:
            self._process.close()
            raise ChildEndedError(self._why(ended), where=ended.where, remedy=ended.remedy) from None
        except BaseException:
            self._process.close()
            raise

    def _why(self, ended: ChildEndedError) -> str:
        """How the server ended, with the exception that it printed; in JavaScript a stack follows the exception."""
        exceptions = [line for line in self._process.stderr if _EXCEPTION.match(line)]
        return f"{ended.message}: {printable(exceptions[-1], 300)}" if exceptions else ended.message

    def _list_tools(self) -> Iterator[tuple[str, Any]]:
        """Yield name and schema of each tool, from all pages of the list."""
        params: Mapping[str, Any] = {}
        for _ in range(_MOST_PAGES):
            page = self._ask("tools/list", params, START_TIMEOUT_S)
            yield from (
                (str(tool["name"]), tool.get("inputSchema")) for tool in objects_in(page.get("tools")) if "name" in tool
            )
            if not isinstance(page.get("nextCursor"), str):
                return
            params = {"cursor": page["nextCursor"]}

    def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Call a tool; return its text, and whether the server marks it as an error, refuses it or has ended."""
        try:
            result = self._ask("tools/call", {"name": name, "arguments": arguments}, CALL_TIMEOUT_S)
        except _RefusedError as refusal:
            return str(refusal), True
        except ChildEndedError as ended:
            if not self._has_ended:
                self._failures.append({"event": f"tool {name}", "thrown": self._why(ended), "lost": False})
            self._has_ended = True
            return _CLOSED, True
        texts = [str(part.get("text", "")) for part in objects_in(result.get("content"))]
        return "\n".join(texts), result.get("isError") is True

    def take_failures(self) -> Sequence[Mapping[str, Any]]:
        """The call in which the server ended since the last time, as rows of `calls` in the answer to a step."""
        failures, self._failures = self._failures, []
        return failures

    def close(self) -> None:
        """End the session as a harness that quits: close the server's pipes."""
        self._process.leave()

    def report_output(self, peer: Peer) -> None:
        """Pass on the lines of standard error since the last call, and report the first stray line of output, once."""
        lines = self._process.stderr
        peer.print("".join(f"{lines.popleft()}\n" for _ in range(len(lines))))
        if self._stray_line is None or self._is_reported:
            return
        self._is_reported = True
        words = f"{printable(self._stray_line, _SHOWN)!r} is no JSON-RPC message: clients may pass over it"
        row = {"file": "the memory server's standard output", "accepted": False, "minor": True, "words": words}
        peer.tell_about({"installed": [row]})

    def _pass_over(self, line: str) -> None:
        if line.strip():
            self._stray_line = self._stray_line or line

    def _ask(self, method: str, params: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]:
        self._next_id += 1
        self._send({"id": self._next_id, "method": method, "params": dict(params)})
        deadline = self._process.deadline(timeout_s)
        while True:
            message = self._process.receive(deadline)
            if "jsonrpc" not in message:
                self._pass_over(json.dumps(message))
            if "method" in message:
                self._refuse(message)
            elif message.get("id") == self._next_id:
                if isinstance(message.get("error"), dict):
                    raise _RefusedError(f"the MCP server answers {method}: {message['error'].get('message')}")
                return object_in(message.get("result"))

    def _send(self, message: Mapping[str, Any]) -> None:
        self._process.send(json_in_utf8({"jsonrpc": "2.0", **message}))

    def _refuse(self, request: Mapping[str, Any]) -> None:
        """Answer a ping; refuse any other request, as a client without capabilities does."""
        if "id" not in request:
            return
        answer: Mapping[str, Any] = {"error": {"code": -32601, "message": "the client offers nothing"}}
        if request["method"] == "ping":
            answer = {"result": {}}
        self._send({"id": request["id"], **answer})


_LOOK_S = 0.25


class McpHttpServer:
    """One session of a client with the server, initialised; `tools` are the schemas of the server's tools, by name.

    Raises StepError when the server refuses, gives no answer in time, or ends.
    """

    def __init__(self, server: ServerProcess, client: str) -> None:
        from anyio.from_thread import start_blocking_portal

        self._server = server
        self._stack = ExitStack()
        try:
            self._portal = self._stack.enter_context(start_blocking_portal())
            session = self._portal.wrap_async_context_manager(_session(server.url, client))
            self._session: ClientSession = self._stack.enter_context(session)
            self.tools: Mapping[str, Any] = dict(self._list_tools())
        except BaseException as failure:
            self.close()
            raise _step_error(server.url, "initialize", failure) from failure

    def _list_tools(self) -> Iterator[tuple[str, Any]]:
        """Yield name and schema of each tool, from all pages of the list."""
        from mcp.types import PaginatedRequestParams

        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            params = PaginatedRequestParams(cursor=cursor)
            page = self._ask("tools/list", START_TIMEOUT_S, partial(self._session.list_tools, params=params))
            result = page.model_dump(by_alias=True)
            yield from ((tool["name"], tool.get("inputSchema")) for tool in result["tools"])
            cursor = result.get("nextCursor")
            if cursor is None:
                return

    def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Call a tool; return its text, and whether the server marks it as an error or refuses it."""
        try:
            result = self._ask("tools/call", CALL_TIMEOUT_S, lambda: self._session.call_tool(name, dict(arguments)))
        except _RefusedError as refusal:
            return str(refusal), True
        data = result.model_dump(by_alias=True)
        return "\n".join(str(part.get("text", "")) for part in data.get("content", ())), data.get("isError") is True

    def _ask(self, method: str, timeout_s: float, ask: Callable[[], Awaitable[Any]]) -> Any:
        # The client waits for ever if the server ends in the middle of an answer.
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
            raise _step_error(self._server.url, method, failure) from failure

    def take_failures(self) -> Sequence[Mapping[str, Any]]:
        """Return nothing: the end of a shared server breaks the scenario off."""
        return []

    def report_output(self, peer: Peer) -> None:
        """Do nothing: a shared server prints to this process's own output."""

    def close(self) -> None:
        """Leave the session; the server keeps running."""
        try:
            self._stack.close()
        except Exception:  # noqa: BLE001 - the server may be gone
            return


@asynccontextmanager
async def _session(url: str, name: str) -> AsyncIterator[ClientSession]:
    """The official client's session, initialised."""
    import anyio
    from mcp import ClientSession
    from mcp.client import streamable_http
    from mcp.types import Implementation

    # By its name: releases before 2 do not mark it as exported.
    http_client = vars(streamable_http)["create_mcp_http_client"](headers=_authorization())
    about = Implementation(name=name, version="1.0.0")
    async with (
        http_client,
        streamable_http.streamable_http_client(url, http_client=http_client) as streams,
        ClientSession(streams[0], streams[1], client_info=about) as session,
    ):
        # Around `initialize` only: anyio's scopes have to be left in the reverse order of entering them.
        with anyio.fail_after(START_TIMEOUT_S):
            await session.initialize()
        yield session


def _authorization() -> dict[str, str]:
    """The header with the user's token; empty without a token."""
    token = os.environ.get("SIGNET_TOKEN")
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def _step_error(url: str, method: str, failure: BaseException) -> BaseException:
    """Wrap a failure in a StepError; return a StepError, or what is not an Exception, unchanged."""
    if isinstance(failure, StepError) or not isinstance(failure, Exception):
        return failure
    cause: BaseException = failure
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    code = getattr(getattr(cause, "error", None), "code", None)
    if isinstance(code, int) and code != _CLOSED_CODE:
        return _RefusedError(f"the MCP server answers {method}: {cause}")
    if isinstance(cause, TimeoutError):
        return StepError(f"the MCP server at {url} did not answer {method} in time")
    return StepError(f"the MCP server at {url} answers {method}: {type(cause).__name__}: {cause}")
