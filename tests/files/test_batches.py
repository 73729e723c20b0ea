"""How things are put together into batches."""

from __future__ import annotations

import pytest

from signet_conformance.files.batches import batches


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([1, 1, 1], [[1, 1], [1]]),
        ([3, 2], [[3, 2]]),
        ([3, 3], [[3], [3]]),
        ([1, 9, 1], [[1], [9], [1]]),
        ([9, 0, 0], [[9], [0, 0]]),
    ],
)
def test_a_batch_has_at_most_two_items_of_five_together(sizes: list[int], expected: list[list[int]]) -> None:
    assert list(batches(sizes, lambda size: size, 2, 5)) == expected
