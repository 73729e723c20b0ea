"""Where in the connector's code requests were sent, as the driver's answer to a step tells it: for a mark.

The answer may come from a driver program of somebody else, so nothing about its shape is taken for granted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from signet_conformance.errors import printable
from signet_conformance.trace.marks import SentMark

MAX_REQUESTS = 100
MAX_PLACES = 3
_MAX_TEXT = 500


def sent(index: int, result: Mapping[str, Any]) -> SentMark | None:
    """The mark for the step of that number; None where its answer tells of no request."""
    requests = tuple(islice(_requests(result.get("sent")), MAX_REQUESTS))
    return SentMark(index=index, requests=requests) if requests else None


def _requests(told: object) -> Iterator[tuple[str, ...]]:
    for request in told if isinstance(told, list) else ():
        if not isinstance(request, dict):
            continue
        method, path, places = request.get("method"), request.get("path"), request.get("at")
        at = [place for place in places if isinstance(place, str) and place] if isinstance(places, list) else []
        if isinstance(method, str) and isinstance(path, str) and at:
            yield tuple(printable(text, _MAX_TEXT) for text in (method, path, *at[:MAX_PLACES]))
