"""Generated sessions: drawn from a seed, performed, judged one by one; breaches are followed up.

One connector process performs a chunk of scenarios, which saves launches. The seed alone determines the scenarios of a
chunk, and so the verdicts, for any number of workers. Chunks hold only steps that the driver performs: its answer to
hello lists them; without that list one trial session tests the two halves of a compaction.
"""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from signet_conformance import engine
from signet_conformance.contract import daemon_requirements
from signet_conformance.drivers.process import ConnectorDriver, ConnectorNotLoadedError
from signet_conformance.errors import SignetConformanceError, printable
from signet_conformance.finding import BREACHES, Verdict
from signet_conformance.outcome.broken_off import BrokenOff
from signet_conformance.outcome.generated_summary import GeneratedSummary
from signet_conformance.outcome.time_spent import TimePart
from signet_conformance.rules import rules
from signet_conformance.running.connector import LiveConnector, Patience
from signet_conformance.running.progress import FollowingUp, SessionPerformed, Tell, ignore_event
from signet_conformance.running.recorded_daemon import RecordedDaemon
from signet_conformance.running.shrinking import Chunk, FollowUp
from signet_conformance.running.workers import Job, RunWorkers
from signet_conformance.scenarios import steps
from signet_conformance.scenarios.features import CHUNK, HALVES, WHOLE_STEPS, Features, listed_steps, possible_steps
from signet_conformance.scenarios.outages import OUTAGES, obstacle, recorded_outages, usable
from signet_conformance.trace import Trace
from signet_conformance.trace.marks import SkippedMark, StepMark, marks_of
from signet_conformance.trace.recordings import delete_recording

MOST_FAILURES = 5
"""The most scenarios that broke off which are tried again and kept."""


