"""An audit from its data sets to its tables: what is left to judge is judged, wherever it was stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from signet_conformance.audit import manifest as manifests
from signet_conformance.audit.manifest import Manifest
from signet_conformance.audit.results import Batches, write_tables
from signet_conformance.audit.summary import Summary
from signet_conformance.audit.workers import Job


class Judges(Protocol):
    """Whoever judges batches: the processes of this machine, or a cluster."""

    def each(self, jobs: Iterable[Job]) -> Iterator[tuple[int, bytes]]:
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
