"""The one renderer of reminders: structured blocks in, text for a provider out. No other module writes the tag.

Reminders of scope `session` and `turn` stand in the system prompt, those of scope `message` beside their message.
What is attached to a message is rendered the same way each time, so that the text of earlier messages, and with it a
provider's cache of them, never changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from signet_reference_harness.messages import (
    Message,
    Reminder,
    ReminderKind,
    ReminderOrigin,
    ReminderScope,
    ReminderVisibility,
)

TAG: Final = "system-reminder"
_FALSE_TAG: Final = re.compile(f"<(?=/?{TAG})", re.IGNORECASE)
FOR_THE_MODEL: Final = frozenset({ReminderVisibility.MODEL, ReminderVisibility.BOTH})
FOR_A_PERSON: Final = frozenset({ReminderVisibility.PERSON, ReminderVisibility.BOTH})


def rendered(reminders: Iterable[Reminder]) -> str:
    """The reminders that a model sees, as text, in their order; empty without reminders."""
    return "\n\n".join(_block(each) for each in reminders if each.visibility in FOR_THE_MODEL and each.text.strip())


def lowered(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages as a provider gets them: reminders as text, and no tag in them that the harness did not write.

    The reminders of a user's message stand after its words; those of another message, and those that came up during a
    tool loop, in a user's message after it, which a provider puts into the message of the tool results where it may.
    A reply that says nothing is left out, as some vendors refuse empty ones.
    """
    made: list[Message] = []
    for message in messages:
        if message.role == "assistant" and not (message.content.strip() or message.tool_calls):
            continue
        content = without_tags(message.content)
        text = rendered(message.reminders)
        if not text:
            made.append(message if content == message.content and not message.reminders else _plain(message, content))
        elif message.role != "user":
            made += [_plain(message, content), Message("user", text)]
        else:
            made.append(_plain(message, f"{content}\n\n{text}" if content else text))
    return tuple(made)


def shown(message: Message) -> tuple[str, ...]:
    """What a person sees of a message: its own words, then each reminder that is meant for a person."""
    reminders = (each.text for each in message.reminders if each.visibility in FOR_A_PERSON)
    return tuple(text for text in (message.content, *reminders) if text.strip())


def to_json(reminder: Reminder) -> dict[str, Any]:
    """The reminder as JSON, as `schemas/harness/signet-reminder-1.schema.json` describes it."""
    return {
        "kind": str(reminder.kind),
        "origin": str(reminder.origin),
        "visibility": str(reminder.visibility),
        "scope": str(reminder.scope),
        "text": reminder.text,
        "data": dict(reminder.data),
    }


def from_json(value: Mapping[str, Any]) -> Reminder:
    """The reminder that `value` holds. Raises ValueError or KeyError where the schema would refuse it."""
    text, data = value["text"], value.get("data", {})
    if not isinstance(text, str) or not isinstance(data, dict):
        raise ValueError("'text' must be a string and 'data' an object")
    return Reminder(
        kind=ReminderKind(value["kind"]),
        origin=ReminderOrigin(value["origin"]),
        visibility=ReminderVisibility(value["visibility"]),
        scope=ReminderScope(value["scope"]),
        text=text,
        data=data,
    )


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
    """`text` in which nothing can be taken for the beginning or end of a reminder."""
    return _FALSE_TAG.sub("&lt;", text) if "<" in text else text
