"""Generated sessions: drawn from a seed, performed, judged one by one, and followed up where one shows a breach.

A chunk of scenarios is performed by one connector process, so that an example costs no launch; what a chunk
is made of depends on the seed alone, and so do the verdicts, whatever the number of workers.
"""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from signet_conformance import engine
from signet_conformance.contract import daemon_requirements
from signet_conformance.drivers.process import ConnectorNotLoadedError
from signet_conformance.errors import SignetConformanceError
from signet_conformance.finding import BREACHES, Verdict
from signet_conformance.outcome.broken_off import BrokenOff
from signet_conformance.outcome.generated_summary import Summary
from signet_conformance.outcome.time_spent import Part
from signet_conformance.rules import rules
from signet_conformance.running.asking import Performs, performed_steps, skipped_steps
from signet_conformance.running.chunk import Chunk
from signet_conformance.running.connector import Connector
from signet_conformance.running.events import FollowingUp, SessionPerformed, Tell, unheard
from signet_conformance.running.patience import Patience
from signet_conformance.running.shrinking import FollowUp
from signet_conformance.running.station import Station
from signet_conformance.running.workers import Job, Workers
from signet_conformance.scenarios.features import CHUNK, Features, possible_steps
from signet_conformance.scenarios.outages import OUTAGES, obstacle, recorded_outages, usable

MOST_FAILURES = 5
"""Scenarios that could not be performed which are tried again and kept."""


