"""A stream of bytes cut into lines, however long they are."""

from __future__ import annotations

from collections.abc import Callable


class Lines:
    """Cuts a stream of chunks into lines; a line longer than `limit` bytes is handed on in pieces."""

    def __init__(self, take: Callable[[bytes], None], limit: int) -> None:
        self._take = take
        self._limit = limit
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Take the next chunk; an empty one is the end of the stream."""
        start = len(self._rest)
        self._rest += chunk
        while (end := self._rest.find(b"\n", start)) >= 0:
            self._hand_on(end + 1)
            start = 0
        while len(self._rest) >= self._limit or (self._rest and not chunk):
            self._hand_on(min(len(self._rest), self._limit))

    def _hand_on(self, size: int) -> None:
        line = bytes(self._rest[:size])
        del self._rest[:size]
        self._take(line)
