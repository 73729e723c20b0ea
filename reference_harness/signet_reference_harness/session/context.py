"""The model's context in a turn: its named parts in a fixed order, and the summary that replaces its history.

The parts are identity files, the injections of session-start and of this prompt, the history or its summary, research.
All except the history are reminders; those of the session come first, so that the most lasting part begins the context.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from signet_reference_harness.daemon_client.adapter import PreCompactionResult
from signet_reference_harness.daemon_client.reply import Reply
from signet_reference_harness.errors import ConfinementError
from signet_reference_harness.messages import Message, Reminder, ReminderOrigin, ToolCall, render_reminders
from signet_reference_harness.providers import CompletionOptions, Provider, StopReason, Usage
from signet_reference_harness.session.conversation import Conversation
from signet_reference_harness.session.turn import ModelLoop, result_text
from signet_reference_harness.tools import ToolResult
from signet_reference_harness.tools.files import ConfinedFolder

IDENTITY_FILES: Final = ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "MEMORY.md")
"""In their order in the model's context."""
LONGEST_IDENTITY: Final = 24 * 1024
"""Bytes of one identity file; the rest is left out."""


def identity_files(workspace: Path | None, project: str) -> tuple[Reminder, ...]:
    """Reminders of the IDENTITY_FILES that exist, the workspace's before the project's, each at most 24 kB of it.

    A link, or a file that is not text in UTF-8, counts as absent.
    """
    places: tuple[tuple[ReminderOrigin, str | Path | None], ...] = (("workspace", workspace), ("project", project))
    roots = [(origin, ConfinedFolder(root)) for origin, root in places if root is not None]
    reminders = (
        next(filter(None, (_read_identity_file(name, origin, root) for origin, root in roots)), None)
        for name in IDENTITY_FILES
    )
    return tuple(reminder for reminder in reminders if reminder is not None)


def _read_identity_file(name: str, origin: ReminderOrigin, root: ConfinedFolder) -> Reminder | None:
    try:
        content, size = root.read_bytes(name, most=LONGEST_IDENTITY)
        # A character that the bound cuts is left out.
        text = content.decode(errors="strict" if size <= LONGEST_IDENTITY else "ignore")
    except (ConfinementError, UnicodeDecodeError):
        return None
    if not text.strip():
        return None
    if size > LONGEST_IDENTITY:
        text += f"\n[the first {LONGEST_IDENTITY} of {size} bytes]"
    data = {"source": name, "left_out": size - LONGEST_IDENTITY} if size > LONGEST_IDENTITY else {"source": name}
    return Reminder(kind="identity", origin=origin, scope="session", text=text, data=data)


