"""How many rows a recall of 0.109 brings: the embedded daemon counts as a real 0.109.15 did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Kit

#: Rows that match, and by limit how many of them a running daemon of the release brought.
MEASURED: dict[int, dict[Any, int]] = {
    4: {1000: 4, -1: 0, -3: 0},
    5: {1000: 5, -1: 0, -2: 0, -3: 1, -4: 0},
    12: {1000: 12, -3: 8, -4: 7, -5: 5, -8: 1, -10: 0},
    25: {1000: 20, 21: 20, 20: 20, 19: 19, -0.5: 0, -1.5: 0, -2.5: 17, -3.5: 16, "-3": 16, -10: 6, -14: 1, -15: 0},
}


def test_limit_counts_as_it_did(start: Callable[..., Kit]) -> None:
    """Limits above what there is, below zero, broken and as text."""
    kit = start(version="0.109.15")
    brought: dict[int, dict[Any, int]] = {}
    for number in range(1, max(MEASURED) + 1):
        kit.post("/api/memory/remember", {"content": f"Heron nest {number} stands by lake {chr(96 + number) * 4}."})
        for limit in MEASURED.get(number, ()):
            answer = kit.post("/api/memory/recall", {"query": "Heron", "limit": limit}).json()
            brought.setdefault(number, {})[limit] = len(answer["results"])
    assert brought == MEASURED
