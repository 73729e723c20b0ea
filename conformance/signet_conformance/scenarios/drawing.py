"""Runs Hypothesis outside of a test: the scenarios of a seed, and the smallest one that still shows something.

Both speak of chunks: the seed and the number of a chunk determine its scenarios, whoever performs them and
in whatever order, so that the first N scenarios of a seed are the same ones for every N.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity

from signet_conformance.scenarios.script import Scenario
from signet_conformance.scenarios.strategies import Features, sessions

CHUNK = 20
_DRAWN = 40
"""Drawn for a chunk, since some are drawn twice."""
MOST_ATTEMPTS = 400
LONGEST_SHRINK_S = 60.0

Shows = Callable[[Scenario], bool]


def draw(features: Features, seed: int, chunk: int) -> Sequence[Scenario]:
    """The scenarios of a chunk, all different, at most CHUNK, named after chunk and place."""
    drawn: dict[str, Scenario] = {}
    _run(features, seed, chunk, (Phase.generate,), lambda scenario: drawn.setdefault(identity(scenario), scenario))
    return [
        replace(scenario, name=f"generated-{chunk}-{place}")
        for place, scenario in enumerate(list(drawn.values())[:CHUNK])
    ]


def smallest(
    features: Features, seed: int, chunk: int, known: Sequence[bool], shows: Shows
) -> tuple[Scenario | None, int]:
    """The smallest scenario found that `shows` is true of, and how many were tried.

    `known` tells it of the scenarios of the chunk, in their order; the first of them that is true is where
    the search begins. None when none of them is.
    """
    answers = {
        identity(scenario): known[place]
        for place, scenario in enumerate(draw(features, seed, chunk))
        if place < len(known)
    }
    deadline = time.monotonic() + LONGEST_SHRINK_S
    tried = 0
    smallest_so_far: Scenario | None = None

    class ShownError(Exception):
        """Tells Hypothesis that an example is one of those it looks for."""

    def attempt(scenario: Scenario) -> None:
        nonlocal smallest_so_far, tried
        name = identity(scenario)
        if name not in answers:
            if smallest_so_far is None or tried >= MOST_ATTEMPTS or time.monotonic() > deadline:
                # Nothing is tried before the first known one; and at some point the smallest so far will do.
                return
            tried += 1
            answers[name] = shows(scenario)
        if answers[name]:
            # Whatever Hypothesis tries in between, the last one it comes back to is the smallest.
            smallest_so_far = scenario
            raise ShownError

    with contextlib.suppress(ShownError):
        _run(features, seed, chunk, (Phase.generate, Phase.shrink), attempt)
    return smallest_so_far, tried


def identity(scenario: Scenario) -> str:
    """A digest of the steps."""
    return hashlib.sha256(json.dumps([step.to_json() for step in scenario.steps], sort_keys=True).encode()).hexdigest()


def _run(features: Features, seed: int, chunk: int, phases: Sequence[Phase], body: Callable[[Scenario], Any]) -> None:
    of_chunk = int.from_bytes(hashlib.sha256(f"{seed}/{chunk}".encode()).digest()[:8])

    # Every setting on which the draws depend is given, so that no profile of the surrounding process counts.
    @hypothesis.seed(of_chunk)
    @hypothesis.settings(
        max_examples=_DRAWN,
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
    @hypothesis.given(sessions(features))
    def run(scenario: Scenario) -> None:
        body(scenario)

    run()
