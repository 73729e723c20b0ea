"""What the model is given in a turn: the parts of its context, in their one order, each named.

Identity files, what session-start injected, what this prompt injected, the history or its summary, research. All but
the history are reminders; those of the session come first, so that what stands longest begins the context.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from signet_reference_harness import reminders
from signet_reference_harness.messages import Message, Reminder, ReminderKind, ReminderOrigin, ReminderScope
from signet_reference_harness.providers.completion import CompletionOptions
from signet_reference_harness.session.conversation import Conversation
from signet_reference_harness.session.turn import told
from signet_reference_harness.tools import ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The parts beside the conversation."""

    identity: tuple[Reminder, ...] = ()
    start: tuple[str, ...] = ()
    """What starts of the session injected."""
    prompt: str = ""
    """What this prompt injected."""
    research: tuple[ToolResult, ...] = ()
    notices: tuple[Reminder, ...] = ()
    """What the harness has to say beside the prompt."""


def assembled(
    context: Context, conversation: Conversation, prompt: str, options: CompletionOptions
) -> tuple[list[Message], CompletionOptions]:
    """The messages of a turn about `prompt`, and `options` with the system prompt and the list of parts.

    `metadata["context"]` lists the parts in their order: `part`, its `characters` (of the history: its `messages`),
    and its `source` where it has one.
    """
    start = [_injected(text, ReminderScope.SESSION) for text in context.start]
    submitted = [_injected(text, ReminderScope.TURN) for text in filter(None, (context.prompt,))]
    summary = summary_of(conversation)
    research = [_research(result) for result in context.research]
    message = Message("user", prompt, reminders=(*conversation.pending, *context.notices, *research))
    history = list(conversation.messages)
    parts = [
        *_named("identity", context.identity),
        *_named("session-start", start),
        *_named("user-prompt-submit", submitted),
        *_named("summary", summary),
        {"part": "history", "messages": len(history)},
        *_named("research", research),
    ]
    stable = reminders.rendered([*context.identity, *start])
    system = "\n\n".join(filter(None, (stable, reminders.rendered([*submitted, *summary]))))
    metadata = {**options.metadata, "context": parts}
    return [*history, message], replace(options, system_prompt=system, stable_prompt=len(stable), metadata=metadata)


def summary_of(conversation: Conversation) -> tuple[Reminder, ...]:
    """What stands for the messages of before the last compaction, if there was one."""
    if not conversation.summary:
        return ()
    scope, text = ReminderScope.SESSION, conversation.summary
    return (Reminder(kind=ReminderKind.SUMMARY, origin=ReminderOrigin.MODEL, scope=scope, text=text),)


def _injected(text: str, scope: ReminderScope) -> Reminder:
    return Reminder(kind=ReminderKind.CONTEXT, origin=ReminderOrigin.DAEMON, scope=scope, text=text)


def _research(result: ToolResult) -> Reminder:
    return Reminder(
        kind=ReminderKind.RESEARCH, origin=ReminderOrigin.TOOL, text=told(result), data={"source": result.name}
    )


def _named(part: str, blocks: Iterable[Reminder]) -> Sequence[dict[str, Any]]:
    return [
        {"part": part, "characters": len(block.text), **{k: v for k, v in block.data.items() if k == "source"}}
        for block in blocks
    ]
