"""The conversation as the harness keeps it, whatever provider it goes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

Role = Literal["user", "assistant", "tool"]


class ReminderKind(StrEnum):
    """What a reminder is about."""

    IDENTITY = "identity"
    """A file that says who the agent is and whom it works for."""
    CONTEXT = "context"
    """What the daemon injected at a start or for a prompt."""
    SUMMARY = "summary"
    """What stands for the messages of before a compaction."""
    RESEARCH = "research"
    """What tools brought before the model was asked."""
    ROUND_LIMIT = "round_limit"
    """No more tools in this turn: the model is to answer."""
    BROKEN_REPLY = "broken_reply"
    """The reply of before broke off."""
    NOTICE = "notice"
    """Anything else that the harness has to say."""


class ReminderOrigin(StrEnum):
    """Who wrote a reminder's text."""

    HARNESS = "harness"
    DAEMON = "daemon"
    WORKSPACE = "workspace"
    PROJECT = "project"
    TOOL = "tool"
    MODEL = "model"


class ReminderVisibility(StrEnum):
    """Whom a reminder is shown to."""

    MODEL = "model"
    PERSON = "person"
    BOTH = "both"


class ReminderScope(StrEnum):
    """How long a reminder stands, and where."""

    SESSION = "session"
    """In the system prompt, until the session is cleared."""
    TURN = "turn"
    """In the system prompt of one turn."""
    MESSAGE = "message"
    """Beside the message that it is attached to, for as long as that message is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reminder:
    """A block that the harness adds to what the model or a person sees: never the user's own words.

    `data` is JSON about it, such as the file that an identity stands in. `reminders` renders the text; its schema is
    `schemas/harness/signet-reminder-1.schema.json`.
    """

    kind: ReminderKind
    origin: ReminderOrigin
    text: str
    visibility: ReminderVisibility = ReminderVisibility.MODEL
    scope: ReminderScope = ReminderScope.MESSAGE
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model asks for; `id` ties the result to the call."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Thinking:
    """What the model thought before it spoke.

    `raw` is the provider's own block, which goes back to that provider unchanged, since some sign it.
    """

    text: str
    provider: str
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the model's context. A `tool` message answers the call named by `tool_call_id`.

    `reminders` stay with the message, unchanged. A provider never sees one: `reminders.lowered` has made text of them.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    thinking: tuple[Thinking, ...] = ()
    reminders: tuple[Reminder, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as the model sees it; `input_schema` is a JSON Schema."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
