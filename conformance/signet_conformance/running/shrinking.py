"""Follows up what generated sessions showed: shrinks a breach to its smallest session, and has it shown again.

A breach is reported as one only when a fresh connector shows it too. Which sessions are tried on the way depends on how
fast the machine is, so what comes out may breach nothing else than what the sessions as drawn, or the other traces, do:
the verdicts of a run follow from its seed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path

from signet_conformance.contract import daemon_requirements, requirements
from signet_conformance.drivers.process import WatchedDriver
from signet_conformance.finding import BREACHES, Judgement, Verdict
from signet_conformance.outcome.broken_off import BrokenOff
from signet_conformance.outcome.generated_summary import Breach, DaemonBreach, Failure
from signet_conformance.running.chunk import Chunk
from signet_conformance.running.connector import Connector
from signet_conformance.running.patience import Patience
from signet_conformance.running.station import Station
from signet_conformance.scenarios.reducing import longest_prompt
from signet_conformance.scenarios.scenario import Scenario, identity

MOST_SHRUNK = 5
"""Breaches of each verdict that are shrunk in one run; those after it are confirmed as they were found."""
_SHRUNK = (Verdict.FAIL, Verdict.WARN)


class FollowUp:
    """What is done at one station with what the chunks of a run showed.

    `folder` takes the traces of what is tried, `beside` those that confirm a breach: it is the folder of the run's
    own traces. `failures` is the folder for scenarios that show something (made when the first is saved); `replay`
    gives the command that performs such a file again. `only` are the requirements that were asked for, None for all.
    """

    def __init__(
        self,
        station: Station,
        patience: Patience,
        *,
        folder: Path,
        beside: Path,
        failures: Path,
        replay: Callable[[Path], str],
        only: frozenset[str] | None,
    ) -> None:
        self._station = station
        self._patience = patience
        self._folder = folder
        self._beside = beside
        self._failures = failures
        self._replay = replay
        self._only = only
        self._shrunk: Counter[Verdict] = Counter()
        self.broken: list[BrokenOff] = []
        """The sessions that could not be performed, by a fresh connector either."""

    def shrinks(self, verdict: Verdict) -> bool:
        """Whether the next breach with this verdict will be shrunk."""
        return verdict in _SHRUNK and self._shrunk[verdict] < MOST_SHRUNK

    def breach(self, chunk: Chunk, name: str, verdict: Verdict, settled: set[str]) -> Breach:
        """Shrink and confirm what a chunk showed breached; `settled` learns what needs no further proof."""
        first = chunk.breached[name, verdict][0]
        original = chunk.draw()[first]
        known = settled | {breached for breached, _ in chunk.breached}
        scenario, tried = self._shrink(chunk, name, verdict, known) if self.shrinks(verdict) else (original, 0)
        self._shrunk[verdict] += tried > 0
        again, shown = self._again(scenario, name)
        smaller: int | None = None
        again_differs = shown.get(name) is not verdict
        if (again_differs or shown.keys() - known) and identity(scenario) != identity(original):
            # It may have shrunk to something that only a connector with other sessions behind it shows, or to
            # something that breaches more when it is the first thing a process does.
            smaller, tried = (len(scenario.steps), tried) if again_differs else (None, 0)
            scenario = original
            again, shown = self._again(scenario, name)
        confirmed = shown.get(name) is verdict
        kept: tuple[Path, ...] = (chunk.traces[first], again)
        also: list[str] = []
        if confirmed:
            kept = (self._put_beside(again, name, shown, settled),)
            also = [n for n, v in shown.items() if v is verdict and n != name and n not in daemon_requirements()]
        settled.update((name, *also))
        path = self._save(_named(scenario, name), chunk.seed, name)
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
            characters=longest_prompt(scenario),
            drawn_characters=longest_prompt(original),
            smaller=smaller,
        )

    def daemon_breach(self, chunks: Sequence[Chunk], name: str, verdict: Verdict, settled: set[str]) -> DaemonBreach:
        """Confirm what chunks showed breached by the daemon. Nothing is shrunk: that is the daemon's affair."""
        first = chunks[0].breached[name, verdict][0]
        again, shown = self._again(chunks[0].draw()[first], name)
        confirmed = shown.get(name) is verdict
        if confirmed:
            self._put_beside(again, name, shown, settled)
        else:
            again.unlink(missing_ok=True)
        settled.add(name)
        return DaemonBreach(name, verdict, confirmed, sum(len(chunk.breached[name, verdict]) for chunk in chunks))

    def failure(self, chunk: Chunk, place: int, error: str) -> Failure:
        """Perform again what could not be performed, with a fresh connector."""
        scenario = chunk.draw()[place]
        out = self._folder / f"{scenario.name}-again.jsonl"
        with Connector(self._station, self._patience, self._only) as connector:
            again = connector.judged(scenario, out, None)
        path = self._save(scenario, chunk.seed, None)
        confirmed = isinstance(again, str)
        if isinstance(again, str) and connector.watched is not None:
            self._note_broken(scenario, connector.watched, again, path)
        return Failure(again if isinstance(again, str) else error, confirmed, str(path), self._replay(path))

    def keep(self, chunk: Chunk) -> None:
        """Keep the scenarios that a chunk could not perform, without performing them again."""
        drawn = chunk.draw() if chunk.failed else ()
        for place, (watched, error) in chunk.failed.items():
            self._note_broken(drawn[place], watched, error, self._save(drawn[place], chunk.seed, None))

    def _note_broken(self, scenario: Scenario, watched: WatchedDriver, error: str, path: Path) -> None:
        self.broken.append(watched.describe(scenario, error, self._station.target, self._replay(path)))

    def _put_beside(self, trace: Path, name: str, shown: Mapping[str, Verdict], settled: set[str]) -> Path:
        """Put a confirming trace beside the other traces, where it is judged and reported like them."""
        settled.update(daemon_requirements().keys() & shown.keys())
        return trace.rename(self._beside / f"{name}.jsonl")

    def _again(self, scenario: Scenario, name: str) -> tuple[Path, Mapping[str, Verdict]]:
        """Perform a scenario with a fresh connector: its trace, and what that shows breached."""
        out = self._folder / f"{name}-again.jsonl"
        out.unlink(missing_ok=True)
        judged = Connector(self._station, self._patience, self._only).judged(_named(scenario, name), out, None)
        if isinstance(judged, str):
            return out, {}
        every = {**judged.judgements, **judged.daemon}
        return out, {other: every[other].verdict for other in _breached(every)}

    def _shrink(self, chunk: Chunk, name: str, verdict: Verdict, known: AbstractSet[str]) -> tuple[Scenario, int]:
        out = self._folder / f"{name}-tried.jsonl"
        number = 0
        with Connector(self._station, self._patience, self._only) as connector:

            def shows(scenario: Scenario) -> bool:
                nonlocal number
                number += 1
                judged = connector.judged(scenario, out, f"{chunk.number}t{name[-3:]}x{number}")
                out.unlink(missing_ok=True)
                return (
                    not isinstance(judged, str)
                    and judged.judgements[name].verdict is verdict
                    and _breached(judged.judgements) <= known
                )

            return chunk.smallest(name, verdict, shows)

    def _save(self, scenario: Scenario, seed: int, requirement: str | None) -> Path:
        self._failures.mkdir(parents=True, exist_ok=True)
        path = self._failures / f"{scenario.name}-{identity(scenario)[:8]}.json"
        origin = {"seed": seed, **({"requirement": requirement} if requirement else {})}
        path.write_text(json.dumps({**scenario.to_json(), **origin}, indent=1) + "\n", encoding="ascii")
        return path


def _breached(judgements: Mapping[str, Judgement]) -> AbstractSet[str]:
    return {name for name, judgement in judgements.items() if judgement.verdict in BREACHES}


def _named(scenario: Scenario, requirement: str) -> Scenario:
    known = requirements().get(requirement)
    title = requirement if known is None else known.title
    return replace(scenario, name=requirement, title=f"{title} ({len(scenario.steps)} steps)")
