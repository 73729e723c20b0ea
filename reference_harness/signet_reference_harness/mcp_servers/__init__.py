"""The MCP servers of a program: all started at once, their tools in one mapping, all ended at its end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any, Final

from pydantic import ValidationError

from signet_reference_harness.daemon_client import AdapterClient
from signet_reference_harness.errors import ConfigError, ToolFailedError
from signet_reference_harness.guardian import LAST_WORDS
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.mcp_servers import offers, transports
from signet_reference_harness.mcp_servers.settings import McpSettings, ServerList, ServerSettings, read_registry
from signet_reference_harness.tools import ServedTool

END_TIMEOUT_S: Final = 8.0
"""How long a server may take to end: two seconds each by itself, after SIGTERM and after SIGKILL."""
CANCEL_TIMEOUT_S: Final = 1.0
LAST_ANSWER_S: Final = 0.1
BETWEEN_LISTS_S: Final = 0.5
"""The shortest time between two lists of the tools of one server."""
MOST_PAGES: Final = 32
MOST_LISTED: Final = 2_000
"""How many tools of a server are read."""
LONGEST_REASON: Final = 600


class ConnectedServer:
    """A server that is connected, or could not be. `tell` gets notices for the model and the person."""

    def __init__(self, settings: ServerSettings, tell: Callable[[str], None]) -> None:
        self.settings = settings
        self.label = offers.server_label(settings.name)
        self.tools: Mapping[str, ServedTool] = {}
        self._offers: dict[str, offers.Offer] = {}
        self._tell = tell
        self._session: Any = None
        self._tail = transports.Tail()
        self._settled = asyncio.Event()
        """Set once the server has named its tools, or has failed."""
        self._stop = asyncio.Event()
        self._changed = asyncio.Event()
        self._closed = asyncio.Event()
        """Set once the other side has closed the connection."""
        self._task: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        """The exception that ended the connection, if there was one."""
        self._problem = ""
        """Why a server that runs cannot be used."""
        self._end_reported = False
        """Whether its end was reported."""

    async def start(self) -> None:
        """Connect. Return when the server has named its tools, or when its failure has been reported."""
        self._task = asyncio.create_task(self._run(), name=f"MCP server {self.label}")
        await self._settled.wait()

    async def aclose(self) -> None:
        """End the connection, and the server's process if it has one."""
        self._stop.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=END_TIMEOUT_S)
            self._task.cancel()

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """The result of a tool, by the server's own name of it. Raises ToolFailedError."""
        session = self._session
        if session is None:
            raise ToolFailedError(f"the MCP server {self.label} has ended")
        try:
            result = await self._answer(session, tool, arguments)
        except Exception as error:  # noqa: BLE001 - the package passes on what its parts raise
            if self._closed.is_set() and self._task is not None:
                await asyncio.wait([self._task], timeout=END_TIMEOUT_S)
                raise ToolFailedError(f"the MCP server {self.label} ended during the call: {self._reason()}") from None
            raise ToolFailedError(self._clean(_text_of(_first(error)), offers.LONGEST_ERROR)) from None
        answer = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        if answer.get("isError"):
            raise ToolFailedError(self._clean(offers.failure_of(answer), offers.LONGEST_ERROR))
        return offers.content_of(answer)

    async def _answer(self, session: Any, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call the tool. Raises the package's errors, and ConnectionError when the server is gone."""
        number: int | None = None

        async def ask() -> Any:
            nonlocal number
            # In its older range, the package does not cancel a call at the server. `_cancel` does, by this number.
            number = getattr(session, "_request_id", None)
            return await session.call_tool(tool, dict(arguments))

        asking, closing = asyncio.create_task(ask()), asyncio.create_task(self._closed.wait())
        try:
            await asyncio.wait({asking, closing}, return_when=asyncio.FIRST_COMPLETED)
            # An answer that comes with the end still counts.
            await asyncio.wait({asking}, timeout=0 if asking.done() else LAST_ANSWER_S)
            if asking.done():
                return asking.result()
            raise ConnectionError
        except asyncio.CancelledError:
            if number is not None:
                await self._cancel(session, number)
            raise
        finally:
            asking.cancel()
            closing.cancel()

    async def _cancel(self, session: Any, number: int) -> None:
        """Tell the server that the call is cancelled."""
        types = import_module("mcp.types")
        params = types.CancelledNotificationParams(requestId=number, reason="the harness waits no longer")
        notification = types.ClientNotification(types.CancelledNotification(params=params))
        with contextlib.suppress(Exception):
            await asyncio.wait_for(session.send_notification(notification), CANCEL_TIMEOUT_S)

    async def _run(self) -> None:
        try:
            async with contextlib.AsyncExitStack() as stack:
                session = await self._begin(stack)
                self._session = session
                self._settled.set()
                await self._watch_tools(session)
        except Exception as error:  # noqa: BLE001 - as above, in groups of exceptions too
            self._failure = _first(error)
        finally:
            self._session = None
            self._end()

    async def _begin(self, stack: contextlib.AsyncExitStack) -> Any:
        try:
            async with asyncio.timeout(self.settings.start_timeout_s):
                connection = transports.connection(self.settings, self._tail, self._give_up)
                read, write, *_ = await stack.enter_async_context(connection)
                session = await self._open_session(stack, read, write)
                await session.initialize()
                await self._list(session)
                return session
        except Exception as error:
            if isinstance(error, TimeoutError) or not self._closed.is_set():
                # The start need not wait for the end of an unusable server.
                self._problem = _explain(error, self.settings.start_timeout_s)
                self._end()
            raise

    async def _open_session(self, stack: contextlib.AsyncExitStack, read: Any, write: Any) -> Any:
        """A session of the package over the streams; notes when the other side closes them."""
        package = import_module("mcp")
        anyio = import_module("anyio")
        send, receive = anyio.create_memory_object_stream(0)

        async def pass_on() -> None:
            try:
                with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    async with send:
                        async for message in read:
                            await send.send(message)
            finally:
                self._closed.set()

        passing = asyncio.create_task(pass_on())
        stack.push_async_callback(read.aclose)
        stack.callback(receive.close)
        stack.callback(send.close)
        stack.callback(passing.cancel)
        client = import_module("mcp.types").Implementation(name="signet-reference-harness", version="1")
        session = package.ClientSession(receive, write, message_handler=self._receive_notification, client_info=client)
        return await stack.enter_async_context(session)

    async def _receive_notification(self, message: Any) -> None:
        """Handle a notification of the server. Only a change of its tools matters."""
        message = getattr(message, "root", message)
        if getattr(message, "method", None) == "notifications/tools/list_changed":
            self._changed.set()

    def _give_up(self, problem: str) -> None:
        """End the connection, and note `problem` as the reason unless the harness itself has ended it."""
        if not self._stop.is_set():
            self._problem = self._problem or problem
        self._closed.set()

    async def _watch_tools(self, session: Any) -> None:
        """List the tools anew whenever they change, until the server ends or is not needed any more."""
        while True:
            events = [asyncio.create_task(each.wait()) for each in (self._stop, self._closed, self._changed)]
            try:
                await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for event in events:
                    event.cancel()
            if self._stop.is_set() or self._closed.is_set():
                return
            self._changed.clear()
            before = self._offers
            try:
                async with asyncio.timeout(self.settings.timeout_s):
                    await self._list(session)
            except Exception as error:  # noqa: BLE001 - as above
                if not self._closed.is_set():
                    self._give_up(f"asked for its changed tools: {_explain(error, self.settings.timeout_s)}")
                return
            self._tell_changes(before)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), BETWEEN_LISTS_S)

    async def _list(self, session: Any) -> None:
        listed: list[dict[str, Any]] = []
        cursor: str | None = None
        types = import_module("mcp.types")
        for _ in range(MOST_PAGES):
            page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            answer = page.model_dump(mode="json", by_alias=True, exclude_none=True)
            listed += answer.get("tools", [])
            cursor = answer.get("nextCursor")
            if not cursor or len(listed) > MOST_LISTED:
                break
        wanted = self.settings.tools
        listed = [tool for tool in listed if wanted is None or tool.get("name") in wanted]
        before = self._offers
        self._offers, left_out = offers.offers(self.label, listed)
        if left_out and self._offers != before:
            self._tell(f"Of the MCP server {self.label} these are left out: {'; '.join(left_out)[:LONGEST_REASON]}.")
        unchanged = {name: tool for name, tool in self.tools.items() if self._offers.get(name) == before.get(name)}
        self.tools = {
            name: unchanged.get(name) or ServedTool(definition, partial(self.call, original), self.settings.timeout_s)
            for name, (original, definition) in self._offers.items()
        }

    def _tell_changes(self, before: Mapping[str, offers.Offer]) -> None:
        now = self._offers
        changes = {
            "new": sorted(now.keys() - before.keys()),
            "gone": sorted(before.keys() - now.keys()),
            "changed": sorted(name for name in now.keys() & before.keys() if now[name] != before[name]),
        }
        summary = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in changes.items() if names)
        if summary:
            self._tell(f"The MCP server {self.label} has changed its tools: {summary[:LONGEST_REASON]}.")

    def _end(self) -> None:
        """Remove the tools, and report the end unless the harness requested it."""
        removed, self.tools, self._offers = sorted(self.tools), {}, {}
        started, reported = self._settled.is_set(), self._end_reported
        self._settled.set()
        self._end_reported = True
        if self._stop.is_set() or reported:
            return
        why = self._reason()
        if started:
            tools = f" Its tools are gone: {', '.join(removed)[:LONGEST_REASON]}." if removed else ""
            self._tell(f"The MCP server {self.label} has ended: {why}.{tools}")
        else:
            self._tell(f"The MCP server {self.label} of {self.settings.source} cannot be used: {why}.")

    def _reason(self) -> str:
        """Why the server has ended: by the guardian's report and the server's last output, else by the exception."""
        words, _, end = self._tail.text.rpartition(LAST_WORDS)
        last = self._clean(words.strip().rpartition("\n")[2] if end else self._tail.text.rpartition("\n")[2], 300)
        why = f"it {end.strip()}" if end else "it closed the connection"
        if self._failure is not None and self.settings.url:
            why = _text_of(self._failure)
        return self._clean(self._problem or why, LONGEST_REASON) + (f" (its last words: {last})" if last else "")

    def _clean(self, text: str, most: int) -> str:
        return offers.as_shown(self.settings.scrub(text), most).strip().rstrip(".")


