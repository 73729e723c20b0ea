"""Trials of the self-test: mutants, variants and the reference in their scenarios, performed side by side.

Each worker has a recorder and a daemon for all its trials of one kind.
"""

from __future__ import annotations

import json
import secrets
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from signet_conformance import targets, trace
from signet_conformance.children import forks
from signet_conformance.children.environment import clean_environment, free_port
from signet_conformance.children.processes import LineProcess
from signet_conformance.children.temporary import temporary_folder
from signet_conformance.drivers.process import ConnectorDriver
from signet_conformance.engine import JudgedTrace, judge
from signet_conformance.errors import ContractError, KitError, SignetConformanceError
from signet_conformance.rules import run_rules
from signet_conformance.running.default_port import DefaultPort
from signet_conformance.running.leftover_processes import LeftBehind
from signet_conformance.running.recorded_daemon import RecordedDaemon
from signet_conformance.running.workers import in_threads
from signet_conformance.scenarios.scenario import Scenario, scripted, with_each_bypass
from signet_conformance.scenarios.steps import CompactStep
from signet_conformance.selftest.harness import APPLIED_VARIABLE, DEFAULT_PORT_VARIABLE, PLANTED_VARIABLE
from signet_conformance.selftest.mutants import (
    CONNECTOR,
    DAEMON,
    FILE,
    HARNESS,
    VARIANTS_FILE,
    Base,
    Mutant,
    Variant,
    grouped,
    mutants,
    variants,
)
from signet_conformance.targets.face import face_of_harness

_READY_S = 60.0
_PATIENCE_S = 2.0
"""How long to wait for processes that a mutant leaves, before the next trial begins."""
T = TypeVar("T")
CONTRACT = "0.145"
"""The contract version at which the reference performs every scenario; at others only those of mutants."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One scenario to perform: by a mutant, by the reference with some variants, or by the reference.

    `base` is the conforming connector in place of the reference, None for the reference. `face` is the shipped one of
    the host that the driver plays, None where it plays none.
    """

    name: str
    scenario: Scenario
    contract: str
    mutant: Mutant | None = None
    variants: tuple[Variant, ...] = ()
    side: str = CONNECTOR
    base: Base | None = None
    face: str | None = None

    @property
    def needs_broken_daemon(self) -> bool:
        """Whether its daemon is broken, or odd."""
        broken = self.mutant is not None and self.mutant.side == DAEMON
        return broken or any(variant.side == DAEMON for variant in self.variants)

    @property
    def needs_model(self) -> bool:
        """Whether the model's side is recorded too."""
        return self.side == HARNESS

    @property
    def is_control(self) -> bool:
        """Whether the reference, or a base, performs it without a change."""
        return self.mutant is None and not self.variants


@cache
def reference_scenarios() -> Sequence[Scenario]:
    """Return the scripted scenarios of a run of the reference."""
    return with_each_bypass(scripted(), targets.load("reference").profile.bypass_env)


@cache
def scenarios() -> Mapping[str, Scenario]:
    """Return by name the scripted scenarios, and those of mutants or variants alone."""
    own = [Scenario.from_json(row, FILE) for row in mutants().scenarios]
    odd = [Scenario.from_json(row, VARIANTS_FILE) for row in variants().scenarios]
    return {scenario.name: scenario for scenario in (*reference_scenarios(), *own, *odd)}


def with_own_summaries(scenario: Scenario, name: str) -> Scenario:
    """Return the scenario with other summaries: the daemon stores them, and injects them into later sessions."""
    steps = (
        step.model_copy(update={"summary": f"{step.summary} So it was in {name}."})
        if isinstance(step, CompactStep)
        else step
        for step in scenario.steps
    )
    return replace(scenario, steps=tuple(steps))


def in_host(scenario: Scenario, face: str | None) -> Scenario:
    """Return the scenario with the steps marked in which the face's host changes a session's id, or reports no end."""
    if face is None:
        return scenario
    host = face_of_harness(face).data
    marked_steps = {"anew": frozenset(host.changes_id), "end_untold": frozenset(host.ends_untold)}
    steps = (
        step.model_copy(update={name: True for name, kinds in marked_steps.items() if step.step in kinds})
        for step in scenario.steps
    )
    return replace(scenario, steps=tuple(steps))


def scenario_of(change: Mutant | Variant) -> Scenario:
    """Return the scenario of a mutant or variant. Raises ContractError for an unknown scenario."""
    scenario = scenarios().get(change.scenario)
    if scenario is None:
        kind, file = ("mutant", FILE) if isinstance(change, Mutant) else ("variant", VARIANTS_FILE)
        raise ContractError(
            f"{kind} {change.id} performs {change.scenario!r}, which is not a scenario",
            where=file,
            remedy="name a scripted scenario, or add it under scenarios",
        )
    return scenario


