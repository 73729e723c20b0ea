"""Finding any of many long strings inside many texts, in time linear in the texts."""

from __future__ import annotations

from collections.abc import Mapping

_FEW = 12


class Needles:
    """Strings with the number from which on each counts.

    A needle that occurs in a text covers at least one whole block, half as long as the shortest
    needle, that begins at a multiple of that length; so looking the text's blocks up among the
    needles' first offsets finds every candidate, however many needles there are. For few needles a
    plain search is faster.
    """

    def __init__(self, since: Mapping[str, int]) -> None:
        self._since = dict(sorted(since.items(), key=lambda item: item[1]))
        self._by_block: dict[str, list[tuple[int, str]]] = {}
        self._block = min(map(len, since), default=2) // 2
        if len(since) > _FEW:
            for needle in self._since:
                for offset in range(self._block):
                    self._by_block.setdefault(needle[offset : offset + self._block], []).append((offset, needle))

    def first_in(self, text: str, before: int) -> int | None:
        """The number of a needle known before `before` that the text contains; None when there is none."""
        if not self._by_block:
            return next((seq for needle, seq in self._since.items() if seq < before and needle in text), None)
        for start in range(0, len(text) - self._block + 1, self._block):
            for offset, needle in self._by_block.get(text[start : start + self._block], ()):
                if start >= offset and self._since[needle] < before and text.startswith(needle, start - offset):
                    return self._since[needle]
        return None
