"""Chunks of generated sessions, and the follow-up of their breaches: shrunk to the smallest session and confirmed.

Only a breach that a fresh connector shows again is reported as one. How many sessions are tried depends on the speed of
the machine, so the smallest session may breach nothing that neither the drawn sessions nor the other traces breach: the
verdicts of a run follow from its seed.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from signet_conformance.contract import daemon_requirements, requirements
from signet_conformance.drivers.watched_driver import WatchedDriver
from signet_conformance.finding import BREACHES, Judgement, Verdict
from signet_conformance.outcome.broken_off import BrokenOff
from signet_conformance.outcome.generated_summary import DaemonBreach, Failure, GeneratedBreach, VerdictCounts
from signet_conformance.running.connector import LiveConnector, Patience
from signet_conformance.running.recorded_daemon import RecordedDaemon
from signet_conformance.scenarios.features import Features
from signet_conformance.scenarios.reducing import longest_prompt
from signet_conformance.scenarios.scenario import Scenario, identity
from signet_conformance.trace.recordings import delete_recording, move_recording

MOST_SHRUNK = 5
"""The most breaches of each verdict that are shrunk in a run; later ones are confirmed as they were drawn."""
_SHRUNK = (Verdict.FAIL, Verdict.WARN)


_DRAWING = "signet_conformance.scenarios.strategies"
_drawing = threading.Lock()
"""Held while Hypothesis draws, since its state is global."""


@contextmanager
def _hypothesis() -> Iterator[None]:
    """Let only this thread draw during the block.

    The first thread imports Hypothesis, while other workers wait for their processes to start. Garbage collections skip
    its modules from then on: Hypothesis runs them in each thread.
    """
    with _drawing:
        if _DRAWING not in sys.modules:
            importlib.import_module(_DRAWING)
            gc.freeze()
        yield


@dataclass(slots=True)
class Chunk:
    """The results of one chunk. Sessions are numbered by their place in the chunk."""

    seed: int
    number: int
    performed: int = 0
    features: Features = field(default_factory=Features)
    tally: VerdictCounts = field(default_factory=VerdictCounts)
    breached: dict[tuple[str, Verdict], list[int]] = field(default_factory=dict)
    """Requirement and verdict to the sessions that showed the breach."""
    traces: dict[int, Path] = field(default_factory=dict)
    """The traces of the first session of each breach."""
    failed: dict[int, tuple[WatchedDriver, str]] = field(default_factory=dict)
    """The sessions that could not be performed, with their driver and the error."""
    outages: Counter[str] = field(default_factory=Counter)
    """Outage to the number of sessions that held it."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Kind of step to the number of steps skipped."""
    unstarted: tuple[WatchedDriver, str] | None = None
    """The driver and the error of a connector that failed on hello; no session was performed."""

    def draw(self) -> Sequence[Scenario]:
        """Draw the scenarios of the chunk, in the order in which they are performed."""
        with _hypothesis():
            from signet_conformance.scenarios import strategies

            return strategies.draw(self.features, self.seed, self.number)

    def smallest(self, requirement: str, verdict: Verdict, shows: Callable[[Scenario], bool]) -> tuple[Scenario, int]:
        """Find the smallest scenario that `shows` is true of. Returns it and the number of scenarios tried.

        The search begins at the first session of the chunk that showed the breach; the result is that one if no
        smaller one shows it.
        """
        known = [place in self.breached[requirement, verdict] for place in range(self.performed)]
        with _hypothesis():
            from signet_conformance.scenarios import strategies

            smallest, tried = strategies.smallest(self.features, self.seed, self.number, known, shows)
        return smallest or self.draw()[known.index(True)], tried


