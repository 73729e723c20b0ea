"""The workers of a run: threads that do its jobs in parallel, each with a recorded daemon of its own."""

from __future__ import annotations

import contextlib
import os
import queue
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self, TypeVar

from signet_conformance.children import forks
from signet_conformance.children.temporary import temporary_folder
from signet_conformance.running.daemon import is_embedded
from signet_conformance.running.default_port import DefaultPort
from signet_conformance.running.leftover_processes import LeftBehind
from signet_conformance.running.recorded_daemon import RecordedDaemon
from signet_conformance.running.stopwatch import Stopwatch
from signet_conformance.scenarios.scenario import Scenario
from signet_conformance.scenarios.steps import RestartDaemon
from signet_conformance.targets import Target
from signet_conformance.targets.face import has_own_tools

S = TypeVar("S")
T = TypeVar("T")
_LOOK_S = 0.25
Job = Callable[[RecordedDaemon], T]

MOST_WORKERS = 4
MOST_WAITING = 6
"""Additional workers for scenarios that mostly wait for answers that a fault delays, one scenario each."""


class RunWorkers:
    """Do the jobs of a run against one target. A context manager: all processes end with it.

    `count` workers share the jobs (default: `_usual_count`, or one if the daemon is not the embedded one, which cannot
    be launched twice). If the kit chooses the count, further workers do the jobs that mostly wait, which need no
    processor. A worker without a job launches nothing.
    """

    def __init__(
        self,
        target: Target,
        folder: Path,
        daemon: str = "embedded",
        count: int | None = None,
        stopwatch: Stopwatch | None = None,
    ) -> None:
        stopwatch = stopwatch or Stopwatch()
        self.stopwatch = stopwatch
        self.target = target
        self.folder = folder
        self._stack = contextlib.ExitStack()
        home = self._stack.enter_context(temporary_folder("signet-conformance-"))
        token = f"sig_sk_{secrets.token_hex(20)}"
        canary = f"canary-{secrets.token_hex(12)}"
        beside = MOST_WAITING if count is None and is_embedded(daemon) and not _serves(target) else 0
        if count is None:
            count = _usual_count(target) if is_embedded(daemon) else 1
        self._count = count
        compiled = home / "compiled"
        self.left_behind = LeftBehind()
        """Processes that connectors leave when their harness ends."""
        self.look: Callable[[], None] = lambda: None
        """Called at intervals while no job ends, in the thread that takes the results."""
        self.recorded_daemons = [
            RecordedDaemon(
                target,
                daemon,
                home / f"worker{n}",
                canary=canary,
                token=token,
                stopwatch=stopwatch,
                compiled=compiled,
                left_behind=self.left_behind,
            )
            for n in range(count + beside)
        ]

    def __enter__(self) -> Self:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._stack.enter_context(forks.server())
            self._stack.callback(self._close_daemons)
            default_port = self._stack.enter_context(DefaultPort())
            for recorded_daemon in self.recorded_daemons:
                recorded_daemon.unheard_port = default_port.unheard
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _close_daemons(self) -> None:
        # In parallel: each waits for its children to end.
        with ThreadPoolExecutor(len(self.recorded_daemons)) as closing:
            for future in [closing.submit(recorded_daemon.close) for recorded_daemon in self.recorded_daemons]:
                future.result()

    def usable(self, scenarios: Sequence[Scenario]) -> Sequence[Scenario]:
        """Return the scenarios that can be performed with this target and this daemon."""
        return [scenario for scenario in scenarios if self._is_usable(scenario)]

    @property
    def can_restart(self) -> bool:
        """Whether the kit may restart the daemons."""
        return all(recorded_daemon.daemon.can_restart for recorded_daemon in self.recorded_daemons)

    def _is_usable(self, scenario: Scenario) -> bool:
        declared = self.target.declared.capabilities
        lacks = declared is not None and any(need not in declared for need in scenario.needs)
        lacks = lacks or not has_own_tools(self.target, scenario.own_tools)
        # A server that already runs does not get the environment of a scenario.
        runs_already = self.target.profile.url is not None and not self.target.command
        restarts = any(isinstance(step, RestartDaemon) for step in scenario.steps)
        return not (lacks or (scenario.env and runs_already) or (restarts and not self.can_restart))

    def work(
        self, jobs: Iterable[Job[T]], idle: Iterable[Job[T]] = (), at_once: int = MOST_WAITING
    ) -> Generator[T, None, None]:
        """Do each job with the next free recorded daemon; yield the results as they come.

        `idle` are jobs that mostly wait: `at_once` of them run beside the others. After a job has raised, no other
        begins.
        """
        waiting, idling = deque(jobs), deque(idle)
        recorded_daemons = self.recorded_daemons[: self._count]
        beside = (
            self.recorded_daemons[self._count :][: min(len(idling), at_once)] if len(waiting) >= self._count else []
        )
        if not beside:
            waiting.extend(idling)

        ends: list[float] = []

        def run_jobs(recorded_daemon: RecordedDaemon) -> Iterator[T]:
            jobs_left = idling if recorded_daemon in beside else waiting
            try:
                while jobs_left:
                    with contextlib.suppress(IndexError):  # another worker took the last one
                        yield jobs_left.popleft()(recorded_daemon)
            finally:
                ends.append(time.perf_counter())

        try:
            # The jobs that wait begin first, since they take longest.
            places = [*beside, *recorded_daemons[: len(waiting)]]
            yield from in_threads(run_jobs, places, self.look)
        finally:
            self.stopwatch.note_idle(ends)
            waiting.clear()
            idling.clear()


def in_threads(
    work: Callable[[S], Iterator[T]], places: Sequence[S], look: Callable[[], None] = lambda: None
) -> Iterator[T]:
    """Yield the results of `work` for each place, each in a thread of its own, as they come.

    Raises what a thread raises; the others stop at their next result. `look` is called at intervals while there is
    no result.
    """
    results: queue.SimpleQueue[tuple[T] | BaseException | None] = queue.SimpleQueue()
    stopped = threading.Event()

    def run(place: S) -> None:
        try:
            for result in work(place):
                results.put((result,))
                if stopped.is_set():
                    break
        except BaseException as failure:  # noqa: BLE001 - raised again in the thread that takes the results
            results.put(failure)
        finally:
            results.put(None)

    threads = [threading.Thread(target=run, args=(place,), name="signet worker", daemon=True) for place in places]
    for thread in threads:
        thread.start()
    try:
        ended = 0
        while ended < len(threads):
            try:
                result = results.get(timeout=_LOOK_S)
            except queue.Empty:
                # With a timeout, since a signal that another thread receives does not wake the main thread.
                look()
                continue
            if isinstance(result, BaseException):
                raise result
            if result is None:
                ended += 1
            else:
                yield result[0]
    finally:
        stopped.set()
        for thread in threads:
            # A worker that hangs in a child is freed when the recorded daemons close; its thread ends with the process.
            thread.join(0.0 if ended < len(threads) else None)


def _usual_count(target: Target) -> int:
    """Processors plus one, or one on a single processor, since the programs of a step wait for each other.

    With many more, the connectors' timeouts would expire. A real program that serves uses a whole processor while it
    starts, so for it the count is at most that of the processors.
    """
    processors = os.cpu_count() or 1
    if _serves(target):
        return min(MOST_WORKERS, processors)
    return min(MOST_WORKERS, processors + 1) if processors > 1 else 1


def _serves(target: Target) -> bool:
    return target.real is not None and target.real.program.profile.settles is not None
