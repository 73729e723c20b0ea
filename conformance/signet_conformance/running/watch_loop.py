"""The loop of `run --watch`: drives a connector again whenever its files change, the broken scenarios first.

A pass has up to three stages. The first performs a few scenarios that show the known breaches again or, without any,
that call every operation. If one fails, the second performs the others that showed the breach or call the same
operations; otherwise the whole run follows. The next change ends a pass early.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from signet_conformance.errors import SignetConformanceError
from signet_conformance.finding import BREACHES, FOLDING_ORDER, Verdict
from signet_conformance.outcome.conclusion import Conclusion
from signet_conformance.reports.ending import scenario_of
from signet_conformance.running.connector import Patience
from signet_conformance.running.performance import DrivenPerformance
from signet_conformance.running.progress import Tell
from signet_conformance.running.request import DrivenRequest, Invocation
from signet_conformance.running.scenario_choice import cost_s, fewest_showing, scenarios_of
from signet_conformance.running.workers import RunWorkers
from signet_conformance.scenarios.scenario import Scenario
from signet_conformance.targets import Target
from signet_conformance.targets.sources import SourceFiles

CHANGED = "the connector's files changed"


class Stage(StrEnum):
    """A part of a pass."""

    BROKEN = "broken"
    RELATED = "related"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class Changes:
    """The requirements that are newly breached, no longer breached, and still breached after a pass.

    `unshown` were breached before; no scenario of this pass breaches them, but not all that did were performed.
    """

    new: Sequence[str]
    gone: Sequence[str]
    still: Sequence[str]
    unshown: Sequence[str]


@dataclass(frozen=True, slots=True)
class StageOver:
    """A stage is over. `saved` are the files whose change began the pass, none for the first pass."""

    stage: Stage
    saved: Sequence[Path]
    performance: DrivenPerformance
    changes: Changes
    performed: int
    """How many scenarios the pass has performed."""
    of: int
    after_s: float
    """Seconds since the files were saved, or since the pass began."""


@dataclass(frozen=True, slots=True)
class PassFailed:
    """A pass could not be performed: the connector cannot be started, its settings cannot be read."""

    failure: SignetConformanceError


@dataclass(frozen=True, slots=True)
class Waiting:
    """The loop waits for a change of one of the `files`, counted, below `places`; `compiled` leaves out TypeScript."""

    places: Sequence[Path]
    files: int
    compiled: bool


@dataclass(frozen=True, slots=True)
class Saved:
    """Files were saved, and a pass begins."""

    saved: Sequence[Path]


LoopEvent = StageOver | PassFailed | Waiting | Saved


@dataclass(slots=True)
class LatestResults:
    """Breaches and calls of the newest recording of each scenario."""

    broken: dict[str, set[str]] = field(default_factory=dict)
    """Requirement to the scenarios that breach it; empty if only the run as a whole does."""
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    subjects: dict[str, set[str]] = field(default_factory=dict)
    """Requirement to the operations of the calls that breach it."""
    calls: dict[str, set[str]] = field(default_factory=dict)
    """Scenario to the operations that it calls."""

    @property
    def failing(self) -> Mapping[str, set[str]]:
        """The requirements that fail; if none does, those that warn."""
        failing = {name: where for name, where in self.broken.items() if self.verdicts[name] is not Verdict.WARN}
        return failing or self.broken

    @property
    def callers(self) -> Mapping[str, set[str]]:
        """The scenarios that call each operation."""
        callers: dict[str, set[str]] = {}
        for scenario, calls in self.calls.items():
            for operation in calls:
                callers.setdefault(operation, set()).add(scenario)
        return callers

    def related(self, requirements: Collection[str]) -> set[str]:
        """The scenarios that breach these requirements, or that call the operations of the breaches."""
        operations = {operation for name in requirements for operation in self.subjects.get(name, ())}
        showing = {scenario for name in requirements for scenario in self.broken.get(name, ())}
        return showing | {scenario for scenario, calls in self.calls.items() if calls & operations}


class Pass:
    """One pass: the performed scenarios, and their breaches compared with those `before`."""

    def __init__(self, before: LatestResults) -> None:
        self._before = before
        self.performed: set[str] = set()
        self._results = LatestResults()
        self._unclear: dict[str, set[str]] = {}

    def add(self, conclusion: Conclusion, *, whole: bool) -> None:
        """Add the results of a stage."""
        now, known = self._results, conclusion.known_reasons
        for judged in conclusion.judged:
            scenario = scenario_of(judged) or ""
            self.performed.add(scenario)
            calls = judged.recording.by_seq
            now.calls[scenario] = {call.operation for call in calls.values() if call.operation is not None}
            for name, judgement in judged.judgements.items():
                if judgement.verdict is Verdict.INCONCLUSIVE:
                    self._unclear.setdefault(name, set()).add(scenario)
                if judgement.verdict not in BREACHES or name in known:
                    continue
                now.broken.setdefault(name, set()).add(scenario)
                numbers = {number for finding in judgement.findings for number in finding.exchanges}
                subjects = now.subjects.setdefault(name, set())
                subjects.update(call.operation for n in numbers if (call := calls.get(n)) and call.operation)
                now.verdicts[name] = min(
                    judgement.verdict, now.verdicts.get(name, judgement.verdict), key=FOLDING_ORDER.index
                )
        for name, verdict in conclusion.verdicts.items() if whole else ():
            if verdict in BREACHES and name not in known:
                now.broken.setdefault(name, set())
                now.verdicts[name] = verdict

    @property
    def fails(self) -> bool:
        """Whether a scenario of this pass fails."""
        return any(verdict is not Verdict.WARN for verdict in self._results.verdicts.values())

    def changes(self, *, whole: bool) -> Changes:
        """Compare the breaches of this pass with those before it."""
        before, now = self._before.broken, self._results.broken
        absent = [name for name in before if name not in now]
        gone = [name for name in absent if whole or self._is_gone(name)]
        return Changes(
            new=[name for name in now if name not in before],
            gone=gone,
            still=[name for name in before if name in now],
            unshown=[name for name in absent if name not in gone],
        )

    def _is_gone(self, name: str) -> bool:
        where = self._before.broken[name]
        return bool(where) and where <= self.performed and where.isdisjoint(self._unclear.get(name, ()))

    def outcome(self, *, whole: bool) -> LatestResults:
        """Return the breaches and calls that are known after the pass."""
        if whole:
            return self._results
        before, now, changes = self._before, self._results, self.changes(whole=False)
        broken = {name: set(where) for name, where in now.broken.items()}
        for name in (*changes.still, *changes.unshown):
            broken[name] = broken.get(name, set()) | (before.broken[name] - self.performed)
        return LatestResults(
            broken=broken,
            verdicts={**{name: before.verdicts[name] for name in changes.unshown}, **now.verdicts},
            subjects={**{name: before.subjects.get(name, set()) for name in changes.unshown}, **now.subjects},
            calls={**before.calls, **now.calls},
        )


class Loop:
    """Passes over one target. `reload` reads it again when its settings change; `progress` shows that of a stage."""

    def __init__(
        self,
        request: DrivenRequest,
        invocation: Invocation,
        reload: Callable[[], Target],
        progress: Callable[[], AbstractContextManager[Tell]],
    ) -> None:
        self._request = request
        self._invocation = invocation
        self._reload = reload
        self._progress = progress
        self._files = SourceFiles(request.target)
        self._known = LatestResults()
        self._stages = 0

    @property
    def is_broken(self) -> bool:
        """Whether the newest pass showed a breach."""
        return bool(self._known.broken)

    def events(self) -> Generator[LoopEvent, None, None]:
        """Perform passes until KeyboardInterrupt; yield their events."""
        saved: Sequence[Path] = ()
        while True:
            with RunWorkers(self._request.target, self._request.folder, self._request.daemon) as workers:
                while True:
                    try:
                        yield from self._pass(workers, saved)
                    except SignetConformanceError as failure:
                        yield PassFailed(failure)
                    yield Waiting(self._files.places, len(self._files), self._files.compiled)
                    saved = self._files.await_change()
                    yield Saved(saved)
                    if self._files.settings in saved:
                        break
            yield from self._read_settings()

    def _read_settings(self) -> Iterator[LoopEvent]:
        while True:
            try:
                target = self._reload()
                break
            except SignetConformanceError as failure:
                yield PassFailed(failure)
                yield Saved(self._files.await_change())
        self._request = replace(self._request, target=target)
        self._files = SourceFiles(target)

    def _pass(self, workers: RunWorkers, saved: Sequence[Path]) -> Iterator[LoopEvent]:
        began = _saved_at(saved)
        scenarios = scenarios_of(self._request, workers)
        known, current = self._known, Pass(self._known)
        for path in self._request.folder.glob("stage-*"):
            shutil.rmtree(path, ignore_errors=True)

        def over(stage: Stage, performance: DrivenPerformance) -> StageOver:
            whole = stage is Stage.WHOLE
            current.add(performance.conclusion, whole=whole)
            changes = current.changes(whole=whole)
            self._known = current.outcome(whole=whole)
            count = len(current.performed)
            return StageOver(stage, saved, performance, changes, count, len(scenarios), max(0.0, time.time() - began))

        def cost(scenario: Scenario) -> float:
            return cost_s(scenario, self._request.target)

        for stage in (Stage.BROKEN, Stage.RELATED):
            if stage is Stage.BROKEN:
                chosen = fewest_showing(known.failing or known.callers, scenarios, cost)
            else:
                related = self._known.related(self._known.failing) - current.performed
                chosen = [each for each in scenarios if each.name in related]
            if not chosen:
                continue
            performance = self._perform(workers, tuple(chosen))
            if performance is None:
                return
            yield over(stage, performance)
            if not current.fails:
                break
        if not current.fails:
            performance = self._perform(workers, self._request.scenarios)
            if performance is not None:
                current = Pass(known)
                yield over(Stage.WHOLE, performance)

    def _perform(self, workers: RunWorkers, scenarios: tuple[Scenario, ...]) -> DrivenPerformance | None:
        """Perform a stage; all without `scenarios`. Return None if the files changed. Raises KeyboardInterrupt."""
        self._stages += 1
        folder = self._request.folder / f"stage-{self._stages}"
        folder.mkdir()
        performance = DrivenPerformance(replace(self._request, folder=folder, scenarios=scenarios))
        patience = Patience()
        with self._progress() as tell, self._files.watching(lambda: patience.give_up(CHANGED)):
            try:
                performance.drive(self._invocation, tell, workers, patience)
            except SignetConformanceError:
                if patience.why != CHANGED:
                    raise
        if patience.why == CHANGED:
            return None
        performance.remember()
        return performance


def _saved_at(saved: Sequence[Path]) -> float:
    """The time at which the last of the files was saved, if the files tell a recent one; else now."""
    now = time.time()
    times = [now]
    for path in saved:
        with suppress(OSError):
            times.append(path.stat().st_mtime)
    recent = [each for each in times[1:] if now - 10 < each <= now]
    return max(recent, default=now)
