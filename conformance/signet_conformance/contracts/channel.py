"""Tests that every channel must pass (`signet_reference_harness.channels.Channel`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from signet_conformance.contracts.fakes import demand, run_to_end
from signet_reference_harness.channels import AgentOutput, Channel, ChannelClosedError, UserTurn

SAID = ("Which port? Grüße, 世界", "And since when?")
PIECES = ("The port ", "is 50051.")
PATIENCE_S = 10.0


def _in_a_new_channel(test: Callable[[Any, Channel], Awaitable[None]]) -> Callable[[Any], None]:
    """Make a test of a coroutine: it gets a new channel, which is released afterwards."""

    async def open_and_release(suite: ChannelContract) -> None:
        channel = await suite.opened()
        try:
            await test(suite, channel)
        finally:
            await suite.release(channel)

    def run(suite: ChannelContract) -> None:
        run_to_end(open_and_release(suite))

    # Not as functools.wraps does it: pytest would look for a fixture called channel.
    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


class ChannelContract:
    """Subclass it, and override `opened`, `say`, `shown` and `leave`; `release` if there is something to clean up.

    They are called in the event loop in which the channel is used.
    """

    async def opened(self) -> Channel:
        """A new channel whose other side is connected."""
        raise NotImplementedError("override opened(): a new channel of yours")

    async def say(self, channel: Any, text: str) -> None:
        """Let the other side say `text`, which is one line."""
        raise NotImplementedError("override say(channel, text): let the other side say a text")

    async def shown(self, channel: Any) -> str:
        """Everything that the channel has shown to the other side."""
        raise NotImplementedError("override shown(channel): what the other side has been shown")

    async def leave(self, channel: Any) -> None:
        """Let the other side disconnect."""
        raise NotImplementedError("override leave(channel): let the other side go")

    async def release(self, channel: Any) -> None:
        """Clean up after each test; the other side may have disconnected already."""

    @_in_a_new_channel
    async def test_it_says_its_kind(self, channel: Channel) -> None:
        """`kind` is a word such as terminal."""
        demand(isinstance(channel.kind, str) and channel.kind.strip(), f"kind is {channel.kind!r}, not a word")

    @_in_a_new_channel
    async def test_what_is_said_is_received_in_order(self, channel: Channel) -> None:
        """Each turn is a UserTurn with the words of the other side, as they were said."""
        for text in SAID:
            turn = await self._receive(channel, text)
            demand(isinstance(turn, UserTurn), f"receive() gave {type(turn).__name__}, not a UserTurn")
            demand(turn.content == text, f"{text!r} was said, and {turn.content!r} received")
            await channel.send(AgentOutput(content="Yes."))

    @_in_a_new_channel
    async def test_an_answer_is_shown_as_it_comes(self, channel: Channel) -> None:
        """Each piece is shown before the next is there, and the whole is shown once."""
        await self._receive(channel, SAID[0])
        await channel.send(AgentOutput(content=PIECES[0], streaming=True))
        await self._until_shown(channel, PIECES[0].strip(), "a piece of an answer")
        await channel.send(AgentOutput(content=PIECES[1], streaming=True))
        await channel.send(AgentOutput(content="".join(PIECES)))
        await self._until_shown(channel, "".join(PIECES), "an answer")
        times = _spaced(await self.shown(channel)).count("".join(PIECES))
        demand(times == 1, f"the answer is shown {times} times")

    @_in_a_new_channel
    async def test_why_there_is_no_answer_is_shown(self, channel: Channel) -> None:
        """The error of an output reaches the other side."""
        await self._receive(channel, SAID[0])
        await channel.send(AgentOutput(error="the model is away"))
        await self._until_shown(channel, "the model is away", "the error of an output")

    @_in_a_new_channel
    async def test_the_end_is_told_once(self, channel: Channel) -> None:
        """A callback of on_close is called once when the other side has gone, however often a turn is asked for."""
        calls: list[str] = []
        channel.on_close(lambda: calls.append("closed"))
        demand(not calls, "the handler was called though the channel is open")
        await self._close(channel)
        await _assert_refused(channel)
        demand(calls == ["closed"], f"the handler was called {len(calls)} times")

    @_in_a_new_channel
    async def test_a_late_handler_is_told_at_once(self, channel: Channel) -> None:
        """A callback given to on_close after the end is called at once."""
        await self._close(channel)
        calls: list[str] = []
        channel.on_close(lambda: calls.append("closed"))
        demand(calls == ["closed"], f"a handler that came after the end was called {len(calls)} times")

    @_in_a_new_channel
    async def test_nothing_is_received_after_the_end(self, channel: Channel) -> None:
        """A receive() that waits, and each one after it, raises ChannelClosedError."""
        waiting = asyncio.create_task(_assert_refused(channel))
        await asyncio.sleep(0)
        await self.leave(channel)
        await waiting
        await _assert_refused(channel)

    @_in_a_new_channel
    async def test_what_is_sent_after_the_end_is_dropped(self, channel: Channel) -> None:
        """Sending after the other side has gone raises nothing."""
        outputs = AgentOutput(content="The", streaming=True), AgentOutput(content="The port is 50051.")
        await self._receive(channel, SAID[0])
        await self.leave(channel)
        await _send_all(channel, *outputs)
        await _assert_refused(channel)
        await _send_all(channel, *outputs)

    async def _receive(self, channel: Channel, text: str) -> UserTurn:
        """Let the other side say `text`, and return the turn that is received."""
        await self.say(channel, text)
        try:
            return await asyncio.wait_for(channel.receive(), PATIENCE_S)
        except TimeoutError:
            demand(False, f"{text!r} was said, and receive() gave nothing within {PATIENCE_S:g} s")
        except ChannelClosedError:
            demand(False, f"{text!r} was said, and receive() says that the channel is closed")
        raise AssertionError

    async def _close(self, channel: Channel) -> None:
        gone = asyncio.Event()
        channel.on_close(gone.set)
        await self.leave(channel)
        # A channel may look for its other side only when it is asked for a turn.
        await _assert_refused(channel)
        try:
            await asyncio.wait_for(gone.wait(), PATIENCE_S)
        except TimeoutError:
            demand(False, f"the other side went, and what was given to on_close was not called within {PATIENCE_S:g} s")

    async def _until_shown(self, channel: Channel, text: str, what: str) -> None:
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        shown = await self.shown(channel)
        while text not in _spaced(shown):
            if asyncio.get_running_loop().time() > deadline:
                demand(False, f"{what}, {text!r}, was not shown; what was shown is {shown!r}")
            await asyncio.sleep(0.01)
            shown = await self.shown(channel)


def _spaced(text: str) -> str:
    """Replace each run of blanks and line ends by one blank, since a narrow window breaks lines."""
    return " ".join(text.split())


async def _send_all(channel: Channel, *outputs: AgentOutput) -> None:
    for output in outputs:
        try:
            await channel.send(output)
        except Exception as error:  # noqa: BLE001 - what a stranger's code raises is what is tested
            demand(False, f"send() after the end raised {type(error).__name__}: {error}")


async def _assert_refused(channel: Channel) -> None:
    try:
        turn = await asyncio.wait_for(channel.receive(), PATIENCE_S)
    except ChannelClosedError:
        return
    except TimeoutError:
        demand(False, f"receive() of a closed channel waits for more than {PATIENCE_S:g} s")
    except Exception as error:  # noqa: BLE001 - what a stranger's code raises is what is tested
        demand(False, f"receive() of a closed channel raised {type(error).__name__}: {error}, not ChannelClosedError")
    else:
        demand(False, f"receive() of a closed channel gave {turn!r}")
