"""Performs scenarios on a subject, step by step, and records the memories that each question returned."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from signet_reference_harness.bench.log import BenchFailureError, Record
from signet_reference_harness.bench.suite import QuestionStep, ScenarioRun, SuiteQuery


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """A memory that a step returned: the name of its fact or prompt, or `other:` and the beginning of a hash."""

    item: str
    score: float | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class StepMemories:
    """The memories that a step returned, best first, and its duration in milliseconds."""

    operation: str
    rows: tuple[MemoryRow, ...]
    ms: float


@dataclass(slots=True)
class Latencies:
    """How long each call took, in milliseconds, by operation, in order."""

    ms: dict[str, list[float]] = field(default_factory=dict)

    def note(self, operation: str, ms: float) -> None:
        """Add a call."""
        self.ms.setdefault(operation, []).append(round(ms, 3))


Note = Callable[[Record], None]


class Player:
    """Performs the steps of one scenario, each by the method of its kind, such as `fact`, `query`, `start` or `end`.

    A method is a coroutine function that takes the step and returns its StepMemories, or None. It raises
    BenchFailureError if the subject cannot perform the step. A step without a method does nothing.
    """

    has_sessions = True
    """Whether the assertions of a suite apply to it."""

    async def close(self) -> None:
        """Close the sessions that are open."""
        return

    def canonical_name(self, name: str) -> str:
        """The name that counts for a memory which the suite stores under several names: the first."""
        return name


@dataclass(frozen=True, slots=True)
class OpenDatabase:
    """An open database of a subject: `player` makes the player of a scenario; `version` is the daemon's, as it says."""

    player: Callable[[ScenarioRun], Player]
    latencies: Latencies
    version: str | None = None


class Subject(ABC):
    """The thing that a benchmark measures."""

    name: str

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Describe the subject; the description is the same in every run."""

    @abstractmethod
    def open(self, folder: Path, database: str, number: int) -> AbstractAsyncContextManager[OpenDatabase]:
        """Open a new database, the `number`-th of the suite: empty, or a copy of the initial one.

        `folder` is that of the run.
        """


async def perform(scenario_run: ScenarioRun, player: Player, note: Note, on_step: Callable[[], None]) -> None:
    """Perform a scenario. `note` gets the records of each step that asks; `on_step` is called after each step.

    Raises BenchFailureError, which names the scenario and the line.
    """
    line = scenario_run.line
    try:
        for line, step in scenario_run.steps:
            method = getattr(player, step.kind, None)
            memories = await method(step) if method is not None else None
            if memories is not None and isinstance(step, QuestionStep):
                for record in _records(scenario_run, line, step, memories, player):
                    note(record)
            on_step()
        await player.close()
    except BenchFailureError as failure:
        where = f"scenario {scenario_run.scenario.id}, line {line}"
        raise BenchFailureError(f"{where}: {failure.message}", remedy=failure.remedy) from None


def _records(
    scenario_run: ScenarioRun, line: int, step: QuestionStep, memories: StepMemories, player: Player
) -> Iterable[Record]:
    items = {row.item for row in memories.rows}
    where = {"scenario": scenario_run.scenario.id, "line": line}
    if step.evidence or isinstance(step, SuiteQuery):
        yield {
            "kind": "question",
            **where,
            "id": step.id or f"line-{line}",
            "operation": memories.operation,
            "category": step.category,
            "evidence": list(dict.fromkeys(map(player.canonical_name, step.evidence))),
            "rows": [[row.item, row.score, row.source] for row in memories.rows],
            "ms": round(memories.ms, 3),
        }
    if not player.has_sessions:
        return
    for demand, names in (("expect", step.expect), ("absent", step.absent)):
        for name in names:
            held = (player.canonical_name(name) in items) == (demand == "expect")
            yield {"kind": "assertion", **where, "demand": demand, "item": name, "held": held}
