"""The suite for channels."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from signet_conformance.contracts import ChannelContract, RecordingChannel, channel
from signet_reference_harness.channels import AgentOutput, ChannelClosedError, UserTurn

from .suites import failures


class Suite(ChannelContract):
    """The suite, for the channel whose other side is a test, or one that breaks something."""

    def __init__(self, made: type[RecordingChannel] = RecordingChannel) -> None:
        self._made = made

    async def opened(self) -> Any:
        return self._made()

    async def say(self, channel: Any, text: str) -> None:
        channel.say(text)

    async def shown(self, channel: Any) -> str:
        shown: str = channel.shown
        return shown

    async def leave(self, channel: Any) -> None:
        channel.close()


class Unkind(RecordingChannel):
    kind = ""


class Backwards(RecordingChannel):
    def say(self, text: str) -> None:
        super().say(text[::-1])


class Texts(RecordingChannel):
    async def receive(self) -> Any:
        return (await super().receive()).content


class Deaf(RecordingChannel):
    def say(self, text: str) -> None:
        """Nothing is heard."""


class Late(RecordingChannel):
    @property
    def shown(self) -> str:
        return "".join(output.content for output in self.outputs if not output.streaming)


class Twice(RecordingChannel):
    @property
    def shown(self) -> str:
        return super().shown + "".join(output.content for output in self.outputs if not output.streaming)


class Discreet(RecordingChannel):
    @property
    def shown(self) -> str:
        return "".join(output.content for output in self.outputs if output.streaming)


class Insisting(RecordingChannel):
    heard: Callable[[], None] | None = None

    def on_close(self, handler: Callable[[], None]) -> None:
        self.heard = self.heard or handler
        super().on_close(handler)

    async def receive(self) -> UserTurn:
        if self.closed and self.heard:
            self.heard()
        return await super().receive()


class Forgetful(RecordingChannel):
    def on_close(self, handler: Callable[[], None]) -> None:
        if not self.closed:
            super().on_close(handler)


class Secretive(RecordingChannel):
    def on_close(self, handler: Callable[[], None]) -> None:
        """Nobody is told."""


class Waiting(RecordingChannel):
    async def receive(self) -> UserTurn:
        try:
            return await super().receive()
        except ChannelClosedError:
            await asyncio.Event().wait()
            raise


class Raising(RecordingChannel):
    async def receive(self) -> UserTurn:
        try:
            return await super().receive()
        except ChannelClosedError:
            raise EOFError from None


class Fragile(RecordingChannel):
    async def send(self, output: AgentOutput) -> None:
        if self.closed:
            raise BrokenPipeError("gone")
        await super().send(output)


BROKEN = [
    ("test_it_says_its_kind", Unkind),
    ("test_what_is_said_is_received_in_order", Backwards),
    ("test_what_is_said_is_received_in_order", Texts),
    ("test_what_is_said_is_received_in_order", Deaf),
    ("test_an_answer_is_shown_as_it_comes", Late),
    ("test_an_answer_is_shown_as_it_comes", Twice),
    ("test_why_there_is_no_answer_is_shown", Discreet),
    ("test_the_end_is_told_once", Insisting),
    ("test_the_end_is_told_once", Secretive),
    ("test_a_late_handler_is_told_at_once", Forgetful),
    ("test_nothing_is_received_after_the_end", Waiting),
    ("test_nothing_is_received_after_the_end", Raising),
    ("test_what_is_sent_after_the_end_is_dropped", Fragile),
]


def test_a_conforming_channel_passes() -> None:
    """Every test of the suite holds."""
    assert failures(Suite()) == {}


@pytest.mark.parametrize(("name", "broken"), BROKEN, ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_channel_is_caught_by_name(
    name: str, broken: type[RecordingChannel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test that is named for the breach fails, and says what it met."""
    monkeypatch.setattr(channel, "PATIENCE_S", 0.05)
    assert failures(Suite(broken)).get(name)