class GeneratedSessions:
    """The generated sessions of one run: `count` of them, as `seed` determines.

    `failures` is the folder for scenarios that show something (made when the first is saved); `replay`
    gives the command that performs such a file again. `only` are the requirements that were asked for, None
    for all. `tell` hears of every session, from the workers' threads.
    """

    def __init__(
        self,
        workers: Workers,
        *,
        count: int,
        seed: int,
        failures: Path,
        replay: Callable[[Path], str],
        only: frozenset[str] | None = None,
        patience: Patience | None = None,
        tell: Tell = unheard,
    ) -> None:
        self._workers = workers
        self._count = count
        self._seed = seed
        self._only = only
        self._patience = Patience() if patience is None else patience
        self._tell = tell
        self._folder = workers.folder / "generated"
        self._asking = threading.Lock()
        self._asked: Performs | None = None
        self._follow_up = FollowUp(
            workers.stations[0],
            self._patience,
            folder=self._folder,
            beside=workers.folder,
            failures=failures,
            replay=replay,
            only=only,
        )

    @property
    def broken(self) -> Sequence[BrokenOff]:
        """The sessions that could not be performed, by a fresh connector either."""
        return self._follow_up.broken

    def jobs(self) -> Sequence[Job[Chunk]]:
        """The jobs of performing all chunks."""
        sizes = [min(CHUNK, self._count - first) for first in range(0, self._count, CHUNK)]
        if sizes:
            self._folder.mkdir()
        return [self._job(number, size) for number, size in enumerate(sizes)]

    def _job(self, number: int, size: int) -> Job[Chunk]:
        return lambda station: self._perform(station, number, size)

    def _perform(self, station: Station, number: int, size: int) -> Chunk:
        chunk = Chunk(self._seed, number)
        with Connector(station, self._patience, self._only) as connector:
            try:
                connector.greet()
            except ConnectorNotLoadedError:
                # The scripted scenarios say it; no session can be performed.
                return chunk
            except SignetConformanceError as failure:
                if connector.watched is None:
                    raise
                chunk.unstarted = connector.watched, str(failure)
                return chunk
            chunk.features = Features.of(
                station.target.declared,
                self._performs(station, connector.hello).steps,
                can_restart=self._workers.can_restart,
                lives_on=station.target.processes != "session" and not station.target.kind.process_a_hook,
            )
            with station.stopwatch.on(Part.DRAWING):
                drawn = chunk.draw()[:size]
            for place, scenario in enumerate(drawn):
                if self._patience.why is not None:
                    break
                out = self._folder / f"{scenario.name}.jsonl"
                judged = connector.judged(scenario, out, f"{number}x{place}")
                chunk.performed += 1
                self._tell(SessionPerformed(scenario.name))
                if isinstance(judged, str):
                    watched = connector.watched
                    if len(chunk.failed) < MOST_FAILURES and watched is not None and not watched.given_up:
                        chunk.failed[place] = watched, judged
                    out.unlink(missing_ok=True)
                    continue
                chunk.tally.add(judged)
                chunk.outages += recorded_outages(judged.trace)
                chunk.skipped += skipped_steps(judged.trace)
                self._note(chunk, place, judged, out)
        return chunk

    def _performs(self, station: Station, hello: Mapping[str, Any]) -> Performs:
        """What the driver performs, found out once for the run: all chunks must be made of the same."""
        with self._asking:
            if self._asked is None:
                self._asked = performed_steps(station, hello)
            return self._asked

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

    # -- what is to be followed up

    def conclude(self, chunks: Iterable[Chunk], known: Callable[[], Mapping[str, Verdict]]) -> Summary:
        """Follow up what the chunks showed and leave the summary in the folder of the run.

        `known` gives the verdicts of the other traces, on the daemon's side too: what they show breached already
        needs no second proof. It is asked only where the sessions showed a breach.
        """
        ordered = sorted(chunks, key=lambda chunk: chunk.number)
        summary = Summary(self._seed)
        for chunk in ordered:
            summary.performed += chunk.performed
            summary.tally.merge(chunk.tally)
        self._cover(ordered, summary)
        breached = any(chunk.breached for chunk in ordered)
        settled = {name for name, verdict in known().items() if verdict in BREACHES} if breached else set()
        # The worst first: they are shrunk, and what else their smallest sessions show needs no proof of its own.
        for verdict in BREACHES:
            for name in rules():
                showing = [chunk for chunk in ordered if (name, verdict) in chunk.breached]
                if showing and name not in settled:
                    self._tell(FollowingUp(name, verdict, shrinks=self._follow_up.shrinks(verdict)))
                    summary.breaches.append(self._follow_up.breach(showing[0], name, verdict, settled))
        for verdict in BREACHES:
            for name in daemon_requirements():
                showing = [chunk for chunk in ordered if (name, verdict) in chunk.breached]
                if showing and name not in settled:
                    self._tell(FollowingUp(name, verdict, daemon=True))
                    summary.daemon.append(self._follow_up.daemon_breach(showing, name, verdict, settled))
        for chunk in ordered:
            for place, (_, error) in list(chunk.failed.items())[: MOST_FAILURES - len(summary.failures)]:
                summary.failures.append(self._follow_up.failure(chunk, place, error))
        self._discard(ordered, summary)
        summary.write(self._workers.folder)
        return summary

    def _cover(self, chunks: Sequence[Chunk], summary: Summary) -> None:
        """Note which outages the sessions held, and what they could not hold."""
        greeted = [chunk for chunk in chunks if chunk.performed]
        if not greeted or self._asked is None:
            return
        target, features = self._workers.target, greeted[0].features
        held = sum((chunk.outages for chunk in greeted), Counter[str]())
        summary.skipped = dict(sum((chunk.skipped for chunk in greeted), Counter[str]()))
        lost = self._asked.lost(possible_steps(target.declared), own_program=target.kind.own_program)
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
        """Follow nothing up: keep what could not be performed, and drop what the sessions showed."""
        for chunk in sorted(chunks, key=lambda chunk: chunk.number):
            self._follow_up.keep(chunk)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _discard(self, chunks: Sequence[Chunk], summary: Summary) -> None:
        kept = {path for breach in summary.breaches for path in breach.traces}
        for path in (path for chunk in chunks for path in chunk.traces.values() if str(path) not in kept):
            path.unlink(missing_ok=True)
        if self._folder.is_dir() and not any(self._folder.iterdir()):
            self._folder.rmdir()
