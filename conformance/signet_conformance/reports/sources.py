"""Where in the connector's code an exchange was sent, by the marks of drivers that can tell.

A mark tells of requests by method and path, in their order, and the recorder numbers what reached it. Where as many
reached it as were sent between two such marks, or all were sent from one place, each is told; else nobody knows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from signet_conformance.errors import printable
from signet_conformance.facts import Call, Recording
from signet_conformance.trace.marks import SentMark

_PLACE = re.compile(r"(?P<file>.+?):(?P<line>[1-9]\d{0,8})(?::\d+)?")


class Source(Struct, frozen=True):
    """A line of the connector's code: its file, relative to where the run was started if it lies below."""

    file: str
    line: int

    @property
    def words(self) -> str:
        """The place as editors and terminals know it."""
        return f"{printable(self.file, 300)}:{self.line}"


def source_of(recording: Recording, seq: int) -> tuple[Source, ...]:
    """The places that led to an exchange, the innermost first; empty where nobody knows."""
    known = recording.memo.get(source_of)
    if known is None:
        known = recording.memo[source_of] = dict(_sources(recording))
    places: tuple[Source, ...] = known.get(seq, ())
    return places


def _sources(recording: Recording) -> Iterator[tuple[int, tuple[Source, ...]]]:
    calls = iter(sorted(recording.calls, key=lambda call: call.seq))
    call = next(calls, None)
    for mark in recording.marks(SentMark):
        told: dict[tuple[str, ...], list[tuple[Source, ...]]] = {}
        for method, path, *places in mark.requests:
            told.setdefault((method, path), []).append(tuple(_read(places)))
        reached: dict[tuple[str, ...], list[Call]] = {}
        while call is not None and call.seq < mark.seq:
            reached.setdefault((call.method, call.path), []).append(call)
            call = next(calls, None)
        for request, alike in reached.items():
            sent = told.get(request, [])
            if len(sent) == len(alike) or (len(sent) > len(alike) and len(set(sent)) == 1):
                yield from ((each.seq, places) for each, places in zip(alike, sent, strict=False))


def _read(places: list[str]) -> Iterator[Source]:
    here = Path.cwd()
    for place in places:
        if (read := _PLACE.fullmatch(place)) is not None:
            file = Path(os.path.normpath(read["file"]))
            yield Source(str(file.relative_to(here) if file.is_relative_to(here) else file), int(read["line"]))
