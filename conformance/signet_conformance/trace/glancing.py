"""Glances at the lines of a large recording by several processes, each at a part of its file."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from msgspec import Struct, field

from signet_conformance.children.spread import begun, spread
from signet_conformance.trace.glance import Glance, glance
from signet_conformance.trace.sessions import Sessions

LEAST_BYTES = 32 * 1024 * 1024
"""At less than this one process has glanced before others have begun."""
_BUFFER_BYTES = 256 * 1024


class Glances(Struct):
    """What glances at neighbouring lines told, as another process can be told it.

    `begins` is where the first line begins, `ends` where the line begins that comes next: of the following part, or
    one that somebody has to look at closely.
    """

    begins: int
    ends: int
    numbers: array[int] = field(default_factory=lambda: array("q"))
    lengths: array[int] = field(default_factory=lambda: array("i"))
    sessions: Sessions = field(default_factory=Sessions)
    troubled: list[int] = field(default_factory=list)

    def put(self, told: Glance, length: int) -> None:
        """Take in what the next line tells."""
        self.sessions.put(told.names)
        if told.troubled:
            self.troubled.append(told.seq)
        self.numbers.append(told.seq)
        self.lengths.append(length)
        self.ends += length


class _Ahead(Struct):
    """What other processes do already: from where on in which file, and what ends them."""

    file: tuple[int, int, int]
    begins: int
    told: Iterator[Glances]
    processes: ExitStack


_begun_ahead: list[_Ahead] = []


@contextmanager
def glancing_ahead(stream: IO[bytes], begins: int, size: int, workers: int, longest: int) -> Iterator[None]:
    """Have other processes glance at a file in the meantime; `glanced` asks them in the block.

    For whoever has something else to do first, such as importing. All arguments are those of `glanced`.
    """
    parts = _parts(begins, size, workers)
    with ExitStack() as processes:
        told = processes.enter_context(begun(_glancing(stream, begins, longest), parts, workers))
        _begun_ahead.append(_Ahead(_identity(stream), begins, told, processes))
        try:
            yield
        finally:
            _begun_ahead.clear()


def glanced(stream: IO[bytes], begins: int, size: int, workers: int, longest: int) -> Sequence[Glances]:
    """What glances at the lines of a file tell, from the one that begins there on, in order and without a gap.

    They end before the first line that is longer than `longest` or that somebody has to look at closely. The position
    of the stream stays as it is. Linux alone has what this needs.
    """
    if _begun_ahead and (_begun_ahead[0].file, _begun_ahead[0].begins) == (_identity(stream), begins):
        ahead = _begun_ahead.pop()
        with ahead.processes:
            return list(_without_gap(ahead.told, begins))
    parts = _parts(begins, size, workers)
    return list(_without_gap(spread(_glancing(stream, begins, longest), parts, workers), begins))


def _identity(stream: IO[bytes]) -> tuple[int, int, int]:
    status = os.fstat(stream.fileno())
    return status.st_dev, status.st_ino, status.st_size


def _parts(begins: int, size: int, count: int) -> Sequence[tuple[int, int]]:
    step = (size - begins) // count + 1
    return [(first, min(first + step, size)) for first in range(begins, size, step)]


def _without_gap(parts: Iterable[Glances], at: int) -> Iterator[Glances]:
    for glances in parts:
        if glances.begins != at:
            break
        yield glances
        at = glances.ends


def _glancing(stream: IO[bytes], begins: int, longest: int) -> Callable[[tuple[int, int]], Glances]:
    return partial(_part, Path(f"/proc/self/fd/{stream.fileno()}"), begins, longest)


def _part(file: Path, foremost: int, longest: int, part: tuple[int, int]) -> Glances:
    """What the lines tell that begin in a part of the file, which is opened anew: forks share a stream's position."""
    first, beyond = part
    with file.open("rb", _BUFFER_BYTES) as lines:
        if first > foremost:
            # The line that begins before the part is another's.
            lines.seek(first - 1)
            first += len(lines.readline(longest + 1)) - 1
        else:
            lines.seek(first)
        glances = Glances(first, first)
        while glances.ends < beyond:
            raw = lines.readline(longest + 1)
            told = glance(raw) if len(raw) <= longest else None
            if told is None:
                break
            glances.put(told, len(raw))
    return glances
