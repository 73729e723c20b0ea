"""A driven run: performs the scripted scenarios, or those of a file, and the generated sessions."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import NoReturn

from msgspec.structs import replace

from signet_conformance import engine, trace
from signet_conformance.contract import MUST, requirements
from signet_conformance.drivers.watched_driver import WatchedDriver
from signet_conformance.errors import NothingTestedError, TargetError
from signet_conformance.facts import Recording
from signet_conformance.finding import BREACHES, Judgement, Verdict
from signet_conformance.outcome.broken_off import BrokenOff, Shortfall
from signet_conformance.reports.evidence import call_line
from signet_conformance.running import progress
from signet_conformance.running.connector import Patience, perform
from signet_conformance.running.generated import GeneratedSessions
from signet_conformance.running.leftover_processes import MOST_WATCHED, LeftBehind
from signet_conformance.running.recorded_daemon import RecordedDaemon
from signet_conformance.running.recorder import append_marks
from signet_conformance.running.request import DrivenRequest, Invocation
from signet_conformance.running.scenario_choice import (
    EarlierBreaches,
    cost_s,
    fewest_showing,
    scenarios_of,
    waiting_s,
    waits_at_once,
)
from signet_conformance.running.shrinking import Chunk
from signet_conformance.running.workers import Job, RunWorkers
from signet_conformance.scenarios.scenario import Scenario
from signet_conformance.trace.marks import ScenarioEndMark, StepMark, marks_of
from signet_conformance.trace.recordings import delete_recording, recordings_in

STOPPED_BY_USER = "the user stopped the run"
DECIDED = "the selected requirements are decided"
_BETWEEN_CHUNKS = 2
FAILURES = "signet-failures"
"""The folder below the current one for scenarios that show a breach in a run without a report."""


def drive(
    request: DrivenRequest,
    invocation: Invocation,
    tell: progress.Tell,
    workers: RunWorkers | None = None,
    patience: Patience | None = None,
) -> Shortfall | None:
    """Perform a run; its folder gets the traces, the results of the generated sessions, and what broke off.

    Returns what broke off, or was not performed because the user stopped the run; None if the run is complete. `tell`
    is called with each event. The commands for replays begin with `invocation`. A caller may lend `workers`, which
    continue after the run; another thread can end the run early by `patience`. Raises TargetError with exit status 4 if
    no scenario could be performed, NothingTestedError if the connector cannot be started, KeyboardInterrupt if the run
    was stopped before any scenario ended.
    """
    run = _Run(request, invocation, tell, workers, patience or Patience())
    try:
        shortfall = run.perform()
    except KeyboardInterrupt:
        run.count_ended_scenarios()
        if not run.performed:
            raise
        shortfall = run.interrupted()
    if shortfall is not None:
        shortfall.write(request.folder)
    run.tell(progress.DrivingFinished())
    return shortfall


@dataclass
class _Run:
    """A run in progress. `performed` are its scripted scenarios so far, by name."""

    request: DrivenRequest
    invocation: Invocation
    on_event: progress.Tell
    lent_workers: RunWorkers | None
    patience: Patience
    performed: dict[str, _Performed] = field(default_factory=dict)
    _telling: threading.Lock = field(default_factory=threading.Lock)
    _scenarios: Sequence[Scenario] = ()
    _chunks: list[Chunk] = field(default_factory=list)
    _first: Sequence[Scenario] = ()
    """Scenarios that breached the selected requirements last time; they are performed first."""
    _begun: dict[str, WatchedDriver] = field(default_factory=dict)

    def __post_init__(self) -> None:
        request = self.request
        self._target, self._folder = request.target, request.folder
        self._failures = request.folder / "scenarios" if request.report else Path.cwd() / FAILURES
        self._undecided = set(request.options.only or ()) if request.stops_early else None
        """The requirements that no scenario has breached so far; None if the run performs everything."""

    def tell(self, event: progress.Event) -> None:
        """Pass an event on, one at a time."""
        with self._telling:
            self.on_event(event)

    def perform(self) -> Shortfall | None:
        """Perform all of it. Returns what broke off, None if nothing did."""
        request, target = self.request, self._target
        with (
            RunWorkers(target, self._folder, request.daemon, stopwatch=request.stopwatch)
            if self.lent_workers is None
            else nullcontext(self.lent_workers)
        ) as workers:
            scenarios = scenarios_of(request, workers)
            if (only := request.options.only) is not None:
                earlier = EarlierBreaches.of(target)
                saved = () if request.scenarios else workers.usable(earlier.saved(only))
                scenarios = self._begin_with(saved, earlier.breached(only), scenarios)
            self._scenarios = scenarios
            generated = GeneratedSessions(
                workers=workers,
                count=request.sessions,
                seed=request.seed,
                failures=self._failures,
                replay=lambda path: request.replay(path, self.invocation),
                only=request.options.only,
                patience=self.patience,
                tell=self.tell,
            )
            self._begin_to_watch(workers.left_behind)
            workers.look = self._tell_long_waits
            self.tell(progress.DrivingStarted(len(scenarios), request.sessions))
            try:
                self._work(workers, generated)
            except KeyboardInterrupt:
                # The recordings of the unfinished scenarios get a mark, and decide nothing.
                self.patience.give_up(STOPPED_BY_USER)
                raise
            cut_short = self._cut_short()
            if self._undecided == set():
                # A scenario that was not performed would change nothing.
                generated.give_up(self._chunks)
                count = len(scenarios)
                if len(self.performed) < count:
                    words = f"decided after {len(self.performed)} of {count} scenarios"
                    self.tell(progress.RunNote(f"{words}: {request.spelt('all')} performs the others too"))
                broken = self._broken()
                return Shortfall(tuple(broken), count) if broken else None
            if cut_short and len(cut_short) == len(self.performed):
                self._raise_for(cut_short)
            if self.patience.why is not None:
                generated.give_up(self._chunks)
            elif self._chunks:
                generated.conclude(self._chunks, lambda: _verdicts(self._folder, cut_short, request.options.only))
            broken = [*self._broken(), *generated.broken]
            left = self._not_performed()
            if self.patience.why is not None and request.sessions:
                left.append(f"{request.sessions} generated sessions")
            count = len(scenarios) + request.sessions
            return Shortfall(tuple(broken), count, tuple(left), self.patience.why or "") if broken else None

    def _begin_to_watch(self, left_behind: LeftBehind) -> None:
        """Watch for processes that connectors leave. A part of a run watches none beside its work, to end sooner."""
        left_behind.watch(0 if self.lent_workers is not None and self.request.scenarios else MOST_WATCHED)
        left_behind.is_hurried = lambda: self.patience.why is not None
        goes_on = "a process of the connector keeps running after its harness"
        left_behind.note = lambda left_s: self.tell(progress.RunNote(f"{goes_on}: it gets {left_s:.0f} s more"))

    def _tell_long_waits(self) -> None:
        for words in self.patience.long_waits():
            self.tell(progress.RunNote(words))

    def count_ended_scenarios(self) -> None:
        """Count scenarios that had ended when the run was stopped, but whose workers had not reported it yet."""
        for scenario in self._scenarios:
            watched = self._begun.get(scenario.name)
            if scenario.name in self.performed or watched is None or watched.given_up is not None:
                continue
            path = self._folder / f"{scenario.name}.jsonl"
            if path.is_file() and any(end.error is None for end in marks_of(trace.read(path), ScenarioEndMark)):
                self.performed[scenario.name] = _Performed(scenario, watched, None)

    def interrupted(self) -> Shortfall:
        """Return what an interrupted run lacks, and mark the recordings of unfinished scenarios."""
        left = self._not_performed()
        for name in left:
            path = self._folder / f"{name}.jsonl"
            if path.is_file() and not any(marks_of(trace.read(path), ScenarioEndMark)):
                append_marks(path, [ScenarioEndMark(name=name, error=STOPPED_BY_USER)])
        # What generated sessions showed has not been confirmed.
        sessions = [f"{self.request.sessions} generated sessions"] if self.request.sessions else []
        return Shortfall(
            tuple(self._broken()), len(self._scenarios), (*left, *sessions), interrupted_after=len(self.performed)
        )

    def _begin_with(
        self, saved: Sequence[Scenario], shown: Mapping[str, Sequence[str]], scenarios: Sequence[Scenario]
    ) -> Sequence[Scenario]:
        """Return all scenarios, beginning with the fewest that breached the selected requirements last time."""
        self._first = [*saved, *fewest_showing(shown, scenarios, lambda scenario: cost_s(scenario, self._target))]
        names = {scenario.name for scenario in self._first}
        again = {name for where in shown.values() for name in where}
        later = sorted(scenarios, key=lambda scenario: scenario.name not in again)
        return [*self._first, *(scenario for scenario in later if scenario.name not in names)]

    def _work(self, workers: RunWorkers, generated: GeneratedSessions) -> None:
        request, scenarios = self.request, self._scenarios
        # A part of the scenarios says nothing of coverage.
        few = self._target.real is not None and not self._target.every_scenario
        part = bool(request.scenarios) or request.options.only is not None or few

        def jobs_of(some: Sequence[Scenario]) -> Sequence[Job[_Performed | Chunk | None]]:
            return [self._job(scenario, part=part) for scenario in some]

        if self._first:
            self._take(workers.work(jobs_of(self._first)))
            scenarios = scenarios[len(self._first) :]
            if self._undecided == set():
                return
        # The first shows whether the connector can be started. Then the longest jobs, chunks of generated sessions
        # first: a long job that began last would keep one worker busy while the others wait.
        waits_s = {scenario.name: waiting_s(scenario, self._target) for scenario in scenarios[1:]}
        busy = [scenario for scenario in scenarios[1:] if not waits_s[scenario.name]]
        busy.sort(key=lambda scenario: -len(scenario.steps))
        idle = [scenario for scenario in scenarios[1:] if waits_s[scenario.name]]
        idle.sort(key=lambda scenario: -waits_s[scenario.name])
        jobs = [*jobs_of(scenarios[:1]), *_interleave(generated.jobs(), jobs_of(busy))]
        self._take(workers.work(jobs, jobs_of(idle), waits_at_once(waits_s.values())))

    def _job(self, scenario: Scenario, *, part: bool) -> Job[_Performed | Chunk | None]:
        """Return the job that performs a scenario with a connector of its own; it returns None if the run gave up."""

        def job(recorded_daemon: RecordedDaemon) -> _Performed | None:
            if self.patience.why is not None:
                return None
            watched = self._begun[scenario.name] = WatchedDriver(recorded_daemon.launch(scenario.env))
            out = self._folder / f"{scenario.name}.jsonl"
            error = perform(recorded_daemon, scenario, watched, out, self.patience, part=part)
            if watched.given_up == DECIDED:
                # Otherwise its recording would count as one that broke off.
                delete_recording(out)
            return None if watched.given_up else _Performed(scenario, watched, error)

        return job

    def _take(self, results: Generator[_Performed | Chunk | None, None, None]) -> None:
        with closing(results):
            for result in results:
                if isinstance(result, Chunk):
                    self._chunks.append(result)
                elif result is not None:
                    self.performed[result.scenario.name] = result
                    self.tell(progress.ScenarioPerformed(result.scenario.name, result.error))
                    if self._undecided and result.error is None:
                        self._decide(result.scenario)

    def _decide(self, scenario: Scenario) -> None:
        """Note what a scenario breached, and end the run once all selected requirements are breached."""
        assert self._undecided is not None  # noqa: S101 - the caller looked
        recorded = trace.read(self._folder / f"{scenario.name}.jsonl")
        judged = engine.judge(recorded, frozenset(self._undecided), self.request.options.contract)
        self._undecided -= {name for name, judgement in judged.judgements.items() if _is_worst(judgement)}
        if not self._undecided:
            self.patience.give_up(DECIDED)

    def _cut_short(self) -> Sequence[_Performed]:
        in_order = [self.performed[each.name] for each in self._scenarios if each.name in self.performed]
        return [each for each in in_order if each.error is not None]

    def _broken(self) -> Sequence[BrokenOff]:
        unstarted = [(chunk.number, *chunk.unstarted) for chunk in self._chunks if chunk.unstarted is not None]
        return [*map(self._broken_off, self._cut_short()), *itertools.starmap(self._unstarted, unstarted)]

    def _broken_off(self, performed: _Performed) -> BrokenOff:
        scenario = performed.scenario
        replay = self.request.replay(_save(scenario, self._failures), self.invocation)
        description = performed.watched.describe(scenario, performed.error or "", self._target, replay)
        return replace(description, refused=self._last_refused(scenario))

    def _unstarted(self, number: int, watched: WatchedDriver, error: str) -> BrokenOff:
        sessions = Scenario(f"generated sessions, part {number + 1}", "", ())
        return watched.describe(sessions, error, self._target, self.request.replay_sessions(self.invocation))

    def _last_refused(self, scenario: Scenario) -> str:
        """Return a line on the last failed request of the last step: mostly the cause, when a scenario broke off."""
        path = self._folder / f"{scenario.name}.jsonl"
        if not path.is_file():
            return ""
        recording = Recording(trace.read(path))
        step = max((mark.seq for mark in recording.marks(StepMark)), default=0)
        later = (call for call in recording.calls if call.seq > step)
        refused = [call for call in later if call.status is None or call.status >= HTTPStatus.BAD_REQUEST]
        return call_line(refused[-1]) if refused else ""

    def _raise_for(self, cut_short: Sequence[_Performed]) -> NoReturn:
        # The first scenario stands for all.
        first = cut_short[0]
        failure = first.watched.failure
        silent = not any(trace.read(path).exchanges for path in recordings_in(self._folder))
        if isinstance(failure, NothingTestedError) and silent:
            raise failure
        broken = first.watched.describe(first.scenario, first.error or "", self._target, "")
        remedy = broken.fault if failure is None or failure.remedy is None else failure.remedy
        if refused := self._last_refused(first.scenario):
            remedy += f"\n  before that: {refused}"
        if broken.tail and broken.tail[-1] not in remedy:
            remedy += "\n  its standard error ends:" + "".join(f"\n    {line}" for line in broken.tail)
        count, why = len(self._scenarios), self.patience.why
        error = TargetError(
            f"none of {count} scenarios could be performed;"
            f" the first, {broken.scenario}, {broken.where}: {broken.reason}"
            + (f"; given up: {why}" if why is not None else ""),
            remedy=f"{remedy}\n  traces so far: {self._folder}",
        )
        error.exit_status = 4
        raise error

    def _not_performed(self) -> list[str]:
        return [scenario.name for scenario in self._scenarios if scenario.name not in self.performed]


@dataclass(frozen=True, slots=True)
class _Performed:
    """A scripted scenario that was performed, and the error that cut it short, if any."""

    scenario: Scenario
    watched: WatchedDriver
    error: str | None


def _interleave(
    chunks: Sequence[Job[_Performed | Chunk | None]], others: Sequence[Job[_Performed | Chunk | None]]
) -> Iterator[Job[_Performed | Chunk | None]]:
    """Yield the chunks with other jobs in between: chunks are drawn one at a time, so two in a row would wait."""
    left = iter(others)
    for chunk in chunks:
        yield chunk
        yield from itertools.islice(left, _BETWEEN_CHUNKS)
    yield from left


def _is_worst(judgement: Judgement) -> bool:
    """Whether no other recording can make it worse."""
    if judgement.verdict is Verdict.WARN:
        entry = requirements().get(judgement.requirement)
        return entry is not None and entry.level != MUST
    return judgement.verdict in (Verdict.FAIL, Verdict.ERROR)


def _save(scenario: Scenario, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{scenario.name}.json"
    path.write_text(json.dumps(scenario.to_json(), indent=1) + "\n", encoding="ascii")
    return path


def _verdicts(folder: Path, cut_short: Sequence[_Performed], only: frozenset[str] | None) -> dict[str, Verdict]:
    left_out = {each.scenario.name for each in cut_short}
    paths = (path for path in recordings_in(folder) if path.stem not in left_out)
    judged = engine.judge_run([trace.read(path) for path in paths], only)
    verdicts = {name: judgement.verdict for name, judgement in judged.together.items()}
    for each in judged.traces:
        verdicts.update((n, judgement.verdict) for n, judgement in each.daemon.items() if judgement.verdict in BREACHES)
    return verdicts
