"""The events of a run under way, for whatever shows its progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from signet_conformance.finding import Verdict
from signet_conformance.outcome.broken_off import Shortfall


@dataclass(frozen=True, slots=True)
class WritesInto:
    """The run writes into a daemon that is not its own; `words` are what that daemon says of itself."""

    words: str


@dataclass(frozen=True, slots=True)
class Noted:
    """What is worth knowing of the surroundings of the run, in `words`."""

    words: str


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The run begins: it is to perform so many `scenarios`, and so many `sessions` that are generated."""

    scenarios: int
    sessions: int


@dataclass(frozen=True, slots=True)
class ScenarioPerformed:
    """A scenario was performed to its end."""

    name: str


@dataclass(frozen=True, slots=True)
class ScenarioBrokeOff:
    """A scenario could not be performed to its end; `error` says why."""

    name: str
    error: str

    @property
    def reason(self) -> str:
        """The first line of the error, without what to do about it."""
        return self.error.partition("\n")[0]


@dataclass(frozen=True, slots=True)
class SessionPerformed:
    """A generated session was performed, well or not."""

    name: str


@dataclass(frozen=True, slots=True)
class FollowingUp:
    """A breach that generated sessions showed is performed again with a fresh connector, shrunk first if `shrinks`.

    `daemon` tells that it is a breach of the daemon's.
    """

    requirement: str
    verdict: Verdict
    shrinks: bool = False
    daemon: bool = False


@dataclass(frozen=True, slots=True)
class RunFinished:
    """All that could be performed was; `shortfall` is what could not, None when nothing was left out."""

    shortfall: Shortfall | None


Event: TypeAlias = (
    WritesInto
    | Noted
    | RunStarted
    | ScenarioPerformed
    | ScenarioBrokeOff
    | SessionPerformed
    | FollowingUp
    | RunFinished
)
Tell: TypeAlias = Callable[[Event], None]
"""Hears of every event, of one at a time. It may be called from threads of the run."""


def unheard(event: Event) -> None:
    """Ignore every event: for a run whose progress is not shown."""