def trials(wanted: Sequence[Mutant], odd: Sequence[Variant] = ()) -> Sequence[Trial]:
    """Return the trials of these mutants and variants, those of the reference first."""
    return [
        *_controls(wanted, whole=len(wanted) == len(mutants().mutants)),
        *(
            Trial(mutant.id, scenario_of(mutant), mutant.contract, mutant, side=mutant.side, face=mutant.face)
            for mutant in wanted
        ),
        *(of_variants(group) for group in grouped(odd)),
        *(trial for base in mutants().bases.values() for trial in _of_base(base, wanted)),
    ]


def _of_base(base: Base, wanted: Sequence[Mutant]) -> Iterator[Trial]:
    tried = [mutant for mutant in wanted if base.is_tried_with(mutant)]
    yield from _controls(tried, whole=len(wanted) == len(mutants().mutants), base=base)
    for mutant in tried:
        yield Trial(f"{base.id}-{mutant.id}", scenario_of(mutant), mutant.contract, mutant, base=base, face=mutant.face)


def of_variants(group: tuple[Variant, ...]) -> Trial:
    """Return the trial of variants that change one connector, or one daemon, together."""
    first = group[0]
    group_name = f"{first.group}-{first.scenario}-{first.contract}-{first.side}".replace(".", "-")
    name = first.id if len(group) == 1 else group_name
    return Trial(f"variant-{name}", scenario_of(first), first.contract, variants=group, side=first.side)


def _controls(tried: Sequence[Mutant], *, whole: bool, base: Base | None = None) -> Iterator[Trial]:
    """The reference or a base in the scenarios of mutants, or with the `whole` selftest in every scripted one."""
    needed = {(mutant.contract, mutant.scenario, mutant.face, mutant.side == HARNESS) for mutant in tried}
    if whole or any(mutant.breaks in run_rules() for mutant in tried):
        needed |= {(CONTRACT, scenario.name, None, False) for scenario in reference_scenarios()}
    who = "reference" if base is None else base.id
    for contract, name, face, with_model in sorted(needed, key=str):
        trial = f"{who}-{_where(contract, name, face)}{'-model' if with_model else ''}"
        yield Trial(trial, scenarios()[name], contract, side=HARNESS if with_model else CONNECTOR, base=base, face=face)


def _where(contract: str, scenario: str, face: str | None) -> str:
    """Where the reference or a base performs a scenario, as part of the trial's name."""
    return "-".join(part.replace(".", "-") for part in (contract, scenario, face) if part is not None)


@dataclass(frozen=True, slots=True)
class PerformedTrial:
    """A trial that was performed. `error` cut it short; `judged` is None without a recording.

    `applied` are the ids of its variants that changed a message.
    """

    trial: Trial
    judged: JudgedTrace | None
    error: str | None = None
    applied: tuple[str, ...] = ()


def perform(wanted: Sequence[Trial], folder: Path, workers: int) -> Iterator[PerformedTrial]:
    """Perform and judge all trials; yields them as they are done.

    Raises what a worker raises: a kit that cannot launch its own parts says nothing about a mutant.
    """
    kinds: dict[tuple[str, bool, bool], deque[Trial]] = {}
    for trial in wanted:
        kind = (trial.contract, trial.needs_broken_daemon, trial.needs_model)
        kinds.setdefault(kind, deque()).append(trial)
    # The most numerous kind comes last, and every worker takes part in it.
    batches = deque(sorted(kinds.items(), key=lambda kind: (len(kind[1]), kind[0])))
    batches.extend([batches[-1]] * (workers - 1) if batches else [])

    def work(_worker: int) -> Iterator[PerformedTrial]:
        while (batch := _next(batches)) is not None:
            (contract, broken, model), trials_left = batch
            if (first := _next(trials_left)) is not None:
                bench = _Bench(contract, broken=broken, model=model)
                yield from _perform_batch(bench, first, trials_left, folder)

    with forks.server():
        yield from in_threads(work, range(workers))


def _perform_batch(bench: _Bench, first: Trial, waiting_trials: deque[Trial], folder: Path) -> Iterator[PerformedTrial]:
    with bench:
        trial: Trial | None = first
        driver = bench.launch(first)
        while trial is not None:
            next_trial = _next(waiting_trials)
            # The next connector starts while this trial runs: starting up is most of its cost.
            next_driver = None if next_trial is None else bench.launch(next_trial)
            yield bench.perform(trial, driver, folder)
            if next_driver is not None:
                driver = next_driver
            trial = next_trial


