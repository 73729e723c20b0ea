"""Generated sessions: drawn from a seed, performed, judged one by one, and followed up where one shows a breach.

A chunk of scenarios is performed by one connector process, so that an example costs no launch; what a chunk
is made of depends on the seed alone, and so do the verdicts, on however many stations the chunks are spread. A
breach is shrunk to the smallest session that still shows the same requirement breached, and reported only
when a fresh connector shows it too.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from signet_conformance import engine, trace
from signet_conformance.contract import requirements
from signet_conformance.drivers.launch import Driver
from signet_conformance.drivers.watched import Watched
from signet_conformance.errors import SignetConformanceError
from signet_conformance.finding import Verdict
from signet_conformance.outcome.broken_off import BrokenOff
from signet_conformance.outcome.generated_summary import BREACHES, Breach, DaemonBreach, Failure, Summary, Tally
from signet_conformance.rules import rules, run_rules
from signet_conformance.rules.daemon import daemon_requirements
from signet_conformance.running.patience import Patience, perform
from signet_conformance.running.station import Station
from signet_conformance.running.workers import Job, Workers
from signet_conformance.scenarios import drawing
from signet_conformance.scenarios.script import Scenario
from signet_conformance.scenarios.strategies import Features

MOST_SHRUNK = 5
"""Breaches that are shrunk in one run; those after it are confirmed as they were found."""
MOST_FAILURES = 5
"""Scenarios that could not be performed which are tried again and kept."""

OF_A_WHOLE_PROCESS = frozenset({"SIG-HEALTH-001", *run_rules()})
"""Requirements on what a connector does once a process, which one session in the middle does not show."""

ONE_PROCESS_A_HOOK = frozenset({"command-hooks"})
"""Drivers of connectors that are a program for each hook."""

_drawing = threading.Lock()
"""Hypothesis keeps state of its own for the process."""


@dataclass(slots=True)
class Chunk:
    """What came of one chunk: verdicts counted, and what is to be followed up, by its place in the chunk."""

    number: int
    performed: int = 0
    features: Features = field(default_factory=Features)
    tally: Tally = field(default_factory=Tally)
    breached: dict[tuple[str, Verdict], list[int]] = field(default_factory=dict)
    traces: dict[int, Path] = field(default_factory=dict)
    failed: dict[int, tuple[Watched, str]] = field(default_factory=dict)
    unstarted: tuple[Watched, str] | None = None
    """How the connector failed when it was greeted, which left the whole chunk undone."""


class GeneratedSessions:
    """The generated sessions of one run: `count` of them, as `seed` determines.

    `failures` is the folder for scenarios that show something (made when the first is saved); `replay`
    gives the command that performs such a file again. When `strict`, a WARN is shrunk like a FAIL.
    """

    def __init__(
        self,
        run: Workers,
        *,
        count: int,
        seed: int,
        failures: Path,
        replay: Callable[[Path], str],
        strict: bool = False,
        patience: Patience | None = None,
    ) -> None:
        self._run = run
        self._count = count
        self._seed = seed
        self._strict = strict
        self._failures = failures
        self._replay = replay
        self._patience = Patience() if patience is None else patience
        self.broken: list[BrokenOff] = []
        """The sessions that could not be performed, by a fresh connector either."""
        self._folder = run.folder / "generated"

    def jobs(self) -> Sequence[Job[Chunk]]:
        """The jobs of performing all chunks."""
        sizes = [min(drawing.CHUNK, self._count - first) for first in range(0, self._count, drawing.CHUNK)]
        if sizes:
            self._folder.mkdir()
        return [self._job(number, size) for number, size in enumerate(sizes)]

    def _job(self, number: int, size: int) -> Job[Chunk]:
        return lambda station: self._perform(station, number, size)

    def _perform(self, station: Station, number: int, size: int) -> Chunk:
        chunk = Chunk(number)
        with _Connector(station, self._patience) as connector:
            try:
                connector.greet()
            except SignetConformanceError as failure:
                if connector.watched is None:
                    raise
                chunk.unstarted = connector.watched, str(failure)
                return chunk
            chunk.features = Features.of(
                station.target.declared,
                connector.hello,
                can_restart=self._run.can_restart,
                lives_on=station.target.processes != "session" and station.target.driver not in ONE_PROCESS_A_HOOK,
            )
            for place, scenario in enumerate(self._draw(chunk)[:size]):
                if self._patience.why is not None:
                    break
                out = self._folder / f"{scenario.name}.jsonl"
                judged = connector.judged(scenario, out, f"{number}x{place}")
                chunk.performed += 1
                if isinstance(judged, str):
                    watched = connector.watched
                    if len(chunk.failed) < MOST_FAILURES and watched is not None and not watched.given_up:
                        chunk.failed[place] = watched, judged
                    out.unlink(missing_ok=True)
                    continue
                chunk.tally.add(judged)
                self._note(chunk, place, judged, out)
        return chunk

    @staticmethod
    def _note(chunk: Chunk, place: int, judged: engine.Judged, out: Path) -> None:
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
            out.unlink()

    def _draw(self, chunk: Chunk) -> Sequence[Scenario]:
        with _drawing:
            return drawing.draw(chunk.features, self._seed, chunk.number)

    # -- what is to be followed up

    def conclude(
        self, chunks: Iterable[Chunk], known: Mapping[str, Verdict], progress: Callable[[str], None]
    ) -> Summary:
        """Follow up what the chunks showed and leave the summary in the folder of the run.

        `known` are the verdicts of the other traces, on the daemon's side too: what they show breached already
        needs no second proof. `progress` is told what is being followed up.
        """
        ordered = sorted(chunks, key=lambda chunk: chunk.number)
        summary = Summary(self._seed)
        for chunk in ordered:
            summary.performed += chunk.performed
            summary.tally.merge(chunk.tally)
        settled = {name for name, verdict in known.items() if verdict in BREACHES}
        # The worst first: they are shrunk, and what else their smallest sessions show needs no proof of its own.
        for verdict in BREACHES:
            for name in rules():
                found = next((chunk for chunk in ordered if (name, verdict) in chunk.breached), None)
                if found is not None and name not in settled:
                    progress(f"following up {verdict} {name}, found by a generated session")
                    shrinks = self._shrinks(verdict, summary.breaches)
                    summary.breaches.append(self._follow_up(found, name, verdict, settled, shrinks=shrinks))
        for verdict in BREACHES:
            for name in daemon_requirements():
                showing = [chunk for chunk in ordered if (name, verdict) in chunk.breached]
                if showing and name not in settled:
                    progress(f"performing again what showed {verdict} {name} on the daemon's side")
                    summary.daemon.append(self._follow_up_daemon(showing, name, verdict, settled))
        for chunk in ordered:
            for place, (_, error) in list(chunk.failed.items())[: MOST_FAILURES - len(summary.failures)]:
                summary.failures.append(self._fail_again(self._draw(chunk)[place], error))
        self._discard(ordered, summary)
        summary.write(self._run.folder)
        return summary

    def give_up(self, chunks: Iterable[Chunk]) -> None:
        """Follow nothing up: keep what could not be performed, and drop what the sessions showed."""
        for chunk in sorted(chunks, key=lambda chunk: chunk.number):
            for place, (watched, error) in chunk.failed.items():
                scenario = self._draw(chunk)[place]
                self._note_broken(scenario, watched, error, self._save(scenario, None))
        shutil.rmtree(self._folder, ignore_errors=True)

    def _note_broken(self, scenario: Scenario, watched: Watched, error: str, path: Path) -> None:
        self.broken.append(watched.told(scenario, error, self._run.target, self._replay(path)))

    def _shrinks(self, verdict: Verdict, before: Sequence[Breach]) -> bool:
        wanted = verdict is Verdict.FAIL or (self._strict and verdict is Verdict.WARN)
        return wanted and sum(breach.tried > 0 for breach in before) < MOST_SHRUNK

    def _follow_up(self, chunk: Chunk, name: str, verdict: Verdict, settled: set[str], *, shrinks: bool) -> Breach:
        station = self._run.stations[0]
        first = chunk.breached[name, verdict][0]
        original = self._draw(chunk)[first]
        scenario, tried = self._shrink(station, chunk, name, verdict) if shrinks else (original, 0)
        again, shown = self._again(station, scenario, name)
        if shown.get(name) is not verdict and scenario is not original:
            # It may have shrunk to something that only a connector with other sessions behind it shows.
            scenario = original
            again, shown = self._again(station, scenario, name)
        confirmed = shown.get(name) is verdict
        kept: tuple[Path, ...] = (chunk.traces[first], again)
        also: list[str] = []
        if confirmed:
            kept = (self._put_beside(again, name, shown, settled),)
            also = [n for n, v in shown.items() if v is verdict and n != name and n not in daemon_requirements()]
        settled.update((name, *also))
        path = self._save(_named(scenario, name), name)
        return Breach(
            requirement=name,
            verdict=verdict,
            confirmed=confirmed,
            also=tuple(also),
            steps=len(scenario.steps),
            drawn=len(original.steps),
            tried=tried,
            scenario=str(path),
            traces=tuple(map(str, kept)),
            replay=self._replay(path),
        )

    def _follow_up_daemon(
        self, chunks: Sequence[Chunk], name: str, verdict: Verdict, settled: set[str]
    ) -> DaemonBreach:
        """Nothing is shrunk: that is the daemon's affair, and the trace is judged and reported as it is."""
        first = chunks[0].breached[name, verdict][0]
        again, shown = self._again(self._run.stations[0], self._draw(chunks[0])[first], name)
        confirmed = shown.get(name) is verdict
        if confirmed:
            self._put_beside(again, name, shown, settled)
        else:
            again.unlink(missing_ok=True)
        settled.add(name)
        return DaemonBreach(name, verdict, confirmed, sum(len(chunk.breached[name, verdict]) for chunk in chunks))

    def _put_beside(self, trace: Path, name: str, shown: Mapping[str, Verdict], settled: set[str]) -> Path:
        """Put a confirming trace beside the other traces, where it is judged and reported like them."""
        settled.update(daemon_requirements().keys() & shown.keys())
        return trace.rename(self._run.folder / f"{name}.jsonl")

    def _again(self, station: Station, scenario: Scenario, name: str) -> tuple[Path, Mapping[str, Verdict]]:
        """Perform a scenario with a fresh connector: its trace, and what that shows breached."""
        out = self._folder / f"{name}-again.jsonl"
        out.unlink(missing_ok=True)
        judged = _Connector(station, self._patience).judged(_named(scenario, name), out, None)
        if isinstance(judged, str):
            return out, {}
        every = {**judged.judgements, **judged.daemon}
        return out, {other: one.verdict for other, one in every.items() if one.verdict in BREACHES}

    def _shrink(self, station: Station, chunk: Chunk, name: str, verdict: Verdict) -> tuple[Scenario, int]:
        known = [place in chunk.breached[name, verdict] for place in range(chunk.performed)]
        out = self._folder / f"{name}-tried.jsonl"
        number = 0
        with _Connector(station, self._patience, frozenset({name})) as connector, _drawing:

            def shows(scenario: Scenario) -> bool:
                nonlocal number
                number += 1
                judged = connector.judged(scenario, out, f"{chunk.number}t{name[-3:]}x{number}")
                out.unlink(missing_ok=True)
                return not isinstance(judged, str) and judged.judgements[name].verdict is verdict

            found, tried = drawing.smallest(chunk.features, self._seed, chunk.number, known, shows)
        return found or self._draw(chunk)[known.index(True)], tried

    def _fail_again(self, scenario: Scenario, error: str) -> Failure:
        out = self._folder / f"{scenario.name}-again.jsonl"
        with _Connector(self._run.stations[0], self._patience) as connector:
            again = connector.judged(scenario, out, None)
        path = self._save(scenario, None)
        confirmed = isinstance(again, str)
        if isinstance(again, str) and connector.watched is not None:
            self._note_broken(scenario, connector.watched, again, path)
        return Failure(again if isinstance(again, str) else error, confirmed, str(path), self._replay(path))

    def _save(self, scenario: Scenario, requirement: str | None) -> Path:
        self._failures.mkdir(parents=True, exist_ok=True)
        path = self._failures / f"{scenario.name}-{drawing.identity(scenario)[:8]}.json"
        found = {"seed": self._seed, **({"requirement": requirement} if requirement else {})}
        path.write_text(json.dumps({**scenario.to_json(), **found}, indent=1) + "\n", encoding="ascii")
        return path

    def _discard(self, chunks: Sequence[Chunk], summary: Summary) -> None:
        kept = {path for breach in summary.breaches for path in breach.traces}
        for path in (path for chunk in chunks for path in chunk.traces.values() if str(path) not in kept):
            path.unlink(missing_ok=True)
        if self._folder.is_dir() and not any(self._folder.iterdir()):
            self._folder.rmdir()


