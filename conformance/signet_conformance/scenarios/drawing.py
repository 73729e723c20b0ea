"""Runs Hypothesis outside of a test: draws the scenarios of a seed, and finds the smallest one that shows something.

Scenarios are drawn in chunks. The seed and the number of a chunk determine its scenarios, so the first N scenarios of a
seed are equal for every N and any order of performing them.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity

from signet_conformance.scenarios.choices import Digits
from signet_conformance.scenarios.features import CHUNK, Features
from signet_conformance.scenarios.outages import Outage, holds, outage_of
from signet_conformance.scenarios.reducing import remove_steps, shorten_prompts
from signet_conformance.scenarios.scenario import Scenario, identity
from signet_conformance.scenarios.strategies import sessions, write

_DRAWN = 40
"""Examples for a chunk: some are drawn twice."""
_DRAWN_WITH_OUTAGE = 6
"""Examples for a session with an outage: the first, the smallest of all, never has it."""
MOST_ATTEMPTS = 400
LONGEST_SHRINK_S = 60.0

Shows = Callable[[Scenario], bool]


@dataclass(frozen=True, slots=True)
class _Origin:
    """The source of scenarios: a chunk of a seed, or the place in it of a session with an outage."""

    seed: int
    chunk: int
    place: int | None = None
    outage: Outage | None = None

    def number(self) -> int:
        words = f"{self.seed}/{self.chunk}" + ("" if self.place is None else f"/{self.place}")
        return int.from_bytes(hashlib.sha256(words.encode()).digest()[:8])


def draw(features: Features, seed: int, chunk: int) -> Sequence[Scenario]:
    """Draw the scenarios of a chunk, all different, at most CHUNK, named after chunk and place.

    The number of a scenario in the run says which outage it holds.
    """
    return [scenario for scenario, _ in _draw_chunk(features, seed, chunk)]


def _draw_chunk(features: Features, seed: int, chunk: int) -> Sequence[tuple[Scenario, _Origin]]:
    by_chance = _Origin(seed, chunk)
    outages = [outage_of(features, chunk * CHUNK + place) for place in range(CHUNK)]
    others = iter(_draw_different(features, by_chance, outages.count(None)))
    drawn: dict[str, tuple[Scenario, _Origin]] = {}
    for place, outage in enumerate(outages):
        origin = by_chance if outage is None else _Origin(seed, chunk, place, outage)
        scenario = next(others, None) if outage is None else _draw_with(outage, features, origin)
        if scenario is not None:
            drawn.setdefault(identity(scenario), (replace(scenario, name=f"generated-{chunk}-{place}"), origin))
    return list(drawn.values())


def _draw_different(features: Features, origin: _Origin, enough: int) -> Sequence[Scenario]:
    drawn: dict[str, Scenario] = {}

    class EnoughError(Exception):
        """Ends the drawing: Hypothesis goes on until an exception or its own limit."""

    def keep(scenario: Scenario) -> None:
        if len(drawn) < enough and (origin.outage is None or holds(scenario, origin.outage)):
            drawn.setdefault(identity(scenario), scenario)
        if len(drawn) >= enough:
            raise EnoughError

    with contextlib.suppress(EnoughError):
        _run(features, origin, (Phase.generate,), keep)
    return list(drawn.values())


def _draw_with(outage: Outage, features: Features, origin: _Origin) -> Scenario:
    drawn = _draw_different(features, origin, 1)
    return drawn[0] if drawn else write(features, Digits(0), [("outage", 0, (outage, Digits(0)))], "generated")


def smallest(
    features: Features, seed: int, chunk: int, known: Sequence[bool], shows: Shows
) -> tuple[Scenario | None, int]:
    """Find the smallest scenario that `shows` is true of. Returns it and the number of scenarios tried.

    `known` are the answers of `shows` for the scenarios of the chunk, in their order; the search begins at the first
    true one, and returns None without one. Steps are removed first, then long prompts are shortened.
    """
    drawn = _draw_chunk(features, seed, chunk)
    answers = {identity(scenario): answer for (scenario, _), answer in zip(drawn, known, strict=False)}
    first = next((place for place, answer in enumerate(known) if answer), None)
    if first is None:
        return None, 0
    deadline = time.monotonic() + LONGEST_SHRINK_S
    tried = 0
    smallest_so_far: Scenario | None = None

    class ShownError(Exception):
        """Tells Hypothesis that an example is a hit."""

    def is_shown_by(scenario: Scenario) -> bool:
        # After enough attempts, or enough time, the smallest so far will do.
        nonlocal tried
        name = identity(scenario)
        if name not in answers:
            if tried >= MOST_ATTEMPTS or time.monotonic() > deadline:
                return False
            tried += 1
            answers[name] = shows(scenario)
        return answers[name]

    def attempt(scenario: Scenario) -> None:
        nonlocal smallest_so_far
        # Scenarios before the first known hit are not tried.
        if (smallest_so_far is not None or identity(scenario) in answers) and is_shown_by(scenario):
            # The last hit is the smallest, whatever Hypothesis tries in between.
            smallest_so_far = scenario
            raise ShownError

    with contextlib.suppress(ShownError):
        _run(features, drawn[first][1], (Phase.generate, Phase.shrink), attempt)
    left = remove_steps(smallest_so_far or drawn[first][0], is_shown_by)
    return shorten_prompts(left, is_shown_by), tried


def _run(features: Features, origin: _Origin, phases: Sequence[Phase], body: Callable[[Scenario], Any]) -> None:
    # Give every setting that changes the draws: a profile of the surrounding process must not.
    @hypothesis.seed(origin.number())
    @hypothesis.settings(
        max_examples=_DRAWN if origin.outage is None else _DRAWN_WITH_OUTAGE,
        phases=phases,
        database=None,
        deadline=None,
        derandomize=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
        backend="hypothesis",
    )
    @hypothesis.given(sessions(features, outage=origin.outage))
    def run(scenario: Scenario) -> None:
        body(scenario)

    run()
