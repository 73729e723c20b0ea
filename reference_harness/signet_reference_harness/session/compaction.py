"""A summary in the place of a conversation that has grown too long: by the model, as the daemon wants it written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from signet_reference_harness import reminders
from signet_reference_harness.daemon_client.adapter import PreCompactionResult
from signet_reference_harness.daemon_client.reply import Reply
from signet_reference_harness.messages import Message, Reminder, ReminderKind, ReminderOrigin, ToolCall
from signet_reference_harness.providers import Provider
from signet_reference_harness.providers.completion import CompletionOptions, StopReason, Usage
from signet_reference_harness.session.assembly import summary_of
from signet_reference_harness.session.conversation import Conversation
from signet_reference_harness.session.turn import ModelLoop
from signet_reference_harness.tools import ToolResult

DEFAULT_ORDER: Final = (
    "Summarise this conversation so that the work can go on from the summary alone: what the user wants, what was "
    "decided and why, what was done and found out, and what is left to do. Name files, commands and values exactly."
)
"""What the model is asked for when the daemon has not said."""
CHARACTERS_A_TOKEN: Final = 4
WHOLE: Final = frozenset({StopReason.END_TURN, StopReason.STOP_SEQUENCE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What became of a compaction: the `summary`, and the daemon's reply to it.

    `by_model` is False where the model could not write it, as `detail` says: it is then a list of what was asked.
    """

    summary: str
    reply: Reply
    asked: PreCompactionResult
    by_model: bool = True
    detail: str = ""
    usage: Usage = field(default_factory=Usage)


async def written_by_model(
    provider: Provider, conversation: Conversation, asked: PreCompactionResult, options: CompletionOptions
) -> ModelLoop:
    """The loop in which the model was asked for a summary; its reply is one if :func:`is_whole` says so."""
    order = "\n\n".join(filter(None, (asked.summary_prompt.strip(), asked.guidelines.strip()))) or DEFAULT_ORDER
    origin = ReminderOrigin.HARNESS if order == DEFAULT_ORDER else ReminderOrigin.DAEMON
    request = Message("user", "", reminders=(Reminder(kind=ReminderKind.NOTICE, origin=origin, text=order),))
    options = replace(options, system_prompt=reminders.rendered(summary_of(conversation)))
    loop = ModelLoop(provider, options, [*conversation.messages, request], _refuse_tools, most_rounds=0)
    await loop.run()
    return loop


def is_whole(loop: ModelLoop) -> bool:
    """Whether what the model wrote can stand for the conversation."""
    return loop.outcome in WHOLE and bool(loop.reply.strip())


def estimated_tokens(messages: Sequence[Message], *texts: str) -> int:
    """How many tokens these take, roughly: for a context that no provider has counted yet."""
    size = sum(len(text) for text in texts)
    for message in messages:
        size += len(message.content) + sum(len(each.text) for each in message.reminders)
        size += sum(len(str(call.arguments)) for call in message.tool_calls)
    return size // CHARACTERS_A_TOKEN


async def _refuse_tools(call: ToolCall) -> ToolResult:
    return ToolResult(call.name, False, {}, "no tool runs while a summary is written")