@dataclass(kw_only=True)
class GeneratedSessions:
    """The generated sessions of one run: `count` of them, as `seed` determines.

    `failures` is the folder for scenarios that show a breach, made when the first is saved; `replay` returns the
    command that performs such a file again. `only` are the requirements asked for, None for all. `tell` hears of every
    session, from the workers' threads.
    """

    workers: RunWorkers
    count: int
    seed: int
    failures: Path
    replay: Callable[[Path], str]
    only: frozenset[str] | None = None
    patience: Patience = field(default_factory=Patience)
    tell: Tell = ignore_event
    _asking: threading.Lock = field(default_factory=threading.Lock, init=False)
    _known_steps: PerformableSteps | None = field(default=None, init=False)

    @property
    def _folder(self) -> Path:
        return self.workers.folder / "generated"

    @cached_property
    def _follow_up(self) -> FollowUp:
        return FollowUp(
            recorded_daemon=self.workers.recorded_daemons[0],
            patience=self.patience,
            folder=self._folder,
            run_folder=self.workers.folder,
            failures=self.failures,
            replay=self.replay,
            only=self.only,
        )

    @property
    def broken(self) -> Sequence[BrokenOff]:
        """The sessions that a fresh connector could not perform either."""
        return self._follow_up.broken

    def jobs(self) -> Sequence[Job[Chunk]]:
        """Return the jobs that perform all chunks."""
        sizes = [min(CHUNK, self.count - first) for first in range(0, self.count, CHUNK)]
        if sizes:
            self._folder.mkdir()
        return [partial(self._perform, number=number, size=size) for number, size in enumerate(sizes)]

    def _perform(self, recorded_daemon: RecordedDaemon, number: int, size: int) -> Chunk:
        chunk = Chunk(self.seed, number)
        with closing(LiveConnector(recorded_daemon, self.patience, self.only)) as connector:
            try:
                connector.greet()
            except ConnectorNotLoadedError:
                # The scripted scenarios report it.
                return chunk
            except SignetConformanceError as failure:
                if connector.watched is None:
                    raise
                chunk.unstarted = connector.watched, str(failure)
                return chunk
            chunk.features = Features.of(
                recorded_daemon.target.declared,
                self._performable_steps(recorded_daemon, connector.hello).steps,
                can_restart=self.workers.can_restart,
                lives_on=recorded_daemon.target.processes != "session"
                and not recorded_daemon.target.kind.process_per_hook,
            )
            with recorded_daemon.stopwatch.on(TimePart.DRAWING):
                drawn = chunk.draw()[:size]
            for place, scenario in enumerate(drawn):
                if self.patience.why is not None:
                    break
                out = self._folder / f"{scenario.name}.jsonl"
                judged = connector.perform_and_judge(scenario, out, f"{number}x{place}")
                chunk.performed += 1
                self.tell(SessionPerformed())
                if isinstance(judged, str):
                    watched = connector.watched
                    if len(chunk.failed) < MOST_FAILURES and watched is not None and not watched.given_up:
                        chunk.failed[place] = watched, judged
                    delete_recording(out)
                    continue
                chunk.tally.add(judged)
                chunk.outages += recorded_outages(judged.trace)
                chunk.skipped += skipped_steps(judged.trace)
                self._note(chunk, place, judged, out)
        return chunk

    def _performable_steps(self, recorded_daemon: RecordedDaemon, hello: Mapping[str, Any]) -> PerformableSteps:
        # Asked once: all chunks must be drawn with the same features.
        with self._asking:
            if self._known_steps is None:
                self._known_steps = find_performable_steps(recorded_daemon, hello)
            return self._known_steps

    @staticmethod
    def _note(chunk: Chunk, place: int, judged: engine.JudgedTrace, out: Path) -> None:
        keep = False
        for name, judgement in (*judged.judgements.items(), *judged.daemon.items()):
            if judgement.verdict in BREACHES:
                places = chunk.breached.setdefault((name, judgement.verdict), [])
                keep = keep or not places
                places.append(place)
        if keep:
            chunk.traces[place] = out
        else:
            # Thousands of sessions leave no more behind than one does.
            delete_recording(out)

    def conclude(self, chunks: Iterable[Chunk], known: Callable[[], Mapping[str, Verdict]]) -> GeneratedSummary:
        """Follow up the breaches of the chunks, and write the summary into the folder of the run.

        `known` returns the verdicts of the other traces, of both sides: a breach among them needs no second proof. It
        is called only if the sessions showed a breach.
        """
        ordered = sorted(chunks, key=lambda chunk: chunk.number)
        summary = GeneratedSummary(self.seed)
        for chunk in ordered:
            summary.performed += chunk.performed
            summary.tally.merge(chunk.tally)
        self._note_coverage(ordered, summary)
        breached = any(chunk.breached for chunk in ordered)
        settled = {name for name, verdict in known().items() if verdict in BREACHES} if breached else set()
        # The worst first: they are shrunk, and other breaches of their smallest sessions need no proof of their own.
        for verdict in BREACHES:
            for name in rules():
                showing = [chunk for chunk in ordered if (name, verdict) in chunk.breached]
                if showing and name not in settled:
                    self.tell(FollowingUp(name, verdict, shrinks=self._follow_up.shrinks(verdict)))
                    summary.breaches.append(self._follow_up.breach(showing[0], name, verdict, settled))
        for verdict in BREACHES:
            for name in daemon_requirements():
                showing = [chunk for chunk in ordered if (name, verdict) in chunk.breached]
                if showing and name not in settled:
                    self.tell(FollowingUp(name, verdict, daemon=True))
                    summary.daemon.append(self._follow_up.daemon_breach(showing, name, verdict, settled))
        for chunk in ordered:
            for place, (_, error) in list(chunk.failed.items())[: MOST_FAILURES - len(summary.failures)]:
                summary.failures.append(self._follow_up.failure(chunk, place, error))
        self._discard(ordered, summary)
        summary.write(self.workers.folder)
        return summary

    def _note_coverage(self, chunks: Sequence[Chunk], summary: GeneratedSummary) -> None:
        greeted = [chunk for chunk in chunks if chunk.performed]
        if not greeted or self._known_steps is None:
            return
        target, features = self.workers.target, greeted[0].features
        held = sum((chunk.outages for chunk in greeted), Counter[str]())
        summary.skipped = dict(sum((chunk.skipped for chunk in greeted), Counter[str]()))
        lost = self._known_steps.describe_lost(possible_steps(target.declared), own_program=target.kind.own_program)
        if lost is not None:
            summary.lost.append(lost)
        enough = len(usable(features)) + 1
        for outage in OUTAGES:
            why = obstacle(outage, features)
            if why is None or held[outage.name]:
                summary.outages[outage.name] = held[outage.name]
            if not held[outage.name]:
                if why is None and summary.performed < enough:
                    why = f"{enough} sessions or more hold every outage"
                elif why is None:
                    why = f"no request of the connector met it; see what scenario {outage.scripted} shows"
                summary.lost.append(f"no generated session holds the outage {outage.name!r}: {why}")

    def give_up(self, chunks: Iterable[Chunk]) -> None:
        """Keep what could not be performed, and drop the rest without following it up."""
        for chunk in sorted(chunks, key=lambda chunk: chunk.number):
            self._follow_up.keep(chunk)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _discard(self, chunks: Sequence[Chunk], summary: GeneratedSummary) -> None:
        kept = {path for breach in summary.breaches for path in breach.traces}
        for path in (path for chunk in chunks for path in chunk.traces.values() if str(path) not in kept):
            delete_recording(path)
        if self._folder.is_dir() and not any(self._folder.iterdir()):
            self._folder.rmdir()


