"""An audit from its data sets to its tables: judges the batches that are left, wherever it was stopped.

This process judges, or other processes of this machine, or a Dask cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Self

from signet_conformance import __version__
from signet_conformance.audit import import_extra
from signet_conformance.audit.judged_rows import judge_batch
from signet_conformance.audit.manifest import BatchJob, Manifest, ManifestEntry
from signet_conformance.audit.results import Batches
from signet_conformance.children.spread import LostWorkerError, Workers
from signet_conformance.errors import KitError, SignetConformanceError, UsageError, printable

NumberedJob = tuple[int, BatchJob]


def judge_all(
    manifest: Manifest,
    batches: Sequence[Sequence[ManifestEntry]],
    folder: Path,
    judge: Callable[[Iterable[NumberedJob]], Iterator[tuple[int, bytes]]],
    on_batch: Callable[[str, bool], None],
) -> Batches:
    """Judge the batches of a manifest that have no rows yet.

    `on_batch` is called once for every batch, with an empty text and False, as `reports.terminal.steps` counts steps.
    """
    judged = Batches(folder)
    unjudged = [number for number in range(len(batches)) if not judged.has(number)]
    for _ in range(len(batches) - len(unjudged)):
        on_batch("", False)
    for number, rows in judge((number, manifest.job(batches[number])) for number in unjudged):
        judged.write(number, rows)
        on_batch("", False)
    return judged


def judge_here(items: Iterable[NumberedJob]) -> Iterator[tuple[int, bytes]]:
    """The number and the rows of each job, judged in this very process."""
    return ((number, judge_batch(job)) for number, job in items)


class AuditWorkers(Workers[BatchJob, bytes]):
    """Some processes that judge batches; begun before the data sets are listed, while this process has no thread."""

    def __init__(self, count: int) -> None:
        super().__init__(judge_batch, count)

    def each(self, items: Iterable[NumberedJob]) -> Iterator[tuple[int, bytes]]:
        """The number and the rows of each job, in the order in which they are done. Raises KitError for a lost one."""
        try:
            for number, rows in super().each(items):
                if isinstance(rows, SignetConformanceError):
                    raise KitError(f"batch {number} could not be judged: {rows.message}", remedy="please report it")
                yield number, rows
        except LostWorkerError as lost:
            raise KitError(
                f"a worker ended while it judged batch {lost.number} (status {lost.status})",
                remedy="the same command continues it; if its memory was not enough, with fewer --workers",
            ) from None


_CONNECT_S = 30
_AHEAD = 4
"""Batches that are handed out for each thread of the cluster."""


def _release() -> str:
    return __version__


class Cluster:
    """The scheduler at an address, such as tcp://10.0.0.7:8786; raise UsageError when it does not answer."""

    def __init__(self, address: str) -> None:
        distributed = import_extra("distributed", "--scheduler")
        self._completed = distributed.as_completed
        try:
            self._client = distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, TypeError, ValueError) as failure:
            # No answer, an address of a kind that is not installed here, or no address.
            raise UsageError(
                f"does not answer as a Dask scheduler: {printable(failure, 200)}",
                where=f"--scheduler {printable(address, 200)}",
                remedy="start one with: dask scheduler",
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def each(self, items: Iterable[NumberedJob]) -> Iterator[tuple[int, bytes]]:
        """The number and the rows of each job, in the order in which they are done.

        Raises UsageError for a cluster without workers or with workers of another kit, KitError for a lost batch.
        """
        threads = self._threads()
        waiting = iter(items)
        numbers: dict[str, int] = {}
        first = [self._submit(job, numbers) for job in islice(waiting, threads * _AHEAD)]
        if not first:
            return
        done = self._completed(first, loop=self._client.loop, with_results=True, raise_errors=False)
        for future, rows in done:
            number = numbers.pop(future.key)
            if future.status != "finished":
                raise KitError(
                    f"batch {number} was lost on the cluster: {printable(future.exception(), 300)}",
                    remedy="the same command continues it",
                )
            yield number, rows
            following = next(waiting, None)
            if following is not None:
                done.add(self._submit(following, numbers))

    def _submit(self, job: NumberedJob, numbers: dict[str, int]) -> Any:
        # Judging depends on nothing but the job, so a worker that dies may have its batches judged by another.
        future = self._client.submit(judge_batch, job[1], pure=False, retries=3)
        numbers[future.key] = job[0]
        return future

    def _threads(self) -> int:
        workers = self._client.nthreads()
        if not workers:
            raise UsageError("has no worker", where="--scheduler", remedy="start some with: dask worker ADDRESS")
        releases = self._client.run(_release, on_error="return")
        other = {printable(release, 100) for release in releases.values() if release != __version__}
        if other:
            raise UsageError(
                f"has workers that lack this release of the kit, {__version__}: {', '.join(sorted(other))}",
                where="--scheduler",
                remedy=f"pip install 'signet-conformance[fleet]=={__version__}' for every worker",
            )
        return sum(workers.values())
