"""Things in order, as batches of bounded number and size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def batches(items: Iterable[Item], size_of: Callable[[Item], int], most: int, most_size: int) -> Iterator[list[Item]]:
    """At most `most` items a batch, and together no larger than `most_size`: a larger item stands alone."""
    batch: list[Item] = []
    held = 0
    for item in items:
        size = size_of(item)
        if batch and (len(batch) == most or held + size > most_size):
            yield batch
            batch, held = [], 0
        batch.append(item)
        held += size
    if batch:
        yield batch
