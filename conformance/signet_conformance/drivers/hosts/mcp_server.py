"""An MCP server over stdio, spoken to as a harness does: the few messages of a client that calls tools."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from signet_conformance.children.processes import ChildEndedError, LineProcess
from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.errors import printable

REVISION = "2025-06-18"
START_TIMEOUT_S = 90.0
"""What takes one second on a quiet machine took more than 30 on one with a load of 20."""
CALL_TIMEOUT_S = 90.0
_TELLING = re.compile(r"[\w.]*(Error|Exception)\b")
"""How a line begins that says why a program of Python or JavaScript ended."""


class McpServer:
    """One server process, initialised; `tools` are the schemas of what it offers, by name."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: str, client: str) -> None:
        self._next_id = 0
        self._process = LineProcess("the MCP server", command, env=env, cwd=cwd)
        try:
            about = {"name": client, "version": "1.0.0"}
            self._ask(
                "initialize", {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": about}, START_TIMEOUT_S
            )
            self._process.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            listed = self._ask("tools/list", {}, START_TIMEOUT_S).get("tools", [])
            named = [tool for tool in listed if isinstance(tool, dict) and "name" in tool]
            self.tools: Mapping[str, Any] = {str(tool["name"]): tool.get("inputSchema") for tool in named}
        except ChildEndedError as ended:
            self._process.close()
            said = [line for line in self._process.stderr if _TELLING.match(line)]
            # What is kept of standard error ends with a stack, where the cause is rarely last.
            why = f"{ended.message}: {printable(said[-1], 300)}" if said else ended.message
            raise ChildEndedError(why, where=ended.where, remedy=ended.remedy) from None
        except BaseException:
            self._process.close()
            raise

    def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Call a tool; its text, and whether the server calls it an error."""
        result = self._ask("tools/call", {"name": name, "arguments": arguments}, CALL_TIMEOUT_S)
        parts = result.get("content")
        texts = (
            [str(part.get("text", "")) for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        )
        return "\n".join(texts), result.get("isError") is True

    def close(self) -> None:
        """End the session with the server as a harness does that quits: by closing its pipes."""
        self._process.leave()

    def take_printed(self) -> str:
        """Return its output since the last call, as far as it has been read."""
        lines = self._process.stderr
        return "".join(f"{lines.popleft()}\n" for _ in range(len(lines)))

    def _ask(self, method: str, params: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]:
        self._next_id += 1
        self._process.send({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": dict(params)})
        deadline = self._process.deadline(timeout_s)
        while True:
            message = self._process.receive(deadline)
            if "method" in message:
                self._refuse(message)
            elif message.get("id") == self._next_id:
                if isinstance(message.get("error"), dict):
                    raise StepError(f"the MCP server answers {method}: {message['error'].get('message')}")
                result = message.get("result")
                return result if isinstance(result, dict) else {}

    def _refuse(self, request: Mapping[str, Any]) -> None:
        """A client without capabilities: a ping is answered, anything else that wants an answer is refused."""
        if "id" not in request:
            return
        answer: Mapping[str, Any] = {"error": {"code": -32601, "message": "the client offers nothing"}}
        if request["method"] == "ping":
            answer = {"result": {}}
        self._process.send({"jsonrpc": "2.0", "id": request["id"], **answer})
