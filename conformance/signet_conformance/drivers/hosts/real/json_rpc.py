"""JSON-RPC over the streams of a program: questions and their answers, and what it says unasked."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.real.process import ProgramProcess, deadline_in

ANSWER_S = 200.0


class JsonRpc:
    """One program that speaks it. `heard` is told what comes unasked; a question of the program's is granted."""

    def __init__(self, name: str, process: ProgramProcess, heard: Callable[[Mapping[str, Any]], None]) -> None:
        self._name = name
        self.process = process
        self._heard = heard
        self._next = 0

    def ask(self, method: str, params: Mapping[str, Any], timeout_s: float | None = None) -> Mapping[str, Any]:
        """The result of a method. Raises StepError with the program's words when it refuses, or does not answer."""
        self.begin(method, params)
        timeout_s = ANSWER_S if timeout_s is None else timeout_s
        deadline = deadline_in(timeout_s)
        while time.monotonic() < deadline:
            said = self.process.receive(0.1)
            if said is None and self.process.ended:
                break
            if said is not None and said.get("id") == self._next and "method" not in said:
                if "error" in said:
                    raise StepError(f"{self._name} refused {method}: {str(said['error'])[:500]}")
                result = said.get("result")
                return result if isinstance(result, dict) else {}
            if said is not None:
                self._take(said)
        raise self.process.failure(f"{self._name} did not answer {method} within {timeout_s:g} s")

    def begin(self, method: str, params: Mapping[str, Any]) -> int:
        """Ask without waiting: the answer is heard, under the number that this returns."""
        self._next += 1
        self.process.send({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        return self._next

    def tell(self, method: str) -> None:
        """Say what needs no answer."""
        self.process.send({"jsonrpc": "2.0", "method": method})

    def listen(self) -> None:
        """Take what has come so far."""
        while (said := self.process.receive(0)) is not None:
            self._take(said)

    def _take(self, said: Mapping[str, Any]) -> None:
        if "method" in said and "id" in said:
            answer = {"decision": "accept", "action": "accept", "content": {}}
            self.process.send({"jsonrpc": "2.0", "id": said["id"], "result": answer})
        else:
            self._heard(said)
