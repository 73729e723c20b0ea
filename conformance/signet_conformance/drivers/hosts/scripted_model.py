"""A model server with the chat completions of OpenAI's interface, streamed: each answer is written by a scenario."""

from __future__ import annotations

import json
import queue
import threading
import uuid
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.tools import read_content

HELD_S = 110.0
"""How long a request waits for the scenario's answer; the program gives up after 120 s."""


class Asked:
    """One request to the model, which waits for its answer."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        messages = request.get("messages")
        self._messages: Sequence[Mapping[str, Any]] = messages if isinstance(messages, list) else ()
        tools = request.get("tools")
        self.tools = [tool["function"]["name"] for tool in tools] if isinstance(tools, list) else []
        self._delta: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()

    @property
    def injected(self) -> str:
        """What stands before the model beside the talk: every system message but the first, which opens it."""
        told = [str(message.get("content") or "") for message in self._messages if message.get("role") == "system"]
        return "\n".join(told[1:])

    def tool_result(self) -> Mapping[str, Any]:
        """What the last tool gave back, as the answer to a step tells it."""
        last = self._messages[-1] if self._messages else {}
        if last.get("role") != "tool":
            raise StepError("the program asked the model again without the result of its tool")
        text = str(last.get("content") or "")
        return {"text": text, "content": read_content(text), "is_error": text.startswith("Error")}

    def say(self, text: str) -> None:
        """Answer with words."""
        self._delta.put({"content": text})

    def call(self, tool: str, arguments: Any) -> None:
        """Answer with the call of a tool."""
        called = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": f"call_{uuid.uuid4().hex[:8]}", "type": "function", "function": called}
        self._delta.put({"tool_calls": [call]})

    def answer(self) -> Mapping[str, Any] | None:
        """The answer, once it is there; None when it did not come in time."""
        try:
            return self._delta.get(timeout=HELD_S)
        except queue.Empty:
            return None


class ScriptedModel:
    """The server, on loopback; `asked` hands on its requests in the order in which they came."""

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[Asked] = queue.SimpleQueue()
        requests = self._requests

        class Handler(BaseHTTPRequestHandler):
            """Answers each completion when the scenario has said what."""

            def do_POST(self) -> None:
                """One completion, as a stream of a single chunk."""
                asked = Asked(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                requests.put(asked)
                delta = asked.answer()
                self.send_response(200 if delta is not None else 503)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                if delta is not None:
                    chunk = {"choices": [{"delta": delta, "finish_reason": "stop"}]}
                    self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\ndata: [DONE]\n\n")

            def log_message(self, *_: Any) -> None:
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def asked(self, timeout_s: float) -> Asked | None:
        """The next request; None when there is none in time."""
        try:
            return self._requests.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()
