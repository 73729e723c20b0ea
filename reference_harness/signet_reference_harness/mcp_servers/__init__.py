"""The MCP servers of a program: all started at once, their tools in one mapping, all ended at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from signet_reference_harness.daemon_client import AdapterClient
from signet_reference_harness.errors import ConfigError
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.mcp_servers.settings import Configured, Named, ServerSettings, registered
from signet_reference_harness.tools import ServedTool

if TYPE_CHECKING:
    from signet_reference_harness.mcp_servers.server import Server

MOST_NOTICES: Final = 100
"""In a program's life: a server that changes its tools all the time is not heard beyond that."""


class Servers:
    """A source of tools. Whatever a server does, nothing is raised: `notices` tell it."""

    def __init__(self) -> None:
        self.notices: list[str] = []
        self._servers: list[Server] = []

    @property
    def tools(self) -> Mapping[str, ServedTool]:
        """The tools of all servers as they stand now."""
        return {name: tool for server in self._servers for name, tool in server.tools.items()}

    async def start(self, *named: Named) -> None:
        """Connect these servers; of two with one name the first counts. To be called once, and then :meth:`aclose`."""
        for each in named:
            for notice in each.notices:
                self._tell(notice)
        wanted = [settings for each in named for settings in each.servers]
        if not wanted:
            return
        try:
            # Only now: the package takes longer to import than most turns take.
            from signet_reference_harness.mcp_servers import server, transports

            transports.import_package()
        except ConfigError as error:
            names = ", ".join(settings.name for settings in wanted)
            self._tell(f"The MCP servers {names} are not used: {error.message}; to use them: {error.remedy}.")
            return
        known: dict[str, ServerSettings] = {}
        for settings in wanted:
            made = server.Server(settings, self._tell)
            first = known.setdefault(made.label, settings)
            if first is settings:
                self._servers.append(made)
            else:
                self._tell(
                    f"The MCP server {made.label} of {settings.source} is not used: {first.source} has the name."
                )
        await asyncio.gather(*(each.start() for each in self._servers))

    async def aclose(self) -> None:
        """End the connections, and the processes of those that have one."""
        await asyncio.gather(*(server.aclose() for server in self._servers))
        self._servers.clear()

    def _tell(self, notice: str) -> None:
        if len(self.notices) < MOST_NOTICES:
            self.notices.append(notice)


async def start_for(servers: Servers, configured: Configured, client: AdapterClient, session: SessionIdentity) -> None:
    """Start what agent.yaml names, and, unless it says otherwise, what the registry of the session's daemon holds.

    A program runs in the session's project where nothing else is said.
    """
    named = [configured.named]
    if configured.with_registry:
        listed = registered(await client.registered_servers(session), client.config.origin)
        wanted = tuple(server for server in listed.servers if server.name not in configured.left_out)
        named.append(replace(listed, servers=wanted))
    placed = (
        replace(each, servers=tuple(replace(server, cwd=server.cwd or session.project) for server in each.servers))
        for each in named
    )
    await servers.start(*placed)
