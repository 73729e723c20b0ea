"""A harness that reaches the daemon only through an MCP server: Gemini, Forge, or any other client of MCP.

    python -m signet_conformance.drivers.hosts.mcp OPTIONS

The option `server` is the command of a server over standard input and output; each session starts its own. With the
option `install`, the connector's installer writes that command to the file of the harness that the face names. With
the option `url`, one server over streamable HTTP serves all sessions.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from signet_conformance.children.processes import ChildEndedError
from signet_conformance.drivers.hosts.installed import Installer, mcp_command
from signet_conformance.drivers.hosts.mcp_server import McpHttpServer, McpServer
from signet_conformance.drivers.hosts.protocol import LONGEST_MESSAGE, Peer, Projects, Skipped, StepError, with_programs
from signet_conformance.drivers.hosts.registry import accept_tools, misplaced_servers
from signet_conformance.drivers.hosts.server_process import ServerProcess
from signet_conformance.drivers.hosts.tools import use_tool

Server = McpServer | McpHttpServer
"""The server that a session speaks to, its own or a shared one."""


class McpHarness:
    """Performs tool steps; other steps never reach an MCP server."""

    def __init__(self, options: Mapping[str, Any], peer: Peer) -> None:
        self._face = options["face"]
        self._options = options
        self._env = {
            **os.environ,
            "PATH": with_programs(options.get("programs", {}), Path.home() / ".signet-conformance-bin"),
        }
        self._installed_for: object = None
        if "install" in options:
            self._install(self._env.get("SIGNET_AGENT_ID"))
        self._shared_server: ServerProcess | None = None
        if "url" in options:
            url = str(options["url"]).replace("{daemon}", os.environ.get("SIGNET_DAEMON_URL", ""))
            self._shared_server = ServerProcess("the MCP server", options.get("command", ()), url)
        self._names: Mapping[str, str] = options.get("tools", {})
        self._peer = peer
        self._servers: dict[str, Server] = {}
        self._tools: dict[str, Mapping[str, Any]] = {}
        self._failures: dict[str, str] = {}
        self._projects = Projects()

    def about(self) -> Mapping[str, Any]:
        """The harness that is played, and whether it finds the MCP server that the connector installed."""
        about = {"harness": self._face["harness"], "face": f"{self._face['harness']}-{self._face['version']}"}
        if "install" not in self._options:
            return about
        rows: list[Mapping[str, Any]] = [{"file": Path(self._face["mcp"]["file"]).name, "accepted": True}]
        try:
            mcp_command(Path.home(), self._face)
        except Skipped as reason:
            rows = [{**rows[0], "accepted": False, "words": str(reason)}]
            rows += misplaced_servers(Path.home(), self._face, self._options.get("capabilities", ()))
        return {**about, "installed": rows}

    def _install(self, agent: object) -> None:
        """Run the connector's installer for an agent, since it writes settings for one agent."""
        if agent == self._installed_for and agent is not None:
            return
        agent_env = {"SIGNET_AGENT_ID": agent} if isinstance(agent, str) else {}
        # The user has started the harness before, so its folder exists: connectors look for it.
        (Path.home() / self._face["mcp"]["file"]).parent.mkdir(parents=True, exist_ok=True)
        Installer(self._options["install"], self._options["module"]).run({**self._env, **agent_env})
        self._installed_for = agent

    def perform(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        """Perform one step."""
        kind, name = str(step.get("step")), str(step.get("session"))
        if kind in ("start", "resume") and name not in self._servers:
            self._failures.pop(name, None)
            try:
                self._servers[name] = self._connect(self._projects.folder(step.get("project")), step.get("agent"))
            except ChildEndedError as ended:
                # A harness goes on without a server that did not start.
                self._failures[name] = " ".join(f"{ended.message}; {ended.remedy}".split())[:LONGEST_MESSAGE]
                self._peer.tell_about({"unloaded": ended.message})
            except Skipped as reason:
                self._failures[name] = str(reason)
            else:
                self._tools[name], facts = accept_tools(self._servers[name].tools, self._face, self._names)
                self._peer.tell_about(facts)
                return {"tools": list(self._servers[name].tools)}
        if name in self._failures:
            raise Skipped(f"this session has no memory server: {self._failures[name]}")
        if name not in self._servers:
            raise StepError(f"session {name!r} is not known: start it first")
        server = self._servers[name]
        try:
            return self._perform_on(server, kind, step)
        finally:
            server.report_output(self._peer)

    def _perform_on(self, server: Server, kind: str, step: Mapping[str, Any]) -> Mapping[str, Any]:
        name = str(step.get("session"))
        if kind == "tool":
            result = use_tool(step, self._tools[name], self._names, server.call, self._peer.hand_over)
            return {**result, "calls": server.take_failures()}
        if kind == "prompt":
            self._peer.model_turn(name)
            return {"turn": True}
        if kind == "end":
            self._servers.pop(name).close()
            return {"ended": True}
        raise Skipped(f"a harness does not tell its memory server about {kind}")

    def _connect(self, folder: Path, agent: object) -> Server:
        if self._shared_server is None:
            # Each session has a server of its own, started for one agent.
            agent_env = {"SIGNET_AGENT_ID": agent} if isinstance(agent, str) else {}
            command: Sequence[str] = self._options.get("server", ())
            env: Mapping[str, str] = {}
            if "install" in self._options:
                self._install(agent)
                command, env = mcp_command(Path.home(), self._face)
            return McpServer(command, {**self._env, **agent_env, **env}, str(folder), self._face["harness"])
        return McpHttpServer(self._shared_server, self._face["harness"])

    def flush(self) -> None:
        """Do nothing: a tool call ends before its step is answered."""

    def close(self) -> None:
        """End every server."""
        with contextlib.ExitStack() as ends:
            if self._shared_server is not None:
                ends.callback(self._shared_server.close)
            for server in self._servers.values():
                ends.callback(server.close)


if __name__ == "__main__":
    Peer.play(McpHarness)
