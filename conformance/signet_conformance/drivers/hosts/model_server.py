"""The scripted model of `signet-harness llm`, started as a process: each request waits for the scenario's answer."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import httpx

from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.tools import read_content
from signet_conformance.drivers.model_process import ModelProcess

_PATIENCE_S = 30.0


class ModelRequest:
    """One request to the model, as the server read it."""

    def __init__(self, number: int, request: Mapping[str, Any]) -> None:
        self.number = number
        self._messages: Sequence[Mapping[str, Any]] = request["messages"]
        self.tools: Sequence[str] = request["tools"]

    @property
    def injected(self) -> str:
        """The text of all system messages but the first, which is the harness's own."""
        system = [message["text"] for message in self._messages if message["role"] == "system"]
        return "\n".join(system[1:])

    def tool_result(self) -> Mapping[str, Any]:
        """Return the newest tool result as the answer to a step; the program may have added text after it."""
        newest = takewhile(lambda message: message["role"] != "assistant", reversed(self._messages))
        results = [message for message in newest if message["role"] == "tool"]
        if not results:
            raise StepError("the program asked the model again without the result of its tool")
        text = results[0]["text"]
        return {"text": text, "content": read_content(text), "is_error": text.startswith("Error")}


class Model:
    """A scripted model at an address. `await_request` returns a waiting request; `say` and `call` answer it."""

    def __init__(self, url: str) -> None:
        self.url = url
        # Server and httpx both close connections that were idle for 5 s. A request at that moment would go into a
        # connection that the server is closing, so the client closes it earlier.
        limits = httpx.Limits(keepalive_expiry=1.0)
        # The model is on loopback, and loading the certificate store takes 20 ms.
        verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._http = httpx.Client(base_url=url, trust_env=False, timeout=_PATIENCE_S, limits=limits, verify=verify)
        requests = self._http.get("/requests").raise_for_status().json()["requests"]
        self._seen = int(requests[-1]["number"]) if requests else 0

    def play(self, rules: Sequence[Mapping[str, Any]]) -> None:
        """Let the server answer requests that meet one of the `rules`; all others wait."""
        script = {"format": "signet-llm/1", "when_out": "wait", "rules": [*rules]}
        self._http.put("/script", json=script).raise_for_status()

    def await_request(self, timeout_s: float) -> ModelRequest | None:
        """Return the next waiting request; None if none comes in time."""
        query = {"after": self._seen, "wait_s": timeout_s}
        for row in self._http.get("/requests", params=query).raise_for_status().json()["requests"]:
            self._seen = row["number"]
            if row["asked"] is not None and not str(row["turn"]).startswith("rules/"):
                return ModelRequest(self._seen, row["asked"])
        return None

    def say(self, request: ModelRequest, text: str) -> None:
        """Answer a waiting request with a text."""
        self._answer(request, {"type": "text", "text": text})

    def call(self, request: ModelRequest, tool: str, arguments: Mapping[str, Any]) -> None:
        """Answer a waiting request with a tool call."""
        self._answer(request, {"type": "tool_call", "name": tool, "arguments": arguments})

    def _answer(self, request: ModelRequest, part: Mapping[str, Any]) -> None:
        # Several sessions may wait: without the number the answer would go to the first of them.
        self._http.post("/turns", json={"turns": [{"content": [part]}], "request": request.number}).raise_for_status()

    def close(self) -> None:
        """Close the connections to the server."""
        self._http.close()


class ModelServer(Model):
    """A scripted model with a process of its own."""

    def __init__(self) -> None:
        self._process = ModelProcess()
        try:
            super().__init__(self._process.url)
        except BaseException:
            self._process.close()
            raise

    def close(self) -> None:
        """End the server."""
        super().close()
        self._process.close()
