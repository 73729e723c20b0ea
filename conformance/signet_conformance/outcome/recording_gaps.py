"""Traffic between connector and daemon that recordings lack: not judged, and no breach of the connector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from signet_conformance.engine import JudgedTrace
from signet_conformance.trace import Gap
from signet_conformance.trace.model import NOT_CAPTURED, NOT_WRITTEN, OVER_LIMIT


class Lack(StrEnum):
    """The kinds of gaps, in the order in which they are counted for a reader."""

    CARRIED = "not carried"
    DECODED = "not decoded"
    CAPTURED = "not captured"
    KEPT = "not kept whole"
    WRITTEN = "not written"


_WORDS: Mapping[Lack, tuple[str, str]] = {
    Lack.CARRIED: ("request that the recorder could not pass on", "requests that the recorder could not pass on"),
    Lack.DECODED: ("body that could not be decoded", "bodies that could not be decoded"),
    Lack.CAPTURED: ("body that the capture does not hold", "bodies that the capture does not hold"),
    Lack.KEPT: ("body over the recorder's limit", "bodies over the recorder's limit"),
    Lack.WRITTEN: (
        "body missing because the recorder was killed",
        "bodies missing because the recorder was killed",
    ),
}


class LackAt(Struct, frozen=True):
    """A kind of gap in the requests of a route."""

    lack: Lack
    route: str


def lacks_of(judged: JudgedTrace) -> Counter[LackAt]:
    """Count the gaps of a judged trace. A request that was not carried counts if the daemon serves its route."""
    return Counter(_lacks(judged))


def _lacks(judged: JudgedTrace) -> Iterator[LackAt]:
    for gap in judged.trace.gaps:
        route = judged.recording.routes.find(gap.method, gap.path)
        lack = _lack_of(gap)
        if lack is not Lack.CARRIED or route is not None:
            operation = None if route is None else route.operation
            yield LackAt(lack, f"{gap.method} {operation or gap.path}")


def _lack_of(gap: Gap) -> Lack:
    if gap.side is None:
        return Lack.CARRIED
    known = {NOT_CAPTURED: Lack.CAPTURED, OVER_LIMIT: Lack.KEPT, NOT_WRITTEN: Lack.WRITTEN}
    return known.get(gap.why, Lack.DECODED)


def in_words(counts: Mapping[Lack, int]) -> Sequence[str]:
    """Count the gaps of each kind in words; empty without any."""
    numbers = ((lack, counts.get(lack, 0)) for lack in Lack)
    return [f"{number:,} {_WORDS[lack][number != 1]}" for lack, number in numbers if number]
