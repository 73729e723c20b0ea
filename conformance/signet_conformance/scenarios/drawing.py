"""Runs Hypothesis outside of a test: the scenarios of a seed, and the smallest one that still shows something.

Both speak of chunks: the seed and the number of a chunk determine its scenarios, whoever performs them and
in whatever order, so that the first N scenarios of a seed are the same ones for every N.
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
from signet_conformance.scenarios.reducing import reduced
from signet_conformance.scenarios.script import Scenario, identity
from signet_conformance.scenarios.shortening import with_short_prompts
from signet_conformance.scenarios.strategies import sessions, write

_DRAWN = 40
"""Drawn for a chunk, since some are drawn twice."""
_DRAWN_WITH_OUTAGE = 6
"""Drawn for a session that is to hold an outage: the first drawn, the smallest of all, never does."""
MOST_ATTEMPTS = 400
LONGEST_SHRINK_S = 60.0

Shows = Callable[[Scenario], bool]


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where scenarios are drawn from: a chunk of a seed, or the place in it of one that is to hold an outage."""

    seed: int
    chunk: int
    place: int | None = None
    outage: Outage | None = None

    def number(self) -> int:
        """The seed of its own that is given to Hypothesis."""
        words = f"{self.seed}/{self.chunk}" + ("" if self.place is None else f"/{self.place}")
        return int.from_bytes(hashlib.sha256(words.encode()).digest()[:8])


def draw(features: Features, seed: int, chunk: int) -> Sequence[Scenario]:
    """The scenarios of a chunk, all different, at most CHUNK, named after chunk and place.

    Those whose number in the run asks for an outage hold it.
    """
    return [scenario for scenario, _ in _drawn(features, seed, chunk)]


def _drawn(features: Features, seed: int, chunk: int) -> Sequence[tuple[Scenario, _Origin]]:
    by_chance = _Origin(seed, chunk)
    outages = [outage_of(features, chunk * CHUNK + place) for place in range(CHUNK)]
    others = iter(_different(features, by_chance, outages.count(None)))
    drawn: dict[str, tuple[Scenario, _Origin]] = {}
    for place, outage in enumerate(outages):
        origin = by_chance if outage is None else _Origin(seed, chunk, place, outage)
        scenario = next(others, None) if outage is None else _holding(outage, features, origin)
        if scenario is not None:
            drawn.setdefault(identity(scenario), (replace(scenario, name=f"generated-{chunk}-{place}"), origin))
    return list(drawn.values())


def _different(features: Features, origin: _Origin, enough: int) -> Sequence[Scenario]:
    """The first scenarios drawn that differ and, where an outage is asked for, hold it: at most `enough`."""
    drawn: dict[str, Scenario] = {}

    class EnoughError(Exception):
        """Ends the drawing: Hypothesis goes on until something is raised, or for as long as it was allowed."""

    def keep(scenario: Scenario) -> None:
        if len(drawn) < enough and (origin.outage is None or holds(scenario, origin.outage)):
            drawn.setdefault(identity(scenario), scenario)
        if len(drawn) >= enough:
            raise EnoughError

    with contextlib.suppress(EnoughError):
        _run(features, origin, (Phase.generate,), keep)
    return list(drawn.values())


def _holding(outage: Outage, features: Features, origin: _Origin) -> Scenario:
    """The first scenario drawn that holds an outage; one of the outage alone where chance brought none."""
    drawn = _different(features, origin, 1)
    return drawn[0] if drawn else write(features, Digits(0), [("outage", 0, (outage, Digits(0)))], "generated")


def smallest(
    features: Features, seed: int, chunk: int, known: Sequence[bool], shows: Shows
) -> tuple[Scenario | None, int]:
    """The smallest scenario found that `shows` is true of, and how many were tried.

    `known` tells it of the scenarios of the chunk, in their order; the first of them that is true is where
    the search begins. None when none of them is. Steps are taken away first, then what long prompts say.
    """
    drawn = _drawn(features, seed, chunk)
    answers = {identity(scenario): answer for (scenario, _), answer in zip(drawn, known, strict=False)}
    first = next((place for place, answer in enumerate(known) if answer), None)
    if first is None:
        return None, 0
    deadline = time.monotonic() + LONGEST_SHRINK_S
    tried = 0
    smallest_so_far: Scenario | None = None

    class ShownError(Exception):
        """Tells Hypothesis that an example is one of those it looks for."""

    def shown(scenario: Scenario) -> bool:
        """What is known of a scenario, or comes out when it is tried; at some point the smallest so far will do."""
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
        # Nothing is tried before the first known one.
        if (smallest_so_far is not None or identity(scenario) in answers) and shown(scenario):
            # Whatever Hypothesis tries in between, the last one it comes back to is the smallest.
            smallest_so_far = scenario
            raise ShownError

    with contextlib.suppress(ShownError):
        _run(features, drawn[first][1], (Phase.generate, Phase.shrink), attempt)
    left = reduced(smallest_so_far or drawn[first][0], shown)
    return with_short_prompts(left, shown), tried


def _run(features: Features, origin: _Origin, phases: Sequence[Phase], body: Callable[[Scenario], Any]) -> None:
    # Every setting on which the draws depend is given, so that no profile of the surrounding process counts.
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