@dataclass(kw_only=True)
class FollowUp:
    """The follow-up of breaches, at one recorded daemon.

    `folder` takes the traces of sessions tried, `run_folder` the traces that confirm a breach.
    `failures` is the folder for scenarios that show a breach, made when the first is saved; `replay` returns the
    command that performs such a file again. `only` are the selected requirements, None for all.
    """

    recorded_daemon: RecordedDaemon
    patience: Patience
    folder: Path
    run_folder: Path
    failures: Path
    replay: Callable[[Path], str]
    only: frozenset[str] | None
    shrunk: Counter[Verdict] = field(default_factory=Counter)
    """How many breaches of each verdict were shrunk."""
    broken: list[BrokenOff] = field(default_factory=list)
    """The sessions that a fresh connector could not perform either."""

    def shrinks(self, verdict: Verdict) -> bool:
        """Return True if the next breach with this verdict will be shrunk."""
        return verdict in _SHRUNK and self.shrunk[verdict] < MOST_SHRUNK

    def breach(self, chunk: Chunk, name: str, verdict: Verdict, settled: set[str]) -> GeneratedBreach:
        """Shrink and confirm a breach of a chunk; adds to `settled` the requirements that need no further proof."""
        first = chunk.breached[name, verdict][0]
        original = chunk.draw()[first]
        known = settled | {breached for breached, _ in chunk.breached}
        scenario, tried = self._shrink(chunk, name, verdict, known) if self.shrinks(verdict) else (original, 0)
        self.shrunk[verdict] += tried > 0
        again, shown = self._perform_again(scenario, name)
        smaller: int | None = None
        again_differs = shown.get(name) is not verdict
        if (again_differs or shown.keys() - known) and identity(scenario) != identity(original):
            # As the first of a process, the smallest session may not show the breach, or may breach more than the drawn
            # one.
            smaller, tried = (len(scenario.steps), tried) if again_differs else (None, 0)
            scenario = original
            again, shown = self._perform_again(scenario, name)
        confirmed = shown.get(name) is verdict
        kept: tuple[Path, ...] = (chunk.traces[first], again)
        also: list[str] = []
        if confirmed:
            kept = (self._move_to_run(again, name, shown, settled),)
            also = [n for n, v in shown.items() if v is verdict and n != name and n not in daemon_requirements()]
        settled.update((name, *also))
        path = self._save(_for_requirement(scenario, name), chunk.seed, name)
        return GeneratedBreach(
            requirement=name,
            verdict=verdict,
            confirmed=confirmed,
            also=tuple(also),
            steps=len(scenario.steps),
            drawn=len(original.steps),
            tried=tried,
            scenario=str(path),
            traces=tuple(map(str, kept)),
            replay=self.replay(path),
            characters=longest_prompt(scenario),
            drawn_characters=longest_prompt(original),
            smaller=smaller,
        )

    def daemon_breach(self, chunks: Sequence[Chunk], name: str, verdict: Verdict, settled: set[str]) -> DaemonBreach:
        """Confirm a breach of the daemon. It is not shrunk: the run is about the connector."""
        first = chunks[0].breached[name, verdict][0]
        again, shown = self._perform_again(chunks[0].draw()[first], name)
        confirmed = shown.get(name) is verdict
        if confirmed:
            self._move_to_run(again, name, shown, settled)
        else:
            delete_recording(again)
        settled.add(name)
        return DaemonBreach(name, verdict, confirmed, sum(len(chunk.breached[name, verdict]) for chunk in chunks))

    def failure(self, chunk: Chunk, place: int, error: str) -> Failure:
        """Perform again, with a fresh connector, a session that could not be performed."""
        scenario = chunk.draw()[place]
        out = self.folder / f"{scenario.name}-again.jsonl"
        with closing(LiveConnector(self.recorded_daemon, self.patience, self.only)) as connector:
            again = connector.perform_and_judge(scenario, out, None)
        path = self._save(scenario, chunk.seed, None)
        confirmed = isinstance(again, str)
        if isinstance(again, str) and connector.watched is not None:
            self._note_broken(scenario, connector.watched, again, path)
        return Failure(again if isinstance(again, str) else error, confirmed, str(path), self.replay(path))

    def keep(self, chunk: Chunk) -> None:
        """Save the scenarios that a chunk could not perform, without performing them again."""
        drawn = chunk.draw() if chunk.failed else ()
        for place, (watched, error) in chunk.failed.items():
            self._note_broken(drawn[place], watched, error, self._save(drawn[place], chunk.seed, None))

    def _note_broken(self, scenario: Scenario, watched: WatchedDriver, error: str, path: Path) -> None:
        self.broken.append(watched.describe(scenario, error, self.recorded_daemon.target, self.replay(path)))

    def _move_to_run(self, trace: Path, name: str, shown: Mapping[str, Verdict], settled: set[str]) -> Path:
        # In the folder of the other traces it is judged and reported like them.
        settled.update(daemon_requirements().keys() & shown.keys())
        return move_recording(trace, self.run_folder / f"{name}.jsonl")

    def _perform_again(self, scenario: Scenario, name: str) -> tuple[Path, Mapping[str, Verdict]]:
        """Perform a scenario with a fresh connector. Return its trace and the breaches in it."""
        out = self.folder / f"{name}-again.jsonl"
        delete_recording(out)
        judged = LiveConnector(self.recorded_daemon, self.patience, self.only).perform_and_judge(
            _for_requirement(scenario, name), out, None
        )
        if isinstance(judged, str):
            return out, {}
        every = {**judged.judgements, **judged.daemon}
        return out, {other: every[other].verdict for other in _breached(every)}

    def _shrink(self, chunk: Chunk, name: str, verdict: Verdict, known: AbstractSet[str]) -> tuple[Scenario, int]:
        out = self.folder / f"{name}-tried.jsonl"
        number = 0
        with closing(LiveConnector(self.recorded_daemon, self.patience, self.only)) as connector:

            def shows(scenario: Scenario) -> bool:
                nonlocal number
                number += 1
                judged = connector.perform_and_judge(scenario, out, f"{chunk.number}t{name[-3:]}x{number}")
                delete_recording(out)
                return (
                    not isinstance(judged, str)
                    and judged.judgements[name].verdict is verdict
                    and _breached(judged.judgements) <= known
                )

            return chunk.smallest(name, verdict, shows)

    def _save(self, scenario: Scenario, seed: int, requirement: str | None) -> Path:
        self.failures.mkdir(parents=True, exist_ok=True)
        path = self.failures / f"{scenario.name}-{identity(scenario)[:8]}.json"
        origin = {"seed": seed, **({"requirement": requirement} if requirement else {})}
        path.write_text(json.dumps({**scenario.to_json(), **origin}, indent=1) + "\n", encoding="ascii")
        return path


def _breached(judgements: Mapping[str, Judgement]) -> AbstractSet[str]:
    return {name for name, judgement in judgements.items() if judgement.verdict in BREACHES}


def _for_requirement(scenario: Scenario, requirement: str) -> Scenario:
    known = requirements().get(requirement)
    title = requirement if known is None else known.title
    return replace(scenario, name=requirement, title=f"{title} ({len(scenario.steps)} steps)")
