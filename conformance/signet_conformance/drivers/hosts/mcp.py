"""A harness that reaches the daemon through a memory server only: Gemini, Forge, or any client of MCP.

    python -m signet_conformance.drivers.hosts.mcp FACE.json MODULE OPTIONS

MODULE is the server itself. Each session has a server of its own, as each start of such a harness has.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from signet_conformance.drivers.hosts.mcp_server import McpServer
from signet_conformance.drivers.hosts.places import Projects
from signet_conformance.drivers.hosts.protocol import Peer, Skipped, StepError
from signet_conformance.drivers.hosts.tools import use_tool


class McpHarness:
    """Performs tool steps; of everything else such a connector is told nothing."""

    def __init__(self, face: Mapping[str, Any], command: Sequence[str], options: Mapping[str, Any], peer: Peer) -> None:
        self._face = face
        self._command = command
        self._names: Mapping[str, str] = options.get("tools", {})
        self._peer = peer
        self._servers: dict[str, McpServer] = {}
        self._projects = Projects()

    def about(self) -> Mapping[str, Any]:
        """Which harness is played."""
        return {"harness": self._face["harness"], "face": f"{self._face['harness']}-{self._face['version']}"}

    def perform(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        """Perform one step."""
        kind, name = str(step.get("step")), str(step.get("session"))
        if kind in ("start", "resume") and name not in self._servers:
            folder = self._projects.folder(step.get("project"))
            self._servers[name] = McpServer(self._command, os.environ, str(folder), self._face["harness"])
            return {"tools": list(self._servers[name].tools)}
        if name not in self._servers:
            raise StepError(f"session {name!r} is not known: start it first")
        server = self._servers[name]
        if kind == "tool":
            return use_tool(step, server.tools, self._names, server.call)
        if kind == "prompt":
            self._peer.model_turn(name)
            return {"turn": True}
        if kind == "end":
            self._servers.pop(name).close()
            return {"ended": True}
        raise Skipped(f"a memory server is not told of {kind}")

    def flush(self) -> None:
        """Nothing is left: a tool call has ended before its step is answered."""

    def close(self) -> None:
        """End every server."""
        for server in self._servers.values():
            server.close()


def main(arguments: Sequence[str]) -> None:
    """Serve standard input."""
    face_path, module, text = arguments
    face, options = json.loads(Path(face_path).read_bytes()), json.loads(text)
    Peer().serve(lambda peer: McpHarness(face, [*options.get("server", ()), module], options, peer))


if __name__ == "__main__":
    main(sys.argv[1:])
