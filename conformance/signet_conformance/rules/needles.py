"""Finding any of many long strings inside many texts, in time linear in the texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, pairwise

_FEW = 12
_LONGEST_BLOCK = 24
_LAST_PIECES = 12
_MARKS = ("\n", ".", "x", "s ", "e ")
"""Where texts are taken to pieces, coarsest first: lines, sentences, a rare letter, and what most words end with."""


class Needles:
    """Strings with the number from which on each counts.

    Every text is looked at in blocks that begin at multiples of the block's length. A needle that
    occurs in a text covers a whole block at one of as many neighbouring offsets, wherever those lie
    in the needle; so these offsets of each needle are indexed, and looking the text's blocks up finds
    every candidate, however many needles there are. Most needles are found by a line or a phrase
    of theirs, which costs less; and for few needles a plain search is faster.

    `since` are needles with their numbers. Those of a recording that is too large to be held come as `elsewhere` in
    the order of their numbers: each with a place, which is a multiple of its number by PLACES and a little more, and at
    which `fetch` finds the needle again. Of those only the few are held that have no such line or phrase.
    """

    PLACES = 8

    def __init__(
        self,
        since: Mapping[str, int],
        elsewhere: Iterable[tuple[str, int]] = (),
        fetch: Callable[[int], str] | None = None,
    ) -> None:
        self._since = dict(sorted(since.items(), key=lambda item: item[1]))
        self._fetch = fetch
        self._least = min(map(len, since), default=0)
        self._by_piece: dict[str, dict[int, str | int | list[str | int]]] = {}
        known = iter(elsewhere)
        few = dict(islice(known, _FEW + 1))
        self._since.update({needle: place // self.PLACES for needle, place in few.items()})
        since = self._since
        if len(since) > _FEW:
            since = {n: seq for n, seq in since.items() if not self._indexed_by_piece(n, few.get(n, n))}
            since.update({n: p // self.PLACES for n, p in known if not self._indexed_by_piece(n, p)})
        if fetch is not None:
            self._since = since
        self._few = since if len(since) <= _FEW else {}
        self._shortest = min(map(len, since), default=2)
        self._block = size = max(1, min(self._shortest // 2, _LONGEST_BLOCK))
        self._by_block: dict[str, tuple[int, str]] = {}
        self._others: dict[str, list[tuple[int, str]]] = {}
        if len(since) > _FEW:
            for needle, differs in _where_each_differs(sorted(since)):
                # Many needles share their headings: blocks around what sets one apart have few candidates.
                first = max(0, min(differs - size + 1, len(needle) - 2 * size + 1))
                for offset in range(first, first + size):
                    block, place = needle[offset : offset + size], (offset, needle)
                    # Hardly any block belongs to two needles: a list for each would cost most of the time.
                    if self._by_block.setdefault(block, place) is not place:
                        self._others.setdefault(block, []).append(place)

    def _indexed_by_piece(self, needle: str, place: str | int) -> bool:
        """Index a needle by its longest piece between two marks: the same piece stands in a text that holds it."""
        self._least = min(self._least, len(needle)) if self._least else len(needle)
        for mark in _MARKS:
            if mark not in needle:
                continue
            # Injected texts differ least at their beginnings; their last pieces mostly do.
            longest = max(needle.rsplit(mark, _LAST_PIECES)[1:-1], key=len, default="")
            if len(longest) < _LONGEST_BLOCK:
                longest = max(needle.split(mark)[1:-1], key=len, default="")
            if len(longest) >= _LONGEST_BLOCK:
                # Hardly any piece belongs to two needles, and one that another only hashes like is looked at closely.
                pieces, key = self._by_piece.setdefault(mark, {}), hash(longest)
                if (others := pieces.setdefault(key, place)) is not place:
                    pieces[key] = [*(others if isinstance(others, list) else [others]), place]
                return True
        return False

    def first_in(self, text: str, before: int) -> int | None:
        """The number of a needle known before `before` that the text contains; None when it contains no needle."""
        if len(text) < self._least:
            return None
        for mark, pieces in self._by_piece.items():
            there = set(map(hash, text.split(mark)))
            if pieces.keys().isdisjoint(there):
                continue
            numbers = [
                seq
                for piece in pieces.keys() & there
                for seq, needle in self._needles_of(pieces[piece])
                if seq < before and needle() in text
            ]
            if numbers:
                return min(numbers)
        for needle, seq in self._few.items():
            if seq < before and needle in text:
                return seq
        if not self._by_block or len(text) < self._shortest:
            return None
        size = self._block
        starts = range(0, len(text) - size + 1, size)
        if self._by_block.keys().isdisjoint([text[start : start + size] for start in starts]):
            return None
        for start in starts:
            block = text[start : start + size]
            if block not in self._by_block:
                continue
            for offset, needle in (self._by_block[block], *self._others.get(block, ())):
                if start >= offset and self._since[needle] < before and text.startswith(needle, start - offset):
                    return self._since[needle]
        return None

    def _needles_of(self, places: str | int | list[str | int]) -> Iterator[tuple[int, Callable[[], str]]]:
        """The numbers of the needles at some places, each with what tells the needle."""
        for place in places if isinstance(places, list) else [places]:
            if isinstance(place, int) and self._fetch is not None:
                yield place // self.PLACES, partial(self._fetch, place)
            else:
                yield self._since[str(place)], partial(str, place)


def _where_each_differs(ordered: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Each of some sorted strings with the first offset at which it is unlike all others."""
    shared = [0, *(_shared_beginning(text, other) for text, other in pairwise(ordered)), 0]
    for place, needle in enumerate(ordered):
        yield needle, max(shared[place], shared[place + 1])


def _shared_beginning(text: str, other: str) -> int:
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if text.startswith(other[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low
