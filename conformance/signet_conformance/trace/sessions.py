"""Which exchanges of a recording may belong to one session, by the keys that they name, in a number an exchange."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

_NO_SESSION = -1


class Sessions:
    """Exchanges in groups: those that name a key in common are in one, and so are those of two keys named in one."""

    def __init__(self) -> None:
        self.groups = array("l")
        """The group of each exchange; below zero where it names no key."""
        self._named: dict[str, int] = {}
        self._above = array("l")

    def put(self, names: Sequence[str]) -> None:
        """Take in the keys that the next exchange names."""
        if not names:
            self.groups.append(_NO_SESSION)
            return
        first = self._group(names[0])
        for name in names[1:]:
            one, another = self._top(first), self._top(self._group(name))
            self._above[max(one, another)] = min(one, another)
        self.groups.append(first)

    def put_all(self, later: Sessions) -> None:
        """Take in the keys that the next exchanges name, which were put in there."""
        known = array("l", [self._group(name) for name in later._named])
        for name, above in enumerate(later._above):
            if name != above:
                one, another = self._top(known[name]), self._top(known[above])
                self._above[max(one, another)] = min(one, another)
        self.groups.extend([group if group < 0 else known[group] for group in later.groups])

    def settle(self) -> None:
        """Say of each exchange which group it is in at last, now that all were put in."""
        self.groups[:] = array("l", [group if group < 0 else self._top(group) for group in self.groups])
        self._named.clear()
        self._above = array("l")

    def pieces(self, sizes: Sequence[int], piece: int, most: int) -> Sequence[Sequence[int]] | None:
        """The places of all exchanges, in pieces of groups that are about so large; None where a group is over `most`.

        An exchange that names no key goes with the one before it.
        """
        whole: dict[int, int] = {}
        for group, size in zip(self.groups, sizes, strict=True):
            if group >= 0:
                whole[group] = whole.get(group, 0) + size
        if max(whole.values(), default=0) > most:
            return None
        pieces: list[array[int]] = [array("l")]
        piece_of: dict[int, int] = {}
        held = at = 0
        for place, group in enumerate(self.groups):
            if group >= 0 and group not in piece_of:
                if held > piece:
                    pieces.append(array("l"))
                    held = 0
                piece_of[group] = len(pieces) - 1
                held += whole[group]
            if group >= 0:
                at = piece_of[group]
            elif at == len(pieces) - 1:
                held += sizes[place]
                if held > 2 * piece:
                    # Many that name no key, one after the other: no session would end the piece.
                    pieces.append(array("l"))
                    held, at = sizes[place], len(pieces) - 1
            pieces[at].append(place)
        return [_as_range(places) for places in pieces if places]

    def _group(self, name: str) -> int:
        group = self._named.setdefault(name, len(self._above))
        if group == len(self._above):
            self._above.append(group)
        return group

    def _top(self, group: int) -> int:
        above = self._above
        while above[group] != group:
            above[group] = above[above[group]]
            group = above[group]
        return group


def _as_range(places: array[int]) -> Sequence[int]:
    """Neighbours, as nearly all are where sessions follow each other, take no memory."""
    whole = range(places[0], places[-1] + 1)
    return whole if len(whole) == len(places) else places
