"""Spread work on many items, or on batches of them, over worker processes.

On Linux they are forks, which have the modules that this process has imported.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

from signet_conformance.errors import KitError, SignetConformanceError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Item = TypeVar("Item")
Result = TypeVar("Result")

NumberedResult = tuple[int, Result | SignetConformanceError]
"""The number of an item, and its result or the error that its work raised."""


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def batches(items: Iterable[Item], size_of: Callable[[Item], int], most: int, most_size: int) -> Iterator[list[Item]]:
    """Yield batches of at most `most` items and `most_size` together; a larger item is a batch of its own."""
    batch: list[Item] = []
    size_so_far = 0
    for item in items:
        size = size_of(item)
        if batch and (len(batch) == most or size_so_far + size > most_size):
            yield batch
            batch, size_so_far = [], 0
        batch.append(item)
        size_so_far += size
    if batch:
        yield batch


class LostWorkerError(KitError):
    """A worker ended while it worked on the item `number`."""

    def __init__(self, number: int, status: int | None) -> None:
        super().__init__(
            f"a worker process was lost (status {status})",
            remedy="if its memory was not enough, run it again with --workers 1",
        )
        self.number = number
        self.status = status


class Workers(Generic[Item, Result]):
    """Processes that do `work` until the block ends. The caller must have no other thread when it makes them.

    Items and results are pickled; where workers cannot be forks, so is `work`.
    """

    def __init__(self, work: Callable[[Item], Result], count: int) -> None:
        # Imported here: a command that has little to do never needs it.
        import multiprocessing

        sys.stdout.flush()
        sys.stderr.flush()
        forks = sys.platform == "linux"
        context = multiprocessing.get_context("fork") if forks else multiprocessing.get_context("spawn")
        self._processes: dict[Connection, Any] = {}
        for _ in range(count):
            ours, theirs = context.Pipe()
            # A fork that kept our ends of the others' pipes would keep them from ending when this process is killed.
            inherited = [*self._processes, ours] if forks else []
            process = context.Process(target=_serve, args=(work, theirs, inherited), daemon=True)
            process.start()
            theirs.close()
            self._processes[ours] = process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        for pipe, process in self._processes.items():
            pipe.close()
            process.kill()
        for process in self._processes.values():
            process.join()

    def each(self, items: Iterable[tuple[int, Item]]) -> Iterator[NumberedResult[Result]]:
        """Hand out numbered items, the first ones at once; yield the result of each as it comes.

        Raises LostWorkerError. An error that `work` raises is yielded, in a KitError if it is not the kit's own.
        """
        waiting = iter(items)
        busy = {pipe: item[0] for pipe, item in zip(self._processes, waiting, strict=False) if _send(pipe, item[1])}
        return self._results(waiting, busy)

    def _results(
        self, waiting: Iterator[tuple[int, Item]], busy: dict[Connection, int]
    ) -> Iterator[NumberedResult[Result]]:
        from multiprocessing.connection import wait

        while busy:
            for pipe in cast("list[Connection]", wait(list(busy))):
                number = busy.pop(pipe)
                try:
                    result = pickle.loads(pipe.recv_bytes())  # noqa: S301 - a worker that this process started wrote it
                except (EOFError, OSError):
                    self._processes[pipe].join(1)
                    raise LostWorkerError(number, self._processes[pipe].exitcode) from None
                if (following := next(waiting, None)) is not None and _send(pipe, following[1]):
                    busy[pipe] = following[0]
                yield number, result


def _send(pipe: Connection, item: Any) -> bool:
    # The end of a worker is noticed when its answer is read.
    with suppress(BrokenPipeError):
        pipe.send(item)
    return True


def _serve(work: Callable[[Any], Any], pipe: Connection, inherited: Sequence[Connection]) -> None:
    """Do the work on each item from the pipe until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in inherited:
        other.close()
    with suppress(EOFError, OSError):
        while True:
            pipe.send_bytes(_pickled_result(work, pipe.recv()))


def _pickled_result(work: Callable[[Any], Any], item: Any) -> bytes:
    result: Any
    try:
        result = work(item)
    except SignetConformanceError as failure:
        result = failure
    except Exception as failure:  # noqa: BLE001 - a worker survives any failure, which the parent reports
        result = KitError(f"{type(failure).__name__}: {failure}"[:300], remedy="please report it")
    try:
        return pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
    except Exception as failure:  # noqa: BLE001 - pickling runs code of what a user's own rule yielded
        lost = KitError(f"the worker cannot return its result: {failure}"[:300], remedy="run it with --workers 1")
        return pickle.dumps(lost)


def spread(work: Callable[[Item], Result], items: Sequence[Item], workers: int) -> Generator[Result, None, None]:
    """Yield the result of `work` for each item, in the order of the items. Results are pickled, items are not.

    This process itself does the work for a single item or worker, and on systems other than Linux. The caller
    must have no other thread. Raises KitError for a worker that was lost, and for an error in a worker that is not the
    kit's own.
    """
    if min(workers, len(items)) < 2 or sys.platform != "linux":
        yield from map(work, items)
        return
    with forked_workers(work, items, workers) as results:
        yield from results


@contextmanager
def forked_workers(work: Callable[[Item], Result], items: Sequence[Item], workers: int) -> Iterator[Iterator[Result]]:
    """Start the forks, which work from the beginning of the block to its end; yield the results in order."""
    # Collections skip the objects that exist now until the pool is closed: they would copy the shared memory.
    gc.freeze()
    try:
        pool: Workers[int, Result] = Workers(lambda place: work(items[place]), min(workers, len(items)))
        with pool:
            yield _in_order(pool.each((place, place) for place in range(len(items))))
    finally:
        gc.unfreeze()


def _in_order(results: Iterator[NumberedResult[Result]]) -> Iterator[Result]:
    """The results in the order of their numbers, as soon as they are known. An error is raised when its turn comes."""
    done: dict[int, Result | SignetConformanceError] = {}
    next_number = 0
    for number, result_or_error in results:
        done[number] = result_or_error
        while next_number in done:
            result = done.pop(next_number)
            if isinstance(result, SignetConformanceError):
                raise result
            yield result
            next_number += 1
