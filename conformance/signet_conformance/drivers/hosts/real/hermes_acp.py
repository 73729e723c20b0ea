"""Hermes: `hermes acp`, the Agent Client Protocol on its streams, one process a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.real.conversation import Launch, Refusal
from signet_conformance.drivers.hosts.real.json_rpc import JsonRpc
from signet_conformance.drivers.hosts.real.process import ProgramProcess

START_S = 90.0
QUIT_S = 40.0


class HermesAcp:
    """A session of Hermes."""

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

    def open(self) -> None:
        """Start it with a new session."""
        self._begin(self._start())

    def resume(self) -> None:
        """Start it with the session that was left."""
        params: dict[str, Any] = {"sessionId": self._id, "cwd": str(self._launch.cwd), "mcpServers": []}
        self._start().ask("session/load", params, START_S)

    def say(self, text: str) -> None:
        """Begin a turn."""
        prompt = [{"type": "text", "text": text}]
        self._turn = self._running.begin("session/prompt", {"sessionId": self._id, "prompt": prompt})

    def is_over(self) -> bool:
        """Whether the prompt was answered."""
        self._running.listen()
        if self._turn is not None and self._running.process.ended:
            raise StepError(f"Hermes has ended{self._running.process.told}")
        return self._turn is None

    def compact(self) -> None:
        """Type its own command."""
        self.say("/compact")

    def clear(self) -> None:
        """Begin a new session in the same process."""
        self._begin(self._running)

    def end(self, *, for_good: bool = True) -> None:
        """End its input, and wait for its end; the session stays in its database."""
        del for_good
        rpc, self._rpc = self._rpc, None
        self._turn = None
        if rpc is not None and not rpc.process.end(QUIT_S):
            raise StepError(f"Hermes did not end within {QUIT_S:g} s after its input had ended{rpc.process.told}")

    @property
    def _running(self) -> JsonRpc:
        if self._rpc is None:
            raise StepError("no session is open: start it first")
        return self._rpc

    def _begin(self, rpc: JsonRpc) -> None:
        params: dict[str, Any] = {"cwd": str(self._launch.cwd), "mcpServers": []}
        self._id = str(rpc.ask("session/new", params, START_S).get("sessionId"))

    def _start(self) -> JsonRpc:
        launch = self._launch
        process = ProgramProcess([*launch.command, "acp"], launch.env, launch.cwd)
        self._rpc = rpc = JsonRpc("Hermes", process, self._hear)
        rpc.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}}, START_S)
        return rpc

    def _hear(self, said: Mapping[str, Any]) -> None:
        if said.get("id") == self._turn and "method" not in said:
            self._turn = None
