"""Choices from tables, spelled out from whole numbers, for strategies whose examples a seed alone must determine.

Hypothesis mixes constants that it finds in the modules around it into its draws of numbers and texts, so
that the sessions of a seed would depend on what else the process has imported. No constant lies where the
numbers here are drawn. They shrink towards 0, which spells the first entry of every table: the simplest one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

DETAIL = 1 << 24
"""How many details there are. Of larger numbers Hypothesis would prefer small ones."""
_FAR_FROM_CONSTANTS = 1 << 200

_BLOCKS = (
    0x0061, 0x00E0, 0x03B1, 0x0430, 0x05D0, 0x0627, 0x0915, 0x0E01,
    0x4E00, 0xAC00, 0x1F600, 0x0300, 0x2000, 0x1D400, 0x0000, 0x2028,
)  # fmt: skip
"""First code points of letters, scripts from right to left, combining marks, invisible and control characters."""
_BLOCK_SIZE = 32


def number(limit: int) -> st.SearchStrategy[int]:
    """A whole number from 0 to below `limit`, each as likely."""
    drawn = st.integers(_FAR_FROM_CONSTANTS, _FAR_FROM_CONSTANTS + limit - 1)
    return drawn.map(lambda value: value - _FAR_FROM_CONSTANTS)


def weighted(weights: Mapping[T, int]) -> Sequence[T]:
    """A table that holds each key as often as its weight says."""
    return [key for key, weight in weights.items() for _ in range(weight)]


class Digits:
    """A whole number, read as a row of choices. One number holds a whole intent, so that it is taken away as one."""

    def __init__(self, value: int) -> None:
        self._left = value

    def pick(self, table: Sequence[T]) -> T:
        """The entry of a table that the next digit names."""
        self._left, index = divmod(self._left, len(table))
        return table[index]

    def unicode_text(self) -> str:
        """Eight characters of one or several scripts, invisible and control characters too, no surrogates."""
        step, first, offset = self.pick(range(3)), self.pick(range(len(_BLOCKS))), self.pick(range(_BLOCK_SIZE))
        blocks = [_BLOCKS[(first + place * step) % len(_BLOCKS)] for place in range(8)]
        return "".join(chr(block + (offset + 5 * place) % _BLOCK_SIZE) for place, block in enumerate(blocks))
