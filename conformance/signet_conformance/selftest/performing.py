"""Performs trials side by side: each worker has a recorder and a daemon, over which the trials of one kind go."""

from __future__ import annotations

import json
import queue
import secrets
import socket
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from signet_conformance import targets, trace
from signet_conformance.children import forks
from signet_conformance.children.environment import clean_environment
from signet_conformance.children.processes import LineProcess
from signet_conformance.children.temporary import temporary_folder
from signet_conformance.drivers.process import ConnectorDriver
from signet_conformance.engine import Judged, judge
from signet_conformance.errors import KitError, SignetConformanceError
from signet_conformance.running.default_port import DefaultPort
from signet_conformance.running.station import Station
from signet_conformance.selftest.harness import APPLIED_VARIABLE, DEFAULT_PORT_VARIABLE, PLANTED_VARIABLE
from signet_conformance.selftest.mutants import DAEMON
from signet_conformance.selftest.trials import CONTRACT, Trial, told_apart

_READY_S = 60.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Performed:
    """A trial that was performed; `error` is what cut it short, and `judged` is None where nothing was recorded.

    `applied` are the ids of its variants that changed something.
    """

    trial: Trial
    judged: Judged | None
    error: str | None = None
    applied: tuple[str, ...] = ()


def perform(wanted: Sequence[Trial], folder: Path, workers: int) -> Iterator[Performed]:
    """Perform and judge all trials; they come out in the order in which they are done.

    Raises what a worker raises: a kit that cannot launch its own parts says nothing about a mutant.
    """
    kinds: dict[tuple[str, bool, bool], deque[Trial]] = {}
    for trial in wanted:
        kind = (trial.contract, trial.needs_broken_daemon, trial.needs_model)
        kinds.setdefault(kind, deque()).append(trial)
    # The most numerous kind comes last, and every worker takes part in it.
    batches = deque(sorted(kinds.items(), key=lambda kind: (len(kind[1]), kind[0])))
    batches.extend([batches[-1]] * (workers - 1) if batches else [])
    done: queue.Queue[Performed | BaseException | None] = queue.Queue()
    stop = threading.Event()

    def work() -> None:
        try:
            while not stop.is_set() and (batch := _next(batches)) is not None:
                (contract, broken, model), asked = batch
                if (first := _next(asked)) is not None:
                    bench = _Bench(contract, plain=contract == CONTRACT and not broken, model=model)
                    _perform_batch(bench, first, asked, folder, done, stop)
        except BaseException as failure:  # noqa: BLE001 - handed to the thread that waits for the workers
            done.put(failure)
        finally:
            done.put(None)

    threads = [threading.Thread(target=work, name=f"worker {number}") for number in range(workers)]
    with forks.held():
        for thread in threads:
            thread.start()
        try:
            running = len(threads)
            while running:
                result = done.get()
                if isinstance(result, BaseException):
                    raise result
                if result is None:
                    running -= 1
                else:
                    yield result
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def _perform_batch(
    bench: _Bench,
    first: Trial,
    rest: deque[Trial],
    folder: Path,
    done: queue.Queue[Performed | BaseException | None],
    stop: threading.Event,
) -> None:
    with bench:
        trial: Trial | None = first
        driver = bench.launch(first)
        while trial is not None and not stop.is_set():
            following = _next(rest)
            # The next connector starts while this trial runs: starting up is most of what it costs.
            waiting = None if following is None else bench.launch(following)
            done.put(bench.perform(trial, driver, folder))
            if waiting is not None:
                driver = waiting
            trial = following


def _next(waiting: deque[T]) -> T | None:
    try:
        return waiting.popleft()
    except IndexError:
        return None


class _Bench:
    """A station with the reference adapter, mutated for each trial, and a daemon that can be broken where needed.

    A context manager: what it launched ends with it.
    """

    def __init__(self, contract: str, *, plain: bool, model: bool) -> None:
        self._contract = contract
        self._plain = plain
        self._model = model
        self._canary = f"canary-{secrets.token_hex(12)}"
        self._daemon: LineProcess | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        try:
            home = self._home = self._stack.enter_context(temporary_folder("signet-selftest-"))
            target = targets.load("reference")
            token = f"sig_sk_{secrets.token_hex(20)}"
            self._station = Station(
                target, self._daemon_at(home), home, canary=self._canary, token=token, model=self._model
            )
            self._stack.callback(self._station.close)
            self._station.start()
            self._port = _free_port()
            self._stack.enter_context(DefaultPort(self._port))
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()

    def _daemon_at(self, home: Path) -> str:
        """Which daemon the station shall use: its own embedded one, or one launched here that can be broken."""
        if self._plain:
            return "embedded"
        # -P keeps a folder that happens to hold a module of the same name from being run in its place.
        command = [sys.executable, "-P", "-m", "signet_conformance.selftest.daemon", "--daemon-version", self._contract]
        self._daemon = LineProcess("the broken daemon", command, env=clean_environment(home))
        self._stack.callback(self._daemon.close)
        return str(self._daemon.receive(_READY_S)["url"])

    def launch(self, trial: Trial) -> ConnectorDriver:
        """The connector of a trial."""
        command = [sys.executable, "-P", "-m", "signet_conformance.selftest.harness"]
        command += [] if trial.base is None else trial.base.arguments
        command += [] if trial.mutant is None else ["--mutant", trial.mutant.id]
        command += [word for variant in trial.variants if variant.side != DAEMON for word in ("--variant", variant.id)]
        self._station.target = replace(self._station.target, command=tuple(command))
        noted = {APPLIED_VARIABLE: str(self._home / f"{trial.name}.json")} if trial.variants else {}
        told = {PLANTED_VARIABLE: self._canary, DEFAULT_PORT_VARIABLE: str(self._port)}
        driver = self._station.launch({**trial.scenario.env, **noted, **told})
        self._stack.callback(driver.close)
        return driver

    def perform(self, trial: Trial, driver: ConnectorDriver, folder: Path) -> Performed:
        """Perform and judge one trial."""
        out = folder / f"{trial.name}.jsonl"
        if self._daemon is not None and trial.needs_broken_daemon and trial.variants:
            self._change_daemon({"variants": [variant.id for variant in trial.variants]})
        elif self._daemon is not None:
            name = trial.mutant.id if trial.mutant is not None and trial.needs_broken_daemon else None
            self._change_daemon({"mutant": name})
        try:
            scenario = told_apart(trial.scenario, trial.name) if trial.needs_model else trial.scenario
            error = self._station.perform(replace(scenario, name=trial.name), driver, out)
            return Performed(trial, judge(trace.read(out)), error, self._applied(trial))
        except SignetConformanceError as failure:
            return Performed(trial, None, str(failure))

    def _change_daemon(self, how: Mapping[str, object]) -> Mapping[str, Any]:
        if self._daemon is None:
            return {}
        answer = self._daemon.ask(how, _READY_S)
        if answer.get("ok") is not True:
            raise KitError(f"the daemon could not be changed: {answer.get('error')}", where=str(how))
        return answer

    def _applied(self, trial: Trial) -> tuple[str, ...]:
        """The ids of the trial's variants that changed something, once the connector has ended."""
        if not trial.variants:
            return ()
        if trial.needs_broken_daemon:
            return tuple(self._change_daemon({"mutant": None}).get("applied", ()))
        try:
            return tuple(json.loads((self._home / f"{trial.name}.json").read_bytes()))
        except (OSError, ValueError):
            return ()


def _free_port() -> int:
    """A port that stands for the daemon's default one, which another run of the kit may hold."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
