"""A recording channel that a test can wait on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from signet_conformance.contracts import RecordingChannel
from signet_reference_harness.channels import AgentOutput


class Lines(RecordingChannel):
    """Keeps what is sent, and lets a test wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self._sent = asyncio.Event()

    async def send(self, output: AgentOutput) -> None:
        """Keep it."""
        await super().send(output)
        self._sent.set()

    @property
    def answers(self) -> list[AgentOutput]:
        """The outputs that end an answer."""
        return [each for each in self.outputs if not each.streaming]

    async def wait_for(self, condition: Callable[[], object]) -> None:
        """Return once `condition` holds, which is looked at after each output."""
        async with asyncio.timeout(60):
            while not condition():
                self._sent.clear()
                await self._sent.wait()
