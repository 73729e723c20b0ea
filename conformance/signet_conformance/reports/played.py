"""The hosts that a run played for its connector, or launched, by its own marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from signet_conformance.errors import printable
from signet_conformance.trace import Trace
from signet_conformance.trace.marks import LoadedMark, marks_of


class Played(Struct, frozen=True):
    """One release of a harness that was played, and the later ones that the kit knew then.

    A `real` one is the program that people run, which the kit launched.
    """

    host: str
    release: str
    newer: Sequence[str]
    real: bool = False

    @property
    def words(self) -> str:
        """The same as a phrase."""
        newer = f", and knows of {', '.join(printable(release, 60) for release in self.newer)}" if self.newer else ""
        did = "launched the real" if self.real else "played"
        return f"the kit {did} {printable(self.host, 60)} {printable(self.release, 60)}{newer}"


def played(traces: Iterable[Trace]) -> Sequence[Played]:
    """The hosts that were played in some traces, each once."""
    loaded = (mark for trace in traces for mark in marks_of(trace, LoadedMark))
    told = {
        (mark.host, mark.release, mark.real): mark
        for mark in loaded
        if mark.host is not None and mark.release is not None
    }
    return [Played(str(host), str(release), mark.newer, real) for (host, release, real), mark in told.items()]
