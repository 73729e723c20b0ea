"""pi and oh-my-pi: `--mode rpc`, one process a session, lines of JSON in both directions."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.real.conversation import Launch, LinesProcess
from signet_conformance.drivers.hosts.real.process import ProgramProcess, deadline_in
from signet_conformance.drivers.hosts.real.refusals import Refusal

START_S = 200.0


class PiRpc(LinesProcess):
    """A session of pi. Its RPC has no command that quits: the end of its input does."""

    title = "pi"

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch)
        self._file: str | None = None

    def open(self) -> None:
        """Start it, and wait for its state."""
        self._start()

    def resume(self) -> None:
        """Start it with the session's file."""
        self._start(*(("--session", self._file) if self._file is not None else ()))

    def say(self, text: str) -> None:
        """Prompt it."""
        self._over = False
        self._running.send({"id": "prompt", "type": "prompt", "message": text})

    def compact(self) -> None:
        """Have it compact."""
        self._over = False
        self._running.send({"id": "compact", "type": "compact"})

    def clear(self) -> None:
        """Begin a new session in the same process."""
        self._ask("new_session")
        self._learn()

    def _start(self, *more: str) -> None:
        launch = self._launch
        self._over = True
        self._process = ProgramProcess([*launch.command, "--mode", "rpc", *more], launch.env, launch.cwd)
        self._learn()

    def _learn(self) -> None:
        state = self._ask("get_state")
        self._file, self._id = state.get("sessionFile"), state.get("sessionId")

    def _ask(self, command: str) -> Mapping[str, Any]:
        self._running.send({"id": command, "type": command})
        deadline = deadline_in(START_S)
        while time.monotonic() < deadline and not self._running.has_ended:
            said = self._running.receive(0.25)
            if said is not None and said.get("type") == "response" and said.get("id") == command:
                if said.get("success") is not True:
                    raise StepError(f"pi refused {command}: {said.get('error')}")
                data = said.get("data")
                return data if isinstance(data, dict) else {}
            if said is not None:
                self._take(said)
        raise self._running.failure(f"pi did not answer {command} within {START_S:g} s")

    def _take(self, said: Mapping[str, Any]) -> None:
        kind = said.get("type")
        if kind == "agent_end" and not said.get("willRetry"):
            self._over = True
        elif kind == "response" and said.get("id") in ("prompt", "compact"):
            refused = said.get("success") is not True
            self._over = self._over or refused or said.get("id") == "compact"
            if refused:
                self._words.append(f"{said.get('command')}: {said.get('error')}")
        elif kind == "extension_error":
            self._words.append(f"extension_error: {said.get('event')}: {said.get('error')}")
            if said.get("event") in (None, "load"):
                self._refused.append(Refusal(str(said.get("extensionPath")), str(said.get("error"))))
