"""The harness's own channels keep what every channel keeps."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
from pathlib import Path
from typing import Any

import pyte
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output.vt100 import Vt100_Output

from signet_conformance.contracts import ChannelContract
from signet_reference_harness.channels import Channel, UserTurn
from signet_reference_harness.channels.http import HttpChannel
from signet_reference_harness.channels.plain import PlainFace
from signet_reference_harness.channels.screen import Screen


class TestPlain(ChannelContract):
    """Lines of a pipe."""

    async def opened(self) -> Channel:
        """A channel whose lines come by a pipe."""
        self._source, self._pipe = os.pipe()
        self._out, self._err = io.StringIO(), io.StringIO()
        face = PlainFace(self._source, self._out, self._err, prompt=False)
        self._running = asyncio.create_task(face.run())
        return face

    async def say(self, _channel: Any, text: str) -> None:
        """Write a line."""
        os.write(self._pipe, f"{text}\n".encode())

    async def shown(self, _channel: Any) -> str:
        """Both streams."""
        return self._out.getvalue() + self._err.getvalue()

    async def leave(self, _channel: Any) -> None:
        """End the pipe."""
        os.close(self._pipe)
        self._pipe = -1

    async def release(self, channel: Any) -> None:
        """End it where it is open still."""
        if self._pipe >= 0:
            os.close(self._pipe)
        channel.close()
        await self._running


class TestScreen(ChannelContract):
    """A terminal with a line editor."""

    async def opened(self) -> Channel:
        """A channel on a terminal of 60 columns."""
        self._stack = contextlib.ExitStack()
        self._keys = self._stack.enter_context(create_pipe_input())
        self._written = io.StringIO()
        screen = Screen(
            status=lambda: ["atlas", "s-1", "scripted"],
            commands={},
            history=None,
            colour=False,
            terminal=(self._keys, Vt100_Output(self._written, lambda: Size(24, 60), term="xterm", enable_cpr=False)),
        )
        self._running = asyncio.create_task(screen.run())
        return screen

    async def say(self, _channel: Any, text: str) -> None:
        """Type it, and Enter."""
        self._keys.send_text(f"{text}\r")

    async def shown(self, _channel: Any) -> str:
        """What stands on the terminal."""
        screen = pyte.Screen(60, 24)
        pyte.Stream(screen).feed(self._written.getvalue().replace("\n", "\r\n"))
        return "\n".join(screen.display)

    async def leave(self, _channel: Any) -> None:
        """Press Ctrl-D."""
        self._keys.send_text("\x04")

    async def release(self, channel: Any) -> None:
        """Close it."""
        channel.close()
        await self._running
        self._stack.close()


def test_a_turn_is_received_though_its_history_cannot_be_written(tmp_path: Path) -> None:
    """The folder of the history has gone since the chat began."""

    async def work() -> None:
        history = tmp_path / "gone" / "history"
        history.parent.mkdir()
        output = Vt100_Output(io.StringIO(), lambda: Size(24, 60), term="xterm", enable_cpr=False)
        with create_pipe_input() as keys:
            screen = Screen(status=list, commands={}, history=history, colour=False, terminal=(keys, output))
            running = asyncio.create_task(screen.run())
            shutil.rmtree(history.parent)
            keys.send_text("Which port?\r")
            turn = await asyncio.wait_for(screen.receive(), 10.0)
            screen.close()
            await running
        assert turn.content == "Which port?"

    asyncio.run(work())


class TestHttp(ChannelContract):
    """A program that posts turns and reads outputs."""

    async def opened(self) -> Channel:
        """A channel that is read from its beginning."""
        channel = HttpChannel("t0ken")
        self._told: list[str] = []
        self._reading = asyncio.create_task(self._read(channel.add_reader()))
        return channel

    async def _read(self, reader: Any) -> None:
        while (told := await reader.take()) is not None:
            self._told.append((told["content"] if told["streaming"] else "") + told["error"])

    async def say(self, channel: Any, text: str) -> None:
        """As POST /turns does."""
        channel.enqueue(UserTurn(content=text))

    async def shown(self, _channel: Any) -> str:
        """The pieces and errors that were read."""
        return "".join(self._told)

    async def leave(self, channel: Any) -> None:
        """As POST /close does."""
        channel.close()

    async def release(self, channel: Any) -> None:
        """Close it."""
        channel.close()
        await self._reading
