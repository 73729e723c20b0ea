"""JSON-RPC over the streams of a program, and sessions of programs that speak the Agent Client Protocol with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.real.conversation import Launch
from signet_conformance.drivers.hosts.real.process import ProgramProcess, deadline_in
from signet_conformance.drivers.hosts.real.refusals import Refusal

ANSWER_S = 200.0


class JsonRpc:
    """One program that speaks it. `heard` gets unasked messages; a question of the program's is granted."""

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
            if said is None and self.process.has_ended:
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


START_S = 200.0


class AcpSession:
    """A session of such a program; its subclasses say which command speaks it, and what a resume and a new one are."""

    title = ""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._rpc: JsonRpc | None = None
        self._turn: int | None = None
        self._id: str | None = None
        self._refused: list[Refusal] = []

    @property
    def key(self) -> str | None:
        """The id of the session."""
        return self._id

    @property
    def words(self) -> Sequence[str]:
        """Its output beside the conversation."""
        return [*(self._rpc.process.words if self._rpc is not None else ())]

    @property
    def refusals(self) -> Sequence[Refusal]:
        """Its refusals so far."""
        return self._refused

    def say(self, text: str) -> None:
        """Begin a turn."""
        prompt = [{"type": "text", "text": text}]
        self._turn = self._running.begin("session/prompt", {"sessionId": self._id, "prompt": prompt})

    def is_over(self) -> bool:
        """Whether the prompt was answered."""
        self._running.listen()
        if self._turn is not None and self._running.process.has_ended:
            raise self._running.process.failure(f"{self.title} has ended")
        return self._turn is None

    def compact(self) -> None:
        """Type its own command."""
        self.say("/compact")

    def _leave(self) -> JsonRpc | None:
        """Its streams, for the last time; None where it does not run."""
        rpc, self._rpc = self._rpc, None
        self._turn = None
        return rpc

    @property
    def _running(self) -> JsonRpc:
        if self._rpc is None:
            raise StepError("no session is open: start it first")
        return self._rpc

    def _begin(self, rpc: JsonRpc) -> str:
        """Make a session, or take up the one that the command names; its id."""
        params: dict[str, Any] = {"cwd": str(self._launch.cwd), "mcpServers": []}
        return str(rpc.ask("session/new", params, START_S).get("sessionId"))

    def _start(self, *words: str) -> JsonRpc:
        launch = self._launch
        process = ProgramProcess([*launch.command, *words], launch.env, launch.cwd)
        self._rpc = rpc = JsonRpc(self.title, process, self._hear)
        rpc.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}}, START_S)
        return rpc

    def _hear(self, said: Mapping[str, Any]) -> None:
        if said.get("id") == self._turn and "method" not in said:
            self._turn = None
