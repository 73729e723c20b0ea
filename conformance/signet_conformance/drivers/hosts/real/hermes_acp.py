"""Hermes: `hermes acp`, the Agent Client Protocol on its streams, one process a session."""

from __future__ import annotations

import time
from typing import Any

from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.real.json_rpc import START_S, AcpSession

QUIT_S = 40.0
BUSY_S = 60.0
"""For so long a provider's own work is waited for when a turn's answer is out: a user who reads does that too."""


class HermesAcp(AcpSession):
    """A session of Hermes."""

    title = "Hermes"
    _answered_at: float | None = None

    def open(self) -> None:
        """Start it with a new session."""
        self._id = self._begin(self._start("acp"))

    def say(self, text: str) -> None:
        """Begin a turn."""
        self._answered_at = None
        super().say(text)

    def is_over(self) -> bool:
        """Whether the prompt was answered, and the provider has stored the turn and asked for the next one's memory.

        The program leaves that to threads, which the next step's fault would else meet or miss by chance.
        """
        if not super().is_over():
            return False
        if self._answered_at is None:
            self._answered_at = time.monotonic()
        return not self._launch.observed.busy or time.monotonic() > self._answered_at + BUSY_S

    def resume(self) -> None:
        """Start it with the session that was left."""
        params: dict[str, Any] = {"sessionId": self._id, "cwd": str(self._launch.cwd), "mcpServers": []}
        self._start("acp").ask("session/load", params, START_S)

    def clear(self) -> None:
        """Begin a new session in the same process."""
        self._id = self._begin(self._running)

    def end(self, *, for_good: bool = True) -> None:
        """End its input, and wait for its end; the session stays in its database."""
        del for_good
        rpc = self._leave()
        if rpc is not None and not rpc.process.end(QUIT_S):
            raise StepError(f"Hermes did not end within {QUIT_S:g} s after its input had ended{rpc.process.last_words}")
