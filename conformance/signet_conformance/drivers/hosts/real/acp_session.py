"""Programs that speak the Agent Client Protocol on their streams, one process a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.real.conversation import Launch
from signet_conformance.drivers.hosts.real.json_rpc import JsonRpc
from signet_conformance.drivers.hosts.real.process import ProgramProcess
from signet_conformance.drivers.hosts.real.refused import Refusal

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
        """What it says beside the talk."""
        return [*(self._rpc.process.words if self._rpc is not None else ())]

    @property
    def refused(self) -> Sequence[Refusal]:
        """What it has refused so far."""
        return self._refused

    def say(self, text: str) -> None:
        """Begin a turn."""
        prompt = [{"type": "text", "text": text}]
        self._turn = self._running.begin("session/prompt", {"sessionId": self._id, "prompt": prompt})

    def is_over(self) -> bool:
        """Whether the prompt was answered."""
        self._running.listen()
        if self._turn is not None and self._running.process.ended:
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
