"""The events of a run: each is one JSON object, whose `type` names it.

`schemas/harness/signet-run-event-1.schema.json` is made of these types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Struct, UnsetType, to_builtins
from pydantic import ConfigDict, Field

from signet_reference_harness.documents import HarnessDocument, StrictModel
from signet_reference_harness.providers import StopReason
from signet_reference_harness.session.lifecycle import MemoryFacts
from signet_reference_harness.session.memory_effect import MemoryEffect
from signet_reference_harness.session.turn import TurnResult

Status = Literal["done", "failed", "invalid", "timeout", "cancelled"]
OutputFormat = Literal["text", "json", "stream-json", "none"]

DONE = frozenset({StopReason.END_TURN, StopReason.STOP_SEQUENCE, StopReason.LENGTH, StopReason.ROUND_LIMIT})
"""Outcomes with a usable reply; any other outcome is an error of the provider or of the agent."""


class SummaryFolders(StrictModel):
    """The folders of the task: the project, and the harness's own folder; null until they are known."""

    project: str | None = None
    state: str | None = None
    sessions: str | None = None


class RunFailure(StrictModel):
    """An error: its class, its message, and the provider's own reason if it gave one."""

    model_config = ConfigDict(populate_by_name=True)

    kind: Annotated[str, Field(alias="class")]
    message: str
    raw_reason: str | None = None


class RunMemory(StrictModel):
    """The session's memory: whether the daemon accepted its start, and how many calls it refused or did not answer."""

    started: bool = False
    refused: Annotated[int, Field(ge=0)] = 0
    failed: Annotated[int, Field(ge=0)] = 0


class RunTokens(StrictModel):
    """The provider's counts, over all rounds."""

    input_tokens: int = 0
    output_tokens: int = 0


class RunSummary(HarnessDocument):
    """The result of a run: written by `signet-harness run`, and part of the last event of every run."""

    model_config = ConfigDict(title="Summary of a headless run")
    schema_file: ClassVar[str] = "harness/signet-run-summary.schema.json"

    format: Literal["signet-run-summary/1"] = "signet-run-summary/1"
    status: Status
    outcome: Annotated[StopReason, Field(strict=False)] | Literal["deferred"] | None = None
    """why the turn ended; deferred: the provider asks for a longer wait than the harness allows"""
    run: str | None = None
    session: str | None = None
    agent: str | None = None
    provider: str | None = None
    model: str | None = None
    folders: SummaryFolders = SummaryFolders()
    session_file: str | None = None
    output_format: OutputFormat | None = None
    elapsed_ms: Annotated[float, Field(ge=0)] = 0.0
    deferred_s: Annotated[float | None, Field(ge=0)] = None
    """how many seconds the provider asks the harness to wait"""
    error: RunFailure | None = None
    memory: RunMemory = RunMemory()
    usage: RunTokens = RunTokens()
    rounds: Annotated[int, Field(ge=0)] = 0
    """how many times the model was asked"""


def memory_of(facts: MemoryFacts) -> RunMemory:
    """The facts of a session's memory, for a summary."""
    return RunMemory(started=facts.started, refused=facts.refused, failed=facts.failed)


def summarise(turn: TurnResult) -> RunSummary:
    """Summarise a finished turn, without the facts of its run."""
    done = turn.outcome in DONE and turn.error is None
    error = None
    if not done:
        error = RunFailure(
            kind="ProviderDeferredError" if turn.deferred_s is not None else "ProviderError",
            message=turn.error or turn.detail or f"the model's answer ended with {turn.outcome}",
            raw_reason=turn.raw_reason,
        )
    return RunSummary(
        status="done" if done else "failed",
        outcome="deferred" if turn.deferred_s is not None else turn.outcome,
        deferred_s=turn.deferred_s,
        error=error,
        usage=RunTokens(input_tokens=turn.usage.input_tokens, output_tokens=turn.usage.output_tokens),
        rounds=turn.rounds,
    )


class Event(Struct, frozen=True, tag_field="type"):
    """An event of a run (signet-run-event/1).

    Something that happened in a run of the reference harness, as a line of its stream: `type` says what.
    """

    schema_file: ClassVar[str] = "harness/signet-run-event-1.schema.json"
    droppable: ClassVar[bool] = False
    """Whether a slow reader may lose it: a later event, or the session, holds its content too."""


class RunStarted(Event, frozen=True, tag="run.started"):
    """A run begins, or continues from its last checkpoint; `run` is its id, `session` the key of its session."""

    run: str
    session: str
    agent: str
    resumed: bool = False


class TextPiece(Event, frozen=True, tag="text"):
    """A piece of what the model says."""

    droppable: ClassVar[bool] = True
    text: str


class ThinkingPiece(Event, frozen=True, tag="thinking"):
    """A piece of what the model thinks."""

    droppable: ClassVar[bool] = True
    text: str


class ToolCalled(Event, frozen=True, tag="tool_call"):
    """A tool that the model asked for is about to run; `id` ties its result to it."""

    id: str
    name: str
    arguments: Mapping[str, Any]


class ToolReturned(Event, frozen=True, tag="tool_result"):
    """A tool has ended: `content` is its result, any JSON value; if the tool failed, `error` says why."""

    id: str
    name: str
    ok: bool
    content: Any | UnsetType = UNSET
    error: str | UnsetType = UNSET


class Compacted(Event, frozen=True, tag="compaction"):
    """A summary has replaced the conversation."""

    summary: str


class MemoryUsed(Event, frozen=True, tag="memory"):
    """The effect of memory on the answer: the rows that the model got, and how many of them it seems to have used."""

    effect: MemoryEffect
    used: int


class WithoutMemory(Event, frozen=True, tag="without_memory"):
    """The same model's answer to the same prompt without the daemon's memory."""

    reply: str


class Notice(Event, frozen=True, tag="notice"):
    """A notice of the harness to the user, such as the end of a tool server; the model may get it too."""

    text: str


class StreamOverflow(Event, frozen=True, tag="stream.overflow"):
    """The reader was too slow: pieces of text or thinking are missing from the stream here."""

    dropped: int


class RunFinished(Event, frozen=True, tag="run.finished"):
    """The last event: the result of the run, and the model's last words."""

    reply: str
    summary: RunSummary


def as_json(event: Event) -> dict[str, Any]:
    """The event as the members of a JSON object, `type` first."""
    members: dict[str, Any] = to_builtins(event, enc_hook=_summary_members)
    return members


def _summary_members(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True) if isinstance(value, RunSummary) else value
