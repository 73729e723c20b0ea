"""An audit from its data sets to its tables: what is left to judge is judged, wherever it was stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from signet_conformance.audit import manifest as manifests
from signet_conformance.audit.judging import judge_batch
from signet_conformance.audit.manifest import Manifest
from signet_conformance.audit.results import Batches, write_tables
from signet_conformance.audit.summary import Summary
from signet_conformance.children.spread import LostWorkerError, Workers
from signet_conformance.errors import KitError, SignetConformanceError


class Judges(Protocol):
    """What judges batches: this process, other processes of this machine, or a cluster."""

    def each(self, items: Iterable[Job]) -> Iterator[tuple[int, bytes]]:
        """The number and the rows of each job, in any order."""


Told = Callable[[int, int], Any]


def judge_all(manifest: Manifest, folder: Path, judges: Judges, told: Told) -> Batches:
    """Judge the batches that are not there yet; `told` is called with how many of how many are."""
    batches = Batches(folder)
    every = list(manifest.batches())
    left = [number for number in range(len(every)) if not batches.has(number)]
    done = len(every) - len(left)
    told(done, len(every))
    for number, rows in judges.each((number, manifests.job(manifest, every[number])) for number in left):
        batches.write(number, rows)
        done += 1
        told(done, len(every))
    return batches


def concluded(manifest: Manifest, folder: Path, batches: Batches, form: str) -> Summary:
    """Write the tables of an audit whose batches are all there."""
    return write_tables(folder, batches, len(manifest.entries), form)


Job = tuple[int, dict[str, Any]]


class Here:
    """Judges in this very process."""

    def each(self, items: Iterable[Job]) -> Iterator[tuple[int, bytes]]:
        """The number and the rows of each job."""
        return ((number, judge_batch(job)) for number, job in items)


class AuditWorkers(Workers[dict[str, Any], bytes]):
    """Some processes that judge batches; begun before the data sets are listed, while this process has no thread."""

    def __init__(self, count: int) -> None:
        super().__init__(judge_batch, count)

    def each(self, items: Iterable[Job]) -> Iterator[tuple[int, bytes]]:
        """The number and the rows of each job, in the order in which they are done. Raises KitError for a lost one."""
        try:
            for number, rows in super().each(items):
                if isinstance(rows, SignetConformanceError):
                    raise KitError(f"batch {number} could not be judged: {rows.message}", remedy="please report it")
                yield number, rows
        except LostWorkerError as lost:
            raise KitError(
                f"a worker ended while it judged batch {lost.number} (status {lost.status})",
                remedy="the same command goes on where it was; if its memory was not enough, with fewer --workers",
            ) from None
