"""What a run notes: plain objects that go to the log as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from signet_reference_harness.errors import HarnessError

Record = Mapping[str, Any]


class BenchFailureError(HarnessError):
    """Raised when a run cannot go on: what happened at which line of the suite. Nothing that was logged is lost."""


@dataclass(frozen=True, slots=True)
class Row:
    """A memory that a step brought: the fact or prompt that it is, or `other:` and the beginning of a hash."""

    item: str
    score: float | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Brought:
    """What a step that asks brought, best first, and how long that took in milliseconds."""

    operation: str
    rows: tuple[Row, ...]
    ms: float


@dataclass(slots=True)
class Latencies:
    """How long each call took, in milliseconds, by operation, in order."""

    ms: dict[str, list[float]] = field(default_factory=dict)

    def note(self, operation: str, ms: float) -> None:
        """Add a call."""
        self.ms.setdefault(operation, []).append(round(ms, 3))
