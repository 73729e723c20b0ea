"""An audit from its data sets to its tables: what is left to judge is judged, wherever it was stopped."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol, Self, cast

from signet_conformance.audit import manifest as manifests
from signet_conformance.audit.judging import judge_batch
from signet_conformance.audit.manifest import Manifest
from signet_conformance.audit.results import Batches, write_tables
from signet_conformance.audit.summary import Summary
from signet_conformance.errors import KitError


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


Job = tuple[int, dict[str, Any]]


class Here:
    """Judges in this very process."""

    def each(self, jobs: Iterable[Job]) -> Iterator[tuple[int, bytes]]:
        """The number and the rows of each job."""
        return ((number, judge_batch(job)) for number, job in jobs)


class AuditWorkers:
    """Some processes that judge batches; begun before the data sets are listed, while this process has no thread."""

    def __init__(self, count: int) -> None:
        # A fork has imported everything already; elsewhere than on Linux it is not safe.
        context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        self._free: list[Connection] = []
        self._all: list[tuple[Any, Connection]] = []
        for _ in range(count):
            ours, theirs = context.Pipe()
            # A worker that kept our ends of the others' pipes would keep them from ending when we are killed.
            inherited = [*self._free, ours] if sys.platform == "linux" else []
            process = context.Process(target=_work, args=(theirs, inherited), daemon=True)  # type: ignore[attr-defined]  # both contexts have it
            process.start()
            theirs.close()
            self._free.append(ours)
            self._all.append((process, ours))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        for process, pipe in self._all:
            pipe.close()
            process.terminate()
        for process, _ in self._all:
            process.join()

    def each(self, jobs: Iterable[Job]) -> Iterator[tuple[int, bytes]]:
        """The number and the rows of each job, in the order in which they are done. Raises KitError for a lost one."""
        waiting = iter(jobs)
        busy: dict[Connection, int] = {}
        while True:
            while self._free and (job := next(waiting, None)) is not None:
                pipe = self._free.pop()
                busy[pipe] = job[0]
                with contextlib.suppress(BrokenPipeError):  # seen below, as its end
                    pipe.send(job[1])
            if not busy:
                return
            for ready in cast("list[Connection]", wait(list(busy))):
                number = busy.pop(ready)
                yield number, self._answer(ready, number)
                self._free.append(ready)

    def _answer(self, pipe: Connection, number: int) -> bytes:
        try:
            answer = pipe.recv()
        except (EOFError, OSError):
            process = next(process for process, its in self._all if its is pipe)
            process.join(1)
            raise KitError(
                f"a worker ended while it judged batch {number} (status {process.exitcode})",
                remedy="the same command goes on where it was; if its memory was not enough, with fewer --workers",
            ) from None
        if isinstance(answer, bytes):
            return answer
        raise KitError(f"batch {number} could not be judged: {answer}", remedy="please report it")


def _work(pipe: Connection, inherited: Sequence[Connection]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in inherited:
        other.close()
    while True:
        try:
            job = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            answer: bytes | str = judge_batch(job)
        except Exception as failure:  # noqa: BLE001 - whatever it is, the parent tells it
            answer = f"{type(failure).__name__}: {failure}"[:300]
        try:
            pipe.send(answer)
        except OSError:
            return
