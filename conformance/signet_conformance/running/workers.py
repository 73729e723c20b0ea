"""A run: scenarios performed side by side on a few rigs, one trace recorded for each.

The runner judges nothing. What it leaves behind is a folder of traces.
"""

from __future__ import annotations

import contextlib
import os
import queue
import secrets
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self, TypeVar

from signet_conformance.running.launching import is_embedded
from signet_conformance.running.station import Rig
from signet_conformance.scenarios.script import Scenario
from signet_conformance.targets import Target

T = TypeVar("T")
Job = Callable[[Rig], T]

MOST_LANES = 2
"""More than the processors that are left for it would only make the timeouts of connectors run out."""


class Run:
    """Performs scenarios against one target. A context manager: everything it launched ends with it.

    `lanes` rigs share the work (default: as many as processors, two at most; one where the daemon is not
    the embedded one, which could not be launched twice).
    """

    def __init__(self, target: Target, folder: Path, daemon: str = "embedded", lanes: int | None = None) -> None:
        self.target = target
        self.folder = folder
        self._stack = contextlib.ExitStack()
        home = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="signet-conformance-")))
        token = f"sig_sk_{secrets.token_hex(20)}"
        canary = f"canary-{secrets.token_hex(12)}"
        if lanes is None:
            lanes = min(MOST_LANES, os.cpu_count() or 1) if is_embedded(daemon) else 1
        self.rigs = [Rig(target, daemon, home / f"lane{n}", canary=canary, token=token) for n in range(lanes)]

    def __enter__(self) -> Self:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._stack.callback(self._close_rigs)
            for _ in self._on_every_rig(Rig.start):
                pass
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _close_rigs(self) -> None:
        """Close all side by side: each waits for its children to end."""
        with ThreadPoolExecutor(len(self.rigs)) as closing:
            for closed in [closing.submit(rig.close) for rig in self.rigs]:
                closed.result()

    def usable(self, scenarios: Sequence[Scenario]) -> Sequence[Scenario]:
        """The scenarios that make sense with this target and this daemon."""
        return [scenario for scenario in scenarios if not self._without_sense(scenario)]

    @property
    def can_restart(self) -> bool:
        """Whether the daemon is one that the kit may restart."""
        return all(rig.daemon.can_restart for rig in self.rigs)

    def _without_sense(self, scenario: Scenario) -> bool:
        declared = self.target.declared.capabilities
        lacks = declared is not None and any(need not in declared for need in scenario.needs)
        # A server that runs already has its environment, and none of a scenario's reaches it.
        runs_already = "url" in self.target.profile and not self.target.command
        restarts = any(step["step"] == "restart_daemon" for step in scenario.steps)
        return lacks or (bool(scenario.env) and runs_already) or (restarts and not self.can_restart)

    def work(self, jobs: Iterable[Job[T]]) -> Iterator[T]:
        """Do jobs on the rigs, each on the next rig that is free; yield their results as they come.

        The first job that raises ends the work: what the other lanes are at is finished, the rest left undone.
        """
        waiting = deque(jobs)

        def all_waiting(rig: Rig) -> Iterator[T]:
            while waiting:
                with contextlib.suppress(IndexError):  # another lane took the last one
                    yield waiting.popleft()(rig)

        try:
            yield from self._lanes(all_waiting)
        finally:
            waiting.clear()

    def _on_every_rig(self, job: Job[T]) -> Iterator[T]:
        def once(rig: Rig) -> Iterator[T]:
            yield job(rig)

        yield from self._lanes(once)

    def _lanes(self, lane: Callable[[Rig], Iterator[T]]) -> Iterator[T]:
        """What `lane` yields for every rig, each in a thread of its own."""
        results: queue.SimpleQueue[tuple[T] | BaseException | None] = queue.SimpleQueue()
        stopped = threading.Event()

        def run(rig: Rig) -> None:
            try:
                for result in lane(rig):
                    results.put((result,))
                    if stopped.is_set():
                        break
            except BaseException as failure:  # noqa: BLE001 - it is raised again where the results are awaited
                results.put(failure)
            finally:
                results.put(None)

        threads = [threading.Thread(target=run, args=(rig,), name="signet lane", daemon=True) for rig in self.rigs]
        for thread in threads:
            thread.start()
        try:
            ended = 0
            while ended < len(threads):
                result = results.get()
                if isinstance(result, BaseException):
                    raise result
                if result is None:
                    ended += 1
                else:
                    yield result[0]
        finally:
            stopped.set()
            for thread in threads:
                # A lane that hangs in a child is freed when the rigs are closed; its thread ends with the process.
                thread.join(0.0 if ended < len(threads) else None)
