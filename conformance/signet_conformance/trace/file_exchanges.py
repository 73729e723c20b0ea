"""The exchanges of a recording that is too large for memory: their offsets in its file, read on demand."""

from __future__ import annotations

import os
import weakref
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from typing import overload

from signet_conformance.errors import TraceError, printable
from signet_conformance.trace.glance import Glance, Glances, SessionGroups
from signet_conformance.trace.lines import BrokenLineError, LineReader
from signet_conformance.trace.model import Exchange
from signet_conformance.trace.recordings import OpenRecording

_PIECE_BYTES = 1024 * 1024
"""How much of the file is read at once where all exchanges are asked for in order; one exchange may be longer.

It is so little that the processor's cache still holds most of what one rule read when the next rule reads it.
"""
_SESSION_BYTES = 32 * 1024 * 1024
"""The largest session that is kept in memory as a whole while it is judged."""


class FileExchanges(Sequence[Exchange]):
    """Exchanges in the order of their numbers. Only their places in a file are in memory: some 30 bytes each.

    Taking one, a slice or all of them reads the file, and raises TraceError for a broken line. The stream is closed
    with the exchanges.
    """

    def __init__(self, recording: OpenRecording, name: str) -> None:
        self._recording = recording
        self._stream = recording.stream
        weakref.finalize(self, recording.stream.close)
        self._name = name
        self._offsets = array("q")
        self._lengths = array("i")
        self.numbers = array("q")
        """The numbers of the exchanges, in order."""
        self._lines = array("i")
        self._latest: tuple[int, Exchange] | None = None
        self._sessions = SessionGroups()
        self.troubled: list[int] = []
        """The numbers of the exchanges that ended with an error, or with a status of 500 or more."""

    def put(self, glance: Glance, offset: int, length: int, line: int) -> None:
        """Add an exchange: the glance at it, and the offset, length and number of its line in the file."""
        self._sessions.put(glance.names)
        if glance.troubled:
            self.troubled.append(glance.seq)
        self.numbers.append(glance.seq)
        self._offsets.append(offset)
        self._lengths.append(length)
        self._lines.append(line)

    def put_all(self, glances: Glances, line: int) -> None:
        """Add the glances at neighbouring lines; `line` is the number of the first one."""
        self._sessions.put_all(glances.sessions)
        self.troubled += glances.troubled
        self.numbers.extend(glances.numbers)
        self._offsets.extend(islice(accumulate(glances.lengths, initial=glances.begins), len(glances.lengths)))
        self._lengths.extend(glances.lengths)
        self._lines.extend(range(line, line + len(glances.numbers)))

    def sort(self) -> None:
        """Sort the exchanges by their numbers: in the file they are in the order in which they ended."""
        numbers = self.numbers
        self._sessions.settle()
        self.troubled.sort()
        order = sorted(range(len(numbers)), key=numbers.__getitem__)
        if order == list(range(len(numbers))):
            return
        for column in (self._offsets, self._lengths, self._lines, self._sessions.groups, numbers):
            column[:] = array(column.typecode, [column[place] for place in order])

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, place: int) -> Exchange: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Exchange]: ...

    def __getitem__(self, place: int | slice) -> Exchange | Sequence[Exchange]:
        if isinstance(place, slice):
            return self.at(range(*place.indices(len(self))))
        at = range(len(self))[place]
        # A caller that reads one member of a body mostly reads another one next.
        if self._latest is None or self._latest[0] != at:
            self._latest = at, self._read(at, LineReader())
        return self._latest[1]

    def place_of(self, number: int) -> int:
        """The place of the exchange with a number."""
        return bisect_left(self.numbers, number)

    def line_of(self, number: int) -> int | None:
        """The line of the exchange with a number; None for a number that no exchange has."""
        place = bisect_left(self.numbers, number)
        return self._lines[place] if self.numbers[place : place + 1] == array("q", [number]) else None

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

    def by_sessions(self) -> Sequence[Sequence[int]] | None:
        """All places in ascending order, in pieces that divide no session; None where a session is too large.

        Pieces are in the order of the sessions that begin first in them.
        """
        return self._sessions.pieces(self._lengths, _PIECE_BYTES, _SESSION_BYTES)

    def at(self, places: Sequence[int]) -> tuple[Exchange, ...]:
        """The exchanges at some places."""
        lines = LineReader()
        return tuple([self._entry(place, raw, lines) for place, raw in self._raw(places)])

    def _read(self, at: int, lines: LineReader) -> Exchange:
        ((_, raw),) = self._raw([at])
        return self._entry(at, raw, lines)

    def _raw(self, places: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """The lines at some places; those that stand side by side in the file are read at once."""
        run: list[int] = []
        for place in places:
            if run and self._offsets[run[-1]] + self._lengths[run[-1]] != self._offsets[place]:
                yield from self._run(run)
                run = []
            run.append(place)
        yield from self._run(run)

    def _run(self, places: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        if not places:
            return
        first, last = places[0], places[-1]
        begins = self._offsets[first]
        try:
            data = self._bytes(begins, self._offsets[last] + self._lengths[last] - begins)
        except OSError as failure:
            raise self._failed(first, failure) from None
        for place in places:
            at = self._offsets[place] - begins
            yield place, data[at : at + self._lengths[place]]

    def _entry(self, at: int, raw: bytes, lines: LineReader) -> Exchange:
        try:
            entry = lines.entry(raw, self._lines[at])
            if isinstance(entry, Exchange) and entry.seq == self.numbers[at]:
                return entry
            raise BrokenLineError("the line has changed, or names its number twice")
        except BrokenLineError as broken:
            raise self._failed(at, broken) from None

    def _failed(self, at: int, why: Exception) -> TraceError:
        return self._recording.damage(why, f"{printable(self._name, 400)}:{self._lines[at]}")

    def _bytes(self, offset: int, length: int) -> bytes:
        if hasattr(os, "pread"):
            # Has no position, so that forks may read the same file at the same time.
            return os.pread(self._stream.fileno(), length, offset)
        self._stream.seek(offset)
        return self._stream.read(length)
