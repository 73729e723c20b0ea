"""The chat in plain lines keeps the contract that the suite for plug-ins proves."""

from __future__ import annotations

import asyncio
import io
import os
from typing import Any

from signet_conformance.contracts import ChannelContract
from signet_reference_harness.channels.terminal.plain import PlainFace


class TestPlainLines(ChannelContract):
    """The suite, with a pipe for what is typed."""

    async def opened(self) -> Any:
        """Lines from a pipe, what is shown in two texts."""
        read, typed = os.pipe()
        self._lines, self._typed = os.fdopen(read, "rb"), os.fdopen(typed, "wb", 0)
        self._out, self._err = io.StringIO(), io.StringIO()
        face = PlainFace(self._lines, self._out, self._err, prompt=False)
        self._reading = asyncio.create_task(face.run())
        return face

    async def say(self, channel: Any, text: str) -> None:
        """Type a line."""
        del channel
        self._typed.write(f"{text}\n".encode())

    async def shown(self, channel: Any) -> str:
        """Both texts."""
        del channel
        return self._out.getvalue() + self._err.getvalue()

    async def leave(self, channel: Any) -> None:
        """The end of what is typed."""
        del channel
        self._typed.close()

    async def release(self, channel: Any) -> None:
        """Close both ends."""
        self._typed.close()
        channel.close()
        await self._reading
        self._lines.close()
