"""The exchanges of a recording that is too large to be held: their places in its file, read when they are asked for."""

from __future__ import annotations

import os
import re
import weakref
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import IO, overload

from signet_conformance.errors import TraceError, printable
from signet_conformance.trace.lines import BrokenLineError, Lines
from signet_conformance.trace.model import Exchange

_PIECE_BYTES = 8 * 1024 * 1024
"""How much of the file is read at once where all exchanges are asked for in order; one exchange may be longer."""
_BEGINNING = re.compile(rb'\{"kind": ?"exchange", ?"seq": ?(\d{1,18}), ?"')
"""How recorders begin the line of an exchange. Any other line is taken to pieces to learn its number."""
MOST_NUMBER = 2**63 - 1
"""No exchange on a shelf has a larger number."""


def number_of(raw: bytes) -> int | None:
    """The number of the exchange that a whole line holds, by its first bytes; None where they do not tell."""
    beginning = _BEGINNING.match(raw)
    return int(beginning[1]) if beginning is not None and raw.endswith(b"}\n") else None


class Shelf(Sequence[Exchange]):
    """Exchanges in the order of their numbers, of which only places in a file are held: some 30 bytes each.

    Whoever takes one, a slice or all of them reads the file; what is broken in it raises TraceError then. The shelf
    closes its stream when nobody needs it any more.
    """

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream = stream
        weakref.finalize(self, stream.close)
        self._name = name
        self._offsets = array("q")
        self._lengths = array("l")
        self._numbers = array("q")
        self._lines = array("l")
        self._latest: tuple[int, Exchange] | None = None

    def put(self, number: int, offset: int, length: int, line: int) -> None:
        """Take an exchange in: its number, the place of its line in the file, and which line that is."""
        self._numbers.append(number)
        self._offsets.append(offset)
        self._lengths.append(length)
        self._lines.append(line)

    def sort(self) -> None:
        """Put what was taken in into the order of the numbers; a line is written when its exchange has ended."""
        numbers = self._numbers
        order = sorted(range(len(numbers)), key=numbers.__getitem__)
        for column in (self._offsets, self._lengths, self._lines, numbers):
            column[:] = array(column.typecode, [column[place] for place in order])

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> Exchange: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Exchange]: ...

    def __getitem__(self, place: int | slice) -> Exchange | Sequence[Exchange]:
        if isinstance(place, slice):
            lines = Lines()
            return tuple(self._read(each, lines) for each in range(*place.indices(len(self))))
        at = range(len(self))[place]
        # Whoever looks at one member of a body mostly looks at another one next.
        if self._latest is None or self._latest[0] != at:
            self._latest = at, self._read(at, Lines())
        return self._latest[1]

    def numbered(self, number: int) -> Exchange:
        """The exchange with a number that is on the shelf."""
        return self[bisect_left(self._numbers, number)]

    def line_of(self, number: int) -> int | None:
        """The line of the exchange with a number; None for a number that no exchange has."""
        place = bisect_left(self._numbers, number)
        return self._lines[place] if self._numbers[place : place + 1] == array("q", [number]) else None

    def __iter__(self) -> Iterator[Exchange]:
        for piece in self.pieces():
            yield from self[piece]

    def pieces(self) -> Iterator[slice]:
        """The whole in pieces, in order: slices that are small enough to be held."""
        first = size = 0
        for place, length in enumerate(self._lengths):
            size += length
            if size > _PIECE_BYTES and place > first:
                yield slice(first, place)
                first, size = place, length
        if first < len(self):
            yield slice(first, len(self))

    def _read(self, at: int, lines: Lines) -> Exchange:
        try:
            raw = self._bytes(self._offsets[at], self._lengths[at])
            entry = lines.entry(raw, self._lines[at])
            if isinstance(entry, Exchange) and entry.seq == self._numbers[at]:
                return entry
            raise BrokenLineError("the line is not what it was, or names its number twice")
        except (BrokenLineError, OSError) as broken:
            raise TraceError(
                str(broken),
                where=f"{printable(self._name, 400)}:{self._lines[at]}",
                remedy="take the line out, or record the session again",
            ) from None

    def _bytes(self, offset: int, length: int) -> bytes:
        if hasattr(os, "pread"):
            # Has no position, so that forks may read the same file at the same time.
            return os.pread(self._stream.fileno(), length, offset)
        self._stream.seek(offset)
        return self._stream.read(length)
