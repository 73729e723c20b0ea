"""Server-sent events, as three of the four APIs stream them: the JSON of each, read from bytes as they come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

DONE: Final = b"[DONE]"
"""What stands in the place of JSON in the event after the last one, where an API has such an event."""
REST_S: Final = 0.2
"""How long an answer may take to end after that event."""


class EventReader:
    """Turns bytes into events but those of the names `ignored`. `done` says that the last one has come."""

    def __init__(self, ignored: frozenset[bytes] = frozenset()) -> None:
        self.done = False
        self._ignored = ignored
        self._rest = b""
        self._half_end = False
        """Whether the last piece ended with a carriage return, to which a line feed may belong."""
        self._name = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[Any]:
        """The values of the events that `piece` completes. Raises ValueError for what is not JSON."""
        if self._half_end:
            piece = piece.removeprefix(b"\n")
        self._half_end = piece.endswith(b"\r")
        lines = (self._rest + piece).splitlines(keepends=True)
        self._rest = lines.pop() if lines and not lines[-1].endswith((b"\n", b"\r")) else b""
        for line in lines:
            text = line.rstrip(b"\r\n")
            if text:
                self._field(text)
                continue
            name, data = self._name, b"\n".join(self._data)
            self._name, self._data = b"", []
            if data.startswith(DONE):
                self.done = True
                return
            if data and name not in self._ignored:
                yield _value(name, data)

    def _field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
        elif field == b"event":
            self._name = value.removeprefix(b" ")


def _value(name: bytes, data: bytes) -> Any:
    """The event's JSON, with its name as `type` where it has none."""
    value = json.loads(data)
    if name and isinstance(value, dict):
        value.setdefault("type", name.decode())
    return value


@asynccontextmanager
async def events_of(stream: Any, ignored: frozenset[bytes] = frozenset()) -> AsyncIterator[AsyncGenerator[Any, None]]:
    """The events of `stream`, which a vendor's package made, but those of the names `ignored`; it is closed at the end.

    The packages read events themselves, but some of their releases stop at the last event. Its connection is then of
    no use for the next request, since the end of the answer has not been read.
    """
    async with stream, aclosing(_events(stream.response.aiter_bytes(), ignored)) as events:
        yield events


async def _events(pieces: AsyncIterator[bytes], ignored: frozenset[bytes]) -> AsyncGenerator[Any, None]:
    reader = EventReader(ignored)
    async for piece in pieces:
        for event in reader.feed(piece):
            yield event
        if reader.done:
            await _read_out(pieces)
            return


async def _read_out(pieces: AsyncIterator[bytes]) -> None:
    """Read to the end of an answer of which nothing is missing any more."""
    try:
        async with asyncio.timeout(REST_S):
            async for _ in pieces:
                pass
    except Exception:  # noqa: BLE001  # the answer is whole, whatever the vendor's HTTP library says of its end
        return
