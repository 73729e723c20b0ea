"""The scripted model of `signet-harness llm`, started as a process: each request waits for the scenario's answer."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from signet_conformance.children.processes import LineProcess
from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.tools import read_content

START_S = 60.0
_PATIENCE_S = 30.0


class Asked:
    """One request to the model, as the server read it."""

    def __init__(self, asked: Mapping[str, Any]) -> None:
        self._messages: Sequence[Mapping[str, Any]] = asked["messages"]
        self.tools: Sequence[str] = asked["tools"]

    @property
    def injected(self) -> str:
        """What stands before the model beside the talk: every system message but the first, which opens it."""
        told = [message["text"] for message in self._messages if message["role"] == "system"]
        return "\n".join(told[1:])

    def tool_result(self) -> Mapping[str, Any]:
        """What the last tool gave back, as the answer to a step tells it."""
        last: Mapping[str, Any] = self._messages[-1] if self._messages else {"role": ""}
        if last["role"] != "tool":
            raise StepError("the program asked the model again without the result of its tool")
        text = last["text"]
        return {"text": text, "content": read_content(text), "is_error": text.startswith("Error")}


class ModelServer:
    """The server; `asked` hands on its requests in the order in which they came, `say` and `call` answer them."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", "-m", "signet_reference_harness.cli", "llm", "--until-stdin-closes"]
        self._process = LineProcess("the scripted model", command)
        try:
            self.url = str(self._process.receive(START_S)["url"])
        except BaseException:
            self._process.close()
            raise
        self._http = httpx.Client(base_url=self.url, trust_env=False, timeout=_PATIENCE_S)
        self._seen = 0

    def asked(self, timeout_s: float) -> Asked | None:
        """The next request, or None if none arrives in time."""
        asked = {"after": self._seen, "wait_s": timeout_s}
        for kept in self._http.get("/requests", params=asked).raise_for_status().json()["requests"]:
            self._seen = kept["number"]
            if kept["asked"] is not None:
                return Asked(kept["asked"])
        return None

    def say(self, text: str) -> None:
        """Answer the request that waits with words."""
        self._answer({"type": "text", "text": text})

    def call(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Answer the request that waits with the call of a tool."""
        self._answer({"type": "tool_call", "name": tool, "arguments": arguments})

    def _answer(self, part: Mapping[str, Any]) -> None:
        self._http.post("/turns", json={"turns": [{"content": [part]}]}).raise_for_status()

    def close(self) -> None:
        """End the server."""
        self._http.close()
        self._process.close()
