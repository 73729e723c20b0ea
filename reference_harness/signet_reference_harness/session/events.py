"""What happens in a run, an event each: the members of one JSON object, whose `type` says which event it is.

`schemas/harness/signet-run-event-1.schema.json` is made of these types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Struct, UnsetType, to_builtins
from pydantic import ConfigDict, Field

from signet_reference_harness.documents import Document, Part
from signet_reference_harness.providers.completion import StopReason
from signet_reference_harness.session.turn import TurnResult

Status = Literal["done", "failed", "invalid", "timeout", "cancelled"]
OutputFormat = Literal["text", "json", "stream-json", "none"]

DONE = frozenset({StopReason.END_TURN, StopReason.STOP_SEQUENCE, StopReason.LENGTH, StopReason.ROUND_LIMIT})
"""Outcomes that leave a reply to work with; each other one is an error of the provider or of the agent."""


class SummaryFolders(Part):
    """Where the task worked: the project, and what the harness keeps beside it. Null where it was not settled."""

    project: str | None = None
    state: str | None = None
    sessions: str | None = None


class Failure(Part):
    """What went wrong: the class of the error, what was said of it, and the provider's own reason if it gave one."""

    model_config = ConfigDict(populate_by_name=True)

    kind: Annotated[str, Field(alias="class")]
    message: str
    raw_reason: str | None = None


class Tokens(Part):
    """What the provider counted, over all rounds."""

    input_tokens: int = 0
    output_tokens: int = 0


class Summary(Document):
    """What a run came to: written by `signet-harness run`, and told by the last event of every run."""

    model_config = ConfigDict(title="Summary of a headless run")
    schema_file: ClassVar[str] = "harness/signet-run-summary.schema.json"

    format: Literal["signet-run-summary/1"] = "signet-run-summary/1"
    status: Status
    outcome: Annotated[
        Annotated[StopReason, Field(strict=False)] | Literal["deferred"] | None,
        Field(description="why the turn ended; deferred: the provider asked for a longer wait"),
    ] = None
    run: str | None = None
    session: str | None = None
    agent: str | None = None
    provider: str | None = None
    model: str | None = None
    folders: SummaryFolders = SummaryFolders()
    session_file: str | None = None
    output_format: OutputFormat | None = None
    elapsed_ms: Annotated[float, Field(ge=0)] = 0.0
    deferred_s: Annotated[float | None, Field(ge=0, description="how long the provider wants to be left alone")] = None
    error: Failure | None = None
    usage: Tokens = Tokens()
    rounds: Annotated[int, Field(ge=0, description="times the model was asked")] = 0


def came_to(turn: TurnResult) -> Summary:
    """What a run came to whose turn is over, without what is known of it beside the turn."""
    done = turn.outcome in DONE and turn.error is None
    error = None
    if not done:
        error = Failure(
            kind="ProviderDeferredError" if turn.deferred_s is not None else "ProviderError",
            message=turn.error or turn.detail or f"the model's answer ended with {turn.outcome}",
            raw_reason=turn.raw_reason,
        )
    return Summary(
        status="done" if done else "failed",
        outcome="deferred" if turn.deferred_s is not None else turn.outcome,
        deferred_s=turn.deferred_s,
        error=error,
        usage=Tokens(input_tokens=turn.usage.input_tokens, output_tokens=turn.usage.output_tokens),
        rounds=turn.rounds,
    )


class Event(Struct, frozen=True, tag_field="type"):
    """An event of a run (signet-run-event/1).

    Something that happened in a run of the reference harness, as a line of its stream: `type` says what.
    """

    schema_file: ClassVar[str] = "harness/signet-run-event-1.schema.json"
    droppable: ClassVar[bool] = False
    """Whether a slow reader may lose it: what it says stands in a later event too, or in the session."""


class RunStarted(Event, frozen=True, tag="run.started"):
    """A run begins, or goes on from its last checkpoint: `run` is its id, `session` the key of its session."""

    run: str
    session: str
    agent: str
    resumed: bool = False


class Text(Event, frozen=True, tag="text"):
    """A piece of what the model says."""

    droppable: ClassVar[bool] = True
    text: str


class Thinking(Event, frozen=True, tag="thinking"):
    """A piece of what the model thinks."""

    droppable: ClassVar[bool] = True
    text: str


class ToolCalled(Event, frozen=True, tag="tool_call"):
    """A tool that the model asked for is about to run; `id` ties its result to it."""

    id: str
    name: str
    arguments: Mapping[str, Any]


class ToolReturned(Event, frozen=True, tag="tool_result"):
    """A tool is done: `content` is what it brought, any JSON, or `error` says why it brought nothing."""

    id: str
    name: str
    ok: bool
    content: Any | UnsetType = UNSET
    error: str | UnsetType = UNSET


class Compacted(Event, frozen=True, tag="compaction"):
    """A summary has taken the place of the conversation."""

    summary: str


class Notice(Event, frozen=True, tag="notice"):
    """What the harness has to say to the person, such as that a server of tools died; the model may be told too."""

    text: str


class StreamOverflow(Event, frozen=True, tag="stream.overflow"):
    """The reader was slow: at this place the stream lacks so many pieces of text or thinking."""

    dropped: int


class RunFinished(Event, frozen=True, tag="run.finished"):
    """The last event: what the run came to, and the model's last words."""

    reply: str
    summary: Summary


def as_json(event: Event) -> dict[str, Any]:
    """The event as the members of a JSON object, `type` first."""
    members: dict[str, Any] = to_builtins(event, enc_hook=_summary_members)
    return members


def _summary_members(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True) if isinstance(value, Summary) else value
