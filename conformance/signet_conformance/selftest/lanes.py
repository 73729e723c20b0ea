"""Performs trials side by side: each lane has a recorder and a daemon, over which the trials of one kind go."""

from __future__ import annotations

import queue
import secrets
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from signet_conformance import targets, trace
from signet_conformance.drivers.launch import Driver
from signet_conformance.engine import Judged, judge
from signet_conformance.errors import KitError, SignetConformanceError
from signet_conformance.launching import clean_environment
from signet_conformance.processes import LineProcess
from signet_conformance.rig import Rig
from signet_conformance.selftest.harness import PLANTED_VARIABLE
from signet_conformance.selftest.trials import CONTRACT, Trial

_READY_S = 60.0


@dataclass(frozen=True, slots=True)
class Performed:
    """A trial that was performed; `error` is what cut it short, and `judged` is None where nothing was recorded."""

    trial: Trial
    judged: Judged | None
    error: str | None = None


def perform(wanted: Sequence[Trial], folder: Path, lanes: int) -> Iterator[Performed]:
    """Perform and judge all trials; they come out in the order in which they are done.

    Raises what a lane raises: a kit that cannot launch its own parts is no finding of a mutant.
    """
    plain: deque[Trial] = deque(t for t in wanted if t.contract == CONTRACT and not t.needs_broken_daemon)
    batches: deque[deque[Trial]] = deque()
    for contract, broken in sorted({(t.contract, t.needs_broken_daemon) for t in wanted} - {(CONTRACT, False)}):
        batches.append(deque(t for t in wanted if (t.contract, t.needs_broken_daemon) == (contract, broken)))
    batches.extend([plain] * lanes if plain else [])
    done: queue.Queue[Performed | BaseException | None] = queue.Queue()
    stop = threading.Event()

    def work() -> None:
        try:
            while batches and not stop.is_set():
                batch = batches.popleft()
                if batch:
                    _perform_batch(batch, folder, done, stop)
        except IndexError:
            # Another lane took the last batch.
            pass
        except BaseException as failure:  # noqa: BLE001 - handed to the thread that waits for the lanes
            done.put(failure)
        finally:
            done.put(None)

    threads = [threading.Thread(target=work, name=f"lane {number}") for number in range(lanes)]
    for thread in threads:
        thread.start()
    try:
        running = len(threads)
        while running:
            one = done.get()
            if isinstance(one, BaseException):
                raise one
            if one is None:
                running -= 1
            else:
                yield one
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _perform_batch(
    batch: deque[Trial], folder: Path, done: queue.Queue[Performed | BaseException | None], stop: threading.Event
) -> None:
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="signet-selftest-")))
        bench = _Bench(home, batch[0])
        stack.callback(bench.close)
        bench.start()
        waiting: tuple[Trial, Driver] | None = None
        try:
            while not stop.is_set():
                trial, driver = waiting if waiting is not None else (None, None)
                # The next connector starts while this trial runs: starting up is most of what it costs.
                following = _next(batch)
                waiting = None if following is None else (following, bench.launch(following))
                if trial is not None and driver is not None:
                    done.put(bench.perform(trial, driver, folder))
                elif waiting is None:
                    return
        finally:
            if waiting is not None:
                waiting[1].close()


def _next(batch: deque[Trial]) -> Trial | None:
    try:
        return batch.popleft()
    except IndexError:
        return None


class _Bench:
    """A rig with the reference adapter, mutated for each trial, and a daemon that can be broken where one is needed."""

    def __init__(self, home: Path, example: Trial) -> None:
        self._home = home
        self._stack = ExitStack()
        self._canary = f"canary-{secrets.token_hex(12)}"
        self._daemon: LineProcess | None = None
        self._contract = example.contract
        self._plain = example.contract == CONTRACT and not example.needs_broken_daemon

    def start(self) -> None:
        """Launch daemon and recorder."""
        choice = "embedded"
        if not self._plain:
            command = [sys.executable, "-m", "signet_conformance.selftest.daemon", "--daemon-version", self._contract]
            self._daemon = LineProcess("the broken daemon", command, env=clean_environment(self._home))
            self._stack.callback(self._daemon.close)
            choice = str(self._daemon.receive(_READY_S)["url"])
        target = targets.load("reference")
        token = f"sig_sk_{secrets.token_hex(20)}"
        self._rig = Rig(target, choice, self._home, canary=self._canary, token=token)
        self._stack.callback(self._rig.close)
        self._rig.start()

    def close(self) -> None:
        """End what was launched."""
        self._stack.close()

    def launch(self, trial: Trial) -> Driver:
        """The connector of a trial."""
        command = [sys.executable, "-m", "signet_conformance.selftest.harness"]
        command += [] if trial.mutant is None else ["--mutant", trial.mutant.id]
        self._rig.target = replace(self._rig.target, command=tuple(command))
        return self._rig.launch({**trial.scenario.env, PLANTED_VARIABLE: self._canary})

    def perform(self, trial: Trial, driver: Driver, folder: Path) -> Performed:
        """Perform and judge one trial."""
        out = folder / f"{trial.name}.jsonl"
        if self._daemon is not None:
            name = trial.mutant.id if trial.mutant is not None and trial.needs_broken_daemon else None
            answer = self._daemon.ask({"mutant": name}, _READY_S)
            if answer.get("ok") is not True:
                raise KitError(f"the daemon could not be broken: {answer.get('error')}", where=f"mutant {name}")
        try:
            error = self._rig.perform(replace(trial.scenario, name=trial.name), driver, out)
            return Performed(trial, judge(trace.read(out)), error)
        except SignetConformanceError as failure:
            driver.close()
            return Performed(trial, None, str(failure))