def _named(scenario: Scenario, requirement: str) -> Scenario:
    known = requirements().get(requirement)
    title = requirement if known is None else known.title
    return replace(scenario, name=requirement, title=f"{title} ({len(scenario.steps)} steps)")


class _Connector:
    """Performs one scenario after the other and judges each; a process that broke is replaced by a new one."""

    def __init__(self, station: Station, patience: Patience, only: frozenset[str] | None = None) -> None:
        self._station = station
        self._patience = patience
        self._only = frozenset(rules()) - OF_A_WHOLE_PROCESS if only is None else only
        self._driver: Driver | None = None
        self.hello: Mapping[str, Any] = {}
        self.watched: Watched | None = None
        """What performed last, or was to."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def greet(self) -> Driver:
        """The process, launched and greeted if there is none."""
        if self._driver is None:
            self._driver = self._station.launch({})
            self.watched = Watched(self._driver)
            try:
                self.hello = self.watched.hello()
            except SignetConformanceError as failure:
                self._patience.note(self.watched, str(failure))
                self._close()
                raise
        return self._driver

    def judged(self, scenario: Scenario, out: Path, apart: str | None) -> engine.Judged | str:
        """Perform a scenario and judge its trace; the error when it could not be performed.

        Without `apart` it has a process of its own, as everything has where a process serves one session.
        """
        if self._patience.why is not None:
            return self._patience.why
        if self._station.target.processes == "session":
            apart = None
        try:
            driver = self.greet() if apart is not None else self._station.launch({})
        except SignetConformanceError as failure:
            return str(failure)
        self.watched = Watched(driver)
        error = perform(self._station, scenario, self.watched, out, self._patience, apart=apart)
        if error is not None:
            self._close()
            return error
        return engine.judge(trace.read(out), self._only if apart is not None else None)

    def _close(self) -> None:
        if self._driver is not None:
            self._driver.close()
            self._driver = None