def _next(waiting: deque[T]) -> T | None:
    try:
        return waiting.popleft()
    except IndexError:
        return None


class _Bench:
    """A recorded daemon with the reference adapter, changed for each trial, and a daemon that may be broken.

    A context manager: all processes end with it.
    """

    def __init__(self, contract: str, *, broken: bool, model: bool) -> None:
        self._contract = contract
        self._is_broken = broken
        self._model = model
        self._canary = f"canary-{secrets.token_hex(12)}"
        self._daemon: LineProcess | None = None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            home = self._home = stack.enter_context(temporary_folder("signet-selftest-"))
            self._recorded_daemon = RecordedDaemon(
                targets.load("reference"),
                self._daemon_at(home, stack),
                home,
                canary=self._canary,
                token=f"sig_sk_{secrets.token_hex(20)}",
                model=self._model,
                left_behind=LeftBehind(_PATIENCE_S, sys.maxsize),
            )
            stack.callback(self._recorded_daemon.close)
            self._recorded_daemon.start()
            # In place of the daemon's default one, which another run of the kit may hold.
            self._port = free_port()
            stack.enter_context(DefaultPort(self._port))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()

    def _daemon_at(self, home: Path, stack: ExitStack) -> str:
        """Return the choice of daemon: its own embedded one, or one launched here that can be broken.

        Only its own is restarted by a scenario that restarts its daemon.
        """
        if not self._is_broken:
            return f"embedded:{self._contract}"
        # -P keeps a folder that happens to hold a module of the same name from being run in its place.
        command = [sys.executable, "-P", "-m", "signet_conformance.selftest.daemon", "--daemon-version", self._contract]
        self._daemon = LineProcess("the broken daemon", command, env=clean_environment(home))
        stack.callback(self._daemon.close)
        return str(self._daemon.receive(_READY_S)["url"])

    def launch(self, trial: Trial) -> ConnectorDriver:
        """Launch the connector of a trial."""
        command = [sys.executable, "-P", "-m", "signet_conformance.selftest.harness"]
        command += [] if trial.base is None else trial.base.arguments
        command += [] if trial.mutant is None else ["--mutant", trial.mutant.id]
        command += [word for variant in trial.variants if variant.side != DAEMON for word in ("--variant", variant.id)]
        self._recorded_daemon.target = replace(self._recorded_daemon.target, command=tuple(command))
        applied_env = {APPLIED_VARIABLE: str(self._home / f"{trial.name}.json")} if trial.variants else {}
        env = {PLANTED_VARIABLE: self._canary, DEFAULT_PORT_VARIABLE: str(self._port)}
        driver = self._recorded_daemon.launch({**trial.scenario.env, **applied_env, **env})
        self._stack.callback(driver.close)
        return driver

    def perform(self, trial: Trial, driver: ConnectorDriver, folder: Path) -> PerformedTrial:
        """Perform and judge one trial."""
        out = folder / f"{trial.name}.jsonl"
        profile = self._recorded_daemon.target.profile.model_copy(update={"face": trial.face})
        self._recorded_daemon.target = replace(self._recorded_daemon.target, profile=profile)
        name = None if trial.mutant is None else trial.mutant.id
        self._change_daemon({"mutant": name, "variants": [variant.id for variant in trial.variants]})
        try:
            scenario = in_host(trial.scenario, trial.face)
            scenario = with_own_summaries(scenario, trial.name) if trial.needs_model else scenario
            error = self._recorded_daemon.perform(replace(scenario, name=trial.name), driver, out)
            return PerformedTrial(trial, judge(trace.read(out)), error, self._applied(trial))
        except SignetConformanceError as failure:
            return PerformedTrial(trial, None, str(failure))

    def _change_daemon(self, changes: Mapping[str, object]) -> Mapping[str, Any]:
        """Change the daemon that can be broken and return its answer; an empty one without such a daemon."""
        if self._daemon is None:
            return {}
        answer = self._daemon.ask(changes, _READY_S)
        if answer.get("ok") is not True:
            raise KitError(f"the daemon could not be changed: {answer.get('error')}", where=str(changes))
        return answer

    def _applied(self, trial: Trial) -> tuple[str, ...]:
        if not trial.variants:
            return ()
        if self._daemon is not None:
            return tuple(self._change_daemon({})["applied"])
        try:
            return tuple(json.loads((self._home / f"{trial.name}.json").read_bytes()))
        except (OSError, ValueError):
            return ()
