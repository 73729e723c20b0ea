"""Two sequences aligned: which item of one is which of the other, and what only one side has.

Never quadratic: common ends are stripped, items that occur once on both sides split the rest, and only a short
remainder is compared item by item with item.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_CELLS = 40_000
"""The largest remainder, as items of one side times items of the other, that is compared cell by cell."""
_WINDOW = 120
_NEVER = 1 << 30


@dataclass(frozen=True, slots=True)
class Item:
    """What alignment sees of an exchange: what it is, and what it says. Equal labels may match, equal items do."""

    label: str
    hint: str


Pair = tuple[int | None, int | None]
"""Indexes of an aligned pair; None where the side has no counterpart."""


def align(first: Sequence[Item], second: Sequence[Item]) -> list[Pair]:
    """The pairs, in an order that both sides keep. What only one side has stands where it happened."""
    return _gaps_late(list(_align(first, second, 0, len(first), 0, len(second))), first, second)


def _align(first: Sequence[Item], second: Sequence[Item], low: int, high: int, start: int, stop: int) -> Iterator[Pair]:
    while low < high and start < stop and first[low] == second[start]:
        yield low, start
        low, start = low + 1, start + 1
    tail = 0
    while low < high - tail and start < stop - tail and first[high - 1 - tail] == second[stop - 1 - tail]:
        tail += 1
    inner_high, inner_stop = high - tail, stop - tail
    if low == inner_high or start == inner_stop:
        yield from ((index, None) for index in range(low, inner_high))
        yield from ((None, index) for index in range(start, inner_stop))
    elif (inner_high - low) * (inner_stop - start) <= MAX_CELLS:
        yield from _cell_by_cell(first, second, low, inner_high, start, inner_stop)
    else:
        yield from _split(first, second, low, inner_high, start, inner_stop)
    yield from ((high - tail + index, stop - tail + index) for index in range(tail))


def _split(first: Sequence[Item], second: Sequence[Item], low: int, high: int, start: int, stop: int) -> Iterator[Pair]:
    anchors = _anchors(first, second, low, high, start, stop)
    if not anchors:
        yield from _in_windows(first, second, low, high, start, stop)
        return
    for index, other in [*anchors, (high, stop)]:
        yield from _align(first, second, low, index, start, other)
        if index < high:
            yield index, other
        low, start = index + 1, other + 1


def _anchors(
    first: Sequence[Item], second: Sequence[Item], low: int, high: int, start: int, stop: int
) -> list[tuple[int, int]]:
    """The longest run of items that occur once on each side and keep their order."""
    places = _unique(first, low, high)
    others = _unique(second, start, stop)
    candidates = [(index, others[item]) for item, index in places.items() if item in others]
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_, other) in enumerate(candidates):
        place = bisect_left(tops, other)
        before.append(ends[place - 1] if place else -1)
        if place == len(tops):
            tops.append(other)
            ends.append(number)
        else:
            tops[place], ends[place] = other, number
    chain: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chain.append(candidates[at])
        at = before[at]
    return chain[::-1]


def _unique(items: Sequence[Item], low: int, high: int) -> dict[Item, int]:
    seen: dict[Item, int] = {}
    repeated: set[Item] = set()
    for index in range(low, high):
        if items[index] in seen:
            repeated.add(items[index])
        seen[items[index]] = index
    return {item: index for item, index in seen.items() if item not in repeated}


def _in_windows(
    first: Sequence[Item], second: Sequence[Item], low: int, high: int, start: int, stop: int
) -> Iterator[Pair]:
    """A long remainder of repeats, a window at a time: of each window the first half is kept, the rest seen again."""
    while low < high and start < stop:
        last = high - low <= _WINDOW and stop - start <= _WINDOW
        window = _cell_by_cell(first, second, low, min(high, low + _WINDOW), start, min(stop, start + _WINDOW))
        half, other_half = low + _WINDOW // 2, start + _WINDOW // 2
        for index, other in window:
            yield index, other
            low = low if index is None else index + 1
            start = start if other is None else other + 1
            if not last and (low >= half or start >= other_half):
                break
    yield from ((index, None) for index in range(low, high))
    yield from ((None, index) for index in range(start, stop))


def _cell_by_cell(
    first: Sequence[Item], second: Sequence[Item], low: int, high: int, start: int, stop: int
) -> Iterator[Pair]:
    """The cheapest alignment: a gap costs 2, the same call with other content 1 unless that content only moved."""
    rows, columns = high - low, stop - start
    surplus = Counter(first[low:high])
    surplus.subtract(second[start:stop])

    def meeting(item: Item, other: Item) -> int:
        if item.hint == other.hint:
            return 0
        return 1 if surplus[item] > 0 > surplus[other] else _NEVER

    costs = [[0] * (columns + 1) for _ in range(rows + 1)]
    for column in range(columns + 1):
        costs[rows][column] = 2 * (columns - column)
    for row in range(rows - 1, -1, -1):
        item, line, below = first[low + row], costs[row], costs[row + 1]
        line[columns] = 2 * (rows - row)
        for column in range(columns - 1, -1, -1):
            best = min(below[column], line[column + 1]) + 2
            other = second[start + column]
            if item.label == other.label:
                best = min(best, below[column + 1] + meeting(item, other))
            line[column] = best
    row = column = 0
    while row < rows and column < columns:
        item, other = first[low + row], second[start + column]
        if item.label == other.label and costs[row][column] == costs[row + 1][column + 1] + meeting(item, other):
            yield low + row, start + column
            row, column = row + 1, column + 1
        elif costs[row][column] == costs[row + 1][column] + 2:
            yield low + row, None
            row += 1
        else:
            yield None, start + column
            column += 1
    yield from ((index, None) for index in range(low + row, high))
    yield from ((None, index) for index in range(start + column, stop))


def _gaps_late(pairs: list[Pair], first: Sequence[Item], second: Sequence[Item]) -> list[Pair]:
    """Of equal items in a row, one of which has no counterpart, the last is the one without: it came as a repeat."""
    for place in range(len(pairs) - 1):
        index, other = pairs[place]
        later, later_other = pairs[place + 1]
        if later is None or later_other is None:
            continue
        if index is None and other is not None and second[other] == second[later_other]:
            pairs[place], pairs[place + 1] = (later, other), (None, later_other)
        elif other is None and index is not None and first[index] == first[later]:
            pairs[place], pairs[place + 1] = (index, later_other), (later, None)
    return pairs