def _first(error: Exception) -> Exception:
    """The error, or the first of a group."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _explain(error: Exception, timeout_s: float) -> str:
    return f"it did not answer within {timeout_s:g} s" if isinstance(error, TimeoutError) else _text_of(_first(error))


def _text_of(error: Exception) -> str:
    if isinstance(error, ValidationError):
        problem = error.errors(include_url=False)[0]
        place = "/".join(map(str, problem["loc"]))
        return f"its answer breaks the protocol: {error.title}/{place}: {problem['msg']}"
    return str(error) or type(error).__name__


MOST_NOTICES: Final = 100
"""The most notices of one program; further ones are dropped."""


class McpServers:
    """A source of tools. No misbehaviour of a server raises an error here; `notices` report it."""

    def __init__(self) -> None:
        self.notices: list[str] = []
        self._servers: list[ConnectedServer] = []

    @property
    def tools(self) -> Mapping[str, ServedTool]:
        """The current tools of all servers."""
        return {name: tool for server in self._servers for name, tool in server.tools.items()}

    async def start(self, listed: ServerList) -> None:
        """Connect these servers. Of two with the same name the first is used. Call once, and then :meth:`aclose`."""
        for notice in listed.notices:
            self._tell(notice)
        wanted = listed.servers
        if not wanted:
            return
        try:
            transports.import_package()
        except ConfigError as error:
            names = ", ".join(settings.name for settings in wanted)
            self._tell(f"The MCP servers {names} are not used: {error.message}; to use them: {error.remedy}.")
            return
        known: dict[str, ServerSettings] = {}
        for settings in wanted:
            server = ConnectedServer(settings, self._tell)
            first = known.setdefault(server.label, settings)
            if first is settings:
                self._servers.append(server)
            else:
                self._tell(
                    f"The MCP server {server.label} of {settings.source} is not used: {first.source} has the name."
                )
        await asyncio.gather(*(each.start() for each in self._servers))

    async def aclose(self) -> None:
        """End the connections, and the processes of those that have one."""
        await asyncio.gather(*(server.aclose() for server in self._servers))
        self._servers.clear()

    def _tell(self, notice: str) -> None:
        if len(self.notices) < MOST_NOTICES:
            self.notices.append(notice)


async def start_for(servers: McpServers, mcp: McpSettings, client: AdapterClient, session: SessionIdentity) -> None:
    """Start the servers of agent.yaml and, unless it says otherwise, those of the daemon's registry.

    A program without a `cwd` runs in the session's project.
    """
    listed = ServerList()
    if mcp.with_registry:
        listed = read_registry(await client.registered_servers(session), client.config.origin)
    wanted = [*mcp.servers, *(server for server in listed.servers if server.name not in mcp.left_out)]
    placed = tuple(replace(server, cwd=server.cwd or session.project) for server in wanted)
    await servers.start(ServerList(placed, (*mcp.notices, *listed.notices)))