_SESSION = "asked-for-steps"
_TRIAL_STEPS: tuple[steps.ConnectorStep, ...] = (
    steps.PromptStep.model_validate({"session": _SESSION, "text": "What is next?", "reply": "Nothing."}),
    steps.PreCompactionStep(session=_SESSION),
    steps.CompactionCompleteStep(session=_SESSION, summary="Nothing was changed."),
    steps.EndStep(session=_SESSION),
)


@dataclass(frozen=True, slots=True)
class PerformableSteps:
    """The steps that a driver performs. `listed`: its answer to hello lists them; `lacks`: why it gets no halves."""

    steps: frozenset[str]
    listed: bool
    lacks: str | None = None

    def describe_lost(self, possible: frozenset[str], *, own_program: bool) -> str | None:
        """Say which of the `possible` steps generated sessions lack, and what to do; None if they lack none."""
        advice = 'list its steps in the answer to hello ("steps": docs/driver-protocol.md)'
        missing = ", ".join(sorted(possible - self.steps))
        if not missing:
            if self.listed or not own_program:
                return None
            return f"the driver does not say which steps it performs; the kit found out by trying: {advice}"
        if self.listed:
            return f"no generated session holds {missing}: the driver does not list it among its steps"
        lost = f"no generated session holds {missing}: the driver does not list its steps, and when tried, {self.lacks}"
        return f"{lost}; {advice}" if own_program else lost


def find_performable_steps(recorded_daemon: RecordedDaemon, hello: Mapping[str, Any]) -> PerformableSteps:
    """Find out the steps of a driver: from its answer to hello, or else in a session that no trace holds."""
    said = listed_steps(hello)
    if said is not None:
        return PerformableSteps(said, listed=True)
    try:
        with closing(recorded_daemon.launch({})) as driver:
            return _try_steps(driver, recorded_daemon)
    except SignetConformanceError as failure:
        return PerformableSteps(WHOLE_STEPS, listed=False, lacks=printable(failure.message, 200))


def _try_steps(driver: ConnectorDriver, recorded_daemon: RecordedDaemon) -> PerformableSteps:
    greeted: list[Mapping[str, Any]] = [driver.hello()]

    def on_event(event: Mapping[str, Any]) -> None:
        # A process for each session is greeted when the session begins.
        if event.get("event") == "hello" and isinstance(event.get("about"), dict):
            greeted.append(event["about"])

    agents = recorded_daemon.target.declared.agents
    named = {"agent": agents[0]} if agents else {}
    start = steps.StartStep.model_validate({"session": _SESSION, "project": "/workspace/src/acme-api", **named})
    driver.perform(start.to_json(), on_event)
    for about in greeted:
        if (said := listed_steps(about)) is not None:
            return PerformableSteps(said, listed=True)
    for step in _TRIAL_STEPS:
        result = driver.perform(step.to_json(), on_event)
        if "skipped" in result and step.step in HALVES:
            return PerformableSteps(
                WHOLE_STEPS, listed=False, lacks=f"it skips {step.step}: {printable(result['skipped'], 200)}"
            )
    return PerformableSteps(WHOLE_STEPS | HALVES, listed=False)


def skipped_steps(recorded: Trace) -> Counter[str]:
    """Count the skipped steps of a recording by kind."""
    kinds = {step.index: step.step or "a step" for step in marks_of(recorded, StepMark)}
    return Counter(kinds.get(mark.index, "a step") for mark in marks_of(recorded, SkippedMark))
