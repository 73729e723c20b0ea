"""The messages of a conversation, in one form for all providers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

Role = Literal["user", "assistant", "tool"]


ReminderKind = Literal["identity", "context", "summary", "research", "round_limit", "broken_reply", "notice"]
"""The subject of a reminder.

- identity: a file that says who the agent is and whom it works for
- context: a text that the daemon injected at a start or for a prompt
- summary: a summary of the messages before a compaction
- research: results of tools that ran before the model was asked
- round_limit: no more tools in this turn: the model is to answer
- broken_reply: the previous reply broke off
- notice: any other message of the harness
"""
ReminderOrigin = Literal["harness", "daemon", "workspace", "project", "tool", "model"]
"""Who wrote a reminder's text."""
ReminderVisibility = Literal["model", "person", "both"]
"""Who gets to see a reminder."""
ReminderScope = Literal["session", "turn", "message"]
"""How long a reminder lasts: in the system prompt until the session is cleared, in that of one turn, or beside the
message that it is attached to, for as long as that message is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reminder:
    """A block that the harness adds to the input of the model or to a person's screen; it never holds the user's words.

    `data` is JSON about it, such as the file of an identity. `render_reminders` converts it to text. The schema is
    `schemas/harness/signet-reminder-1.schema.json`.
    """

    kind: ReminderKind
    origin: ReminderOrigin
    text: str
    visibility: ReminderVisibility = "model"
    scope: ReminderScope = "message"
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model asks for; `id` ties the result to the call.

    `fault` says why the arguments are not a JSON object: then the tool is not run, and the model reads the fault.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Thinking:
    """A thought of the model before it spoke.

    `raw` is the provider's own block, which goes back to that provider unchanged, since some sign it.
    """

    text: str
    provider: str
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the model's context. A `tool` message answers the call named by `tool_call_id`.

    `reminders` stay with the message, unchanged. A provider gets them as text, from `lower_reminders`.
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


TAG: Final = "system-reminder"
_FALSE_TAG: Final = re.compile(f"<(?=/?{TAG})", re.IGNORECASE)


def render_reminders(reminders: Iterable[Reminder]) -> str:
    """The reminders that a model sees, as text, in their order; empty without reminders."""
    return "\n\n".join(_block(each) for each in reminders if each.visibility != "person" and each.text.strip())


def lower_reminders(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages as a provider gets them: reminders as text, and no tag in them that the harness did not write.

    The reminders of a user's message follow its words. Those of another message, such as the ones from a tool loop, are
    put into a user's message after it, which a provider may join with the message of the tool results. Empty replies
    are left out, as some vendors refuse them.
    """
    made: list[Message] = []
    for message in messages:
        if message.role == "assistant" and not (message.content.strip() or message.tool_calls):
            continue
        content = without_tags(message.content)
        text = render_reminders(message.reminders)
        if not text:
            made.append(message if content == message.content and not message.reminders else _plain(message, content))
        elif message.role != "user":
            made += [_plain(message, content), Message("user", text)]
        else:
            made.append(_plain(message, f"{content}\n\n{text}" if content else text))
    return tuple(made)


def texts_for_person(message: Message) -> tuple[str, ...]:
    """The texts of a message for a person: its own words, then each reminder that is meant for a person."""
    reminders = (each.text for each in message.reminders if each.visibility != "model")
    return tuple(text for text in (message.content, *reminders) if text.strip())


def _plain(message: Message, content: str) -> Message:
    return replace(message, content=content, reminders=())


def _block(reminder: Reminder) -> str:
    source = reminder.data.get("source")
    name = f' source="{_attribute(source)}"' if isinstance(source, str) else ""
    text = without_tags(reminder.text.strip())
    return f'<{TAG} kind="{reminder.kind}" origin="{reminder.origin}"{name}>\n{text}\n</{TAG}>'


def _attribute(value: str) -> str:
    return re.sub(r'[<>"&\x00-\x1f]', "_", value)


def without_tags(text: str) -> str:
    """`text` with anything escaped that looks like the beginning or end of a reminder."""
    return _FALSE_TAG.sub("&lt;", text) if "<" in text else text


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with each text in it changed; the names of members stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [map_texts(each, change) for each in value]
    return {name: map_texts(each, change) for name, each in value.items()} if isinstance(value, Mapping) else value


def objects(value: Any) -> list[Mapping[str, Any]]:
    """The objects in a JSON list; nothing for anything but a list."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def valid_text(text: str) -> str:
    """`text` with a question mark for each lone surrogate, which requests cannot contain."""
    return text.encode("utf-8", "replace").decode()
