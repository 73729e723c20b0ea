"""A channel of a test's own: turns that it says, and the outputs that came."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from signet_reference_harness.channels import AgentOutput
from signet_reference_harness.channels.closing import Closing


class Lines(Closing):
    """Keeps what is sent, and lets a test wait for it."""

    kind = "lines"

    def __init__(self) -> None:
        super().__init__()
        self.outputs: list[AgentOutput] = []
        self._sent = asyncio.Event()

    async def send(self, output: AgentOutput) -> None:
        """Keep it."""
        self.outputs.append(output)
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
