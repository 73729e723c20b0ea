"""What happens in a run, an event each: the members of one JSON object, whose `type` says which event it is.

`schemas/harness/signet-run-event-1.schema.json` is made of these types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import UNSET, Struct, UnsetType, to_builtins

from signet_reference_harness.session.summary import Summary


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
