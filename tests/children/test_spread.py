"""Work that is spread over forks comes back in order, and what goes wrong in one of them is told."""

from __future__ import annotations

import os
import signal

import pytest

from signet_conformance.children.spread import batches, spread
from signet_conformance.errors import KitError, TraceError
from tests.support.processes import children_of


def test_results_come_in_the_order_of_the_items() -> None:
    """Whoever is done first, the results stand in the order of the items, each made once and not here."""
    told = list(spread(lambda item: (item, os.getpid()), [str(number) for number in range(40)], 3))
    assert [item for item, _ in told] == [str(number) for number in range(40)]
    assert len({pid for _, pid in told} - {os.getpid()}) >= 1
    assert os.getpid() not in {pid for _, pid in told}


def test_one_worker_is_this_process() -> None:
    """Nothing is forked for one worker, or for one item."""
    assert list(spread(lambda _: os.getpid(), [1, 2], 1)) == [os.getpid()] * 2
    assert list(spread(lambda _: os.getpid(), [1], 4)) == [os.getpid()]


def test_error_of_the_kit_is_raised_as_it_is() -> None:
    """An error that the work raises on purpose reaches the caller, in its turn, with where and remedy."""

    def work(item: int) -> int:
        if item == 3:
            raise TraceError("broken", where="a:1", remedy="mend it")
        return item

    results = spread(work, range(9), 2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(TraceError) as caught:
        next(results)
    assert (caught.value.where, caught.value.remedy) == ("a:1", "mend it")


def test_any_other_error_is_the_kits() -> None:
    """What the work did not mean to raise is told as the kit's own failure."""
    with pytest.raises(KitError, match="ZeroDivisionError"):
        list(spread(lambda item: 1 // item, [1, 0, 1], 2))


def test_lost_worker_is_told() -> None:
    """A worker that is killed, as for want of memory, ends the work with an error and leaves no process."""
    before = children_of(os.getpid())
    with pytest.raises(KitError, match="was lost"):
        list(spread(lambda _: os.kill(os.getpid(), signal.SIGKILL), [1, 2], 2))
    assert children_of(os.getpid()) <= before


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
