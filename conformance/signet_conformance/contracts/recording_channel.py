"""A channel whose other side is a test: turns are put into it, and what is sent is kept."""

from __future__ import annotations

from signet_reference_harness.channels import AgentOutput, UserTurn
from signet_reference_harness.channels.closing import Closing


class RecordingChannel(Closing):
    """`outputs` holds what was sent. Turns come by :meth:`say`, and :meth:`close` ends it."""

    kind = "recording"

    def __init__(self, *texts: str) -> None:
        """`texts` have been said already."""
        super().__init__()
        self.outputs: list[AgentOutput] = []
        for text in texts:
            self.say(text)

    def say(self, text: str) -> None:
        """The other side says something."""
        self.put(UserTurn(content=text))

    async def send(self, output: AgentOutput) -> None:
        """Keep it, unless the channel is closed."""
        if not self.closed:
            self.outputs.append(output)

    @property
    def shown(self) -> str:
        """What the other side has read: the pieces of answers, and errors."""
        return "".join(output.content if output.streaming else f"{output.error}\n" for output in self.outputs)
