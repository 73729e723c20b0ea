"""A chunk of generated sessions: what one connector process performs, as a seed and a number determine."""

from __future__ import annotations

import gc
import importlib
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from signet_conformance.drivers.process import WatchedDriver
from signet_conformance.finding import Verdict
from signet_conformance.outcome.generated_summary import Tally
from signet_conformance.scenarios.features import Features
from signet_conformance.scenarios.scenario import Scenario

_DRAWING = "signet_conformance.scenarios.drawing"
_drawing = threading.Lock()
"""Hypothesis keeps state of its own for the process."""


@contextmanager
def _hypothesis() -> Iterator[None]:
    """Within it, this thread alone draws.

    Hypothesis is imported by the first that does, while other workers wait for their processes to start. What it
    brings is left out of collections from then on, as the rest of what is loaded is: it collects in each thread.
    """
    with _drawing:
        if _DRAWING not in sys.modules:
            importlib.import_module(_DRAWING)
            gc.freeze()
        yield


@dataclass(slots=True)
class Chunk:
    """The results of one chunk: verdicts counted, and what is to be followed up, by its place in the chunk."""

    seed: int
    number: int
    performed: int = 0
    features: Features = field(default_factory=Features)
    tally: Tally = field(default_factory=Tally)
    breached: dict[tuple[str, Verdict], list[int]] = field(default_factory=dict)
    """The places of the sessions that showed a requirement breached."""
    traces: dict[int, Path] = field(default_factory=dict)
    """The trace of the first session that showed each breach."""
    failed: dict[int, tuple[WatchedDriver, str]] = field(default_factory=dict)
    """The sessions that could not be performed, with who was to perform them and the error."""
    outages: Counter[str] = field(default_factory=Counter)
    """How many of its sessions held each outage."""
    skipped: Counter[str] = field(default_factory=Counter)
    """How many steps of each kind were skipped in them."""
    unstarted: tuple[WatchedDriver, str] | None = None
    """The error of a connector that failed on hello, so that nothing of the chunk was performed."""

    def draw(self) -> Sequence[Scenario]:
        """The scenarios of the chunk, in the order in which they are performed."""
        with _hypothesis():
            from signet_conformance.scenarios import drawing

            return drawing.draw(self.features, self.seed, self.number)

    def smallest(self, requirement: str, verdict: Verdict, shows: Callable[[Scenario], bool]) -> tuple[Scenario, int]:
        """The smallest scenario that `shows` is true of, and how many were tried.

        The search begins at the first one of the chunk that showed the requirement breached, which comes out when
        none is smaller.
        """
        known = [place in self.breached[requirement, verdict] for place in range(self.performed)]
        with _hypothesis():
            from signet_conformance.scenarios import drawing

            smallest, tried = drawing.smallest(self.features, self.seed, self.number, known, shows)
        return smallest or self.draw()[known.index(True)], tried