def cut_files(identity: Iterable[Reminder]) -> Iterator[Reminder]:
    """A notice for the person about each file of which the model gets only the beginning."""
    for each in identity:
        if "left_out" in each.data:
            rest = f"{each.data['left_out']} are left out"
            text = f"{each.data['source']} is cut: the model reads {LONGEST_IDENTITY} bytes of it, and {rest}."
            yield Reminder(kind="notice", origin="harness", visibility="person", text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnContext:
    """The parts beside the conversation."""

    identity: tuple[Reminder, ...] = ()
    start: tuple[str, ...] = ()
    """Injections of the session's starts."""
    prompt: str = ""
    """The injection of this prompt."""
    research: tuple[ToolResult, ...] = ()
    notices: tuple[Reminder, ...] = ()
    """Notices of the harness beside the prompt."""


def assemble(
    context: TurnContext, conversation: Conversation, prompt: str, options: CompletionOptions
) -> tuple[list[Message], CompletionOptions]:
    """The messages of a turn about `prompt`, and `options` with the system prompt and the list of parts.

    `metadata["context"]` lists the parts in their order: `part`, its `characters` (of the history: its `messages`),
    and its `source` where it has one.
    """
    start = [_injected(text, "session") for text in context.start]
    submitted = [_injected(text, "turn") for text in filter(None, (context.prompt,))]
    summary = summary_of(conversation)
    research = [_research(result) for result in context.research]
    message = Message("user", prompt, reminders=(*conversation.pending, *context.notices, *research))
    history = list(conversation.messages)
    parts = [
        *_list_part("identity", context.identity),
        *_list_part("session-start", start),
        *_list_part("user-prompt-submit", submitted),
        *_list_part("summary", summary),
        {"part": "history", "messages": len(history)},
        *_list_part("research", research),
    ]
    stable = render_reminders([*context.identity, *start])
    system = "\n\n".join(filter(None, (stable, render_reminders([*submitted, *summary]))))
    metadata = {**options.metadata, "context": parts}
    return [*history, message], replace(options, system_prompt=system, stable_prompt=len(stable), metadata=metadata)


def summary_of(conversation: Conversation) -> tuple[Reminder, ...]:
    """The summary of the messages before the last compaction, if there was one."""
    if not conversation.summary:
        return ()
    return (Reminder(kind="summary", origin="model", scope="session", text=conversation.summary),)


def _injected(text: str, scope: Literal["session", "turn"]) -> Reminder:
    return Reminder(kind="context", origin="daemon", scope=scope, text=text)


def _research(result: ToolResult) -> Reminder:
    return Reminder(kind="research", origin="tool", text=result_text(result), data={"source": result.name})


def _list_part(part: str, blocks: Iterable[Reminder]) -> Sequence[dict[str, Any]]:
    return [
        {"part": part, "characters": len(block.text), **{k: v for k, v in block.data.items() if k == "source"}}
        for block in blocks
    ]


DEFAULT_INSTRUCTIONS: Final = (
    "Summarise this conversation so that the work can go on from the summary alone: what the user wants, what was "
    "decided and why, what was done and found out, and what is left to do. Name files, commands and values exactly."
)
"""The instructions to the model if the daemon gives none."""
CHARACTERS_A_TOKEN: Final = 4
COMPLETE: Final = frozenset({StopReason.END_TURN, StopReason.STOP_SEQUENCE})


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCompaction:
    """The result of a compaction: the `summary`, and the daemon's reply to it.

    If the model could not write the summary, `by_model` is False, `detail` says why, and the summary lists the user's
    prompts.
    """

    summary: str
    reply: Reply
    instructions: PreCompactionResult
    by_model: bool = True
    detail: str = ""
    usage: Usage = field(default_factory=Usage)


async def ask_for_summary(
    provider: Provider, conversation: Conversation, instructions: PreCompactionResult, options: CompletionOptions
) -> ModelLoop:
    """Ask the model for a summary of the conversation; return its loop, whose reply :func:`is_summary` checks."""
    given = (instructions.summary_prompt.strip(), instructions.guidelines.strip())
    text = "\n\n".join(filter(None, given)) or DEFAULT_INSTRUCTIONS
    origin: ReminderOrigin = "harness" if text == DEFAULT_INSTRUCTIONS else "daemon"
    request = Message("user", "", reminders=(Reminder(kind="notice", origin=origin, text=text),))
    options = replace(options, system_prompt=render_reminders(summary_of(conversation)))
    loop = ModelLoop(provider, options, [*conversation.messages, request], _refuse_tools, most_rounds=0)
    await loop.run()
    return loop


def is_summary(loop: ModelLoop) -> bool:
    """Whether the model's reply is complete, and not blank."""
    return loop.outcome in COMPLETE and bool(loop.reply.strip())


def estimated_tokens(messages: Sequence[Message], *texts: str) -> int:
    """Roughly how many tokens these take, for a context that no provider has counted yet."""
    size = sum(len(text) for text in texts)
    for message in messages:
        size += len(message.content) + sum(len(each.text) for each in message.reminders)
        size += sum(len(str(call.arguments)) for call in message.tool_calls)
    return size // CHARACTERS_A_TOKEN


async def _refuse_tools(call: ToolCall) -> ToolResult:
    return ToolResult(call.name, False, {}, "no tool runs while a summary is written")
