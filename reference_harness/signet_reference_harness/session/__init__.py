"""One session: its turns with the model, on top of its lifecycle. The turns take place whatever the daemon answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from signet_reference_harness.messages import Message, Reminder, ToolCall
from signet_reference_harness.providers import CompletionOptions, Provider, StopReason
from signet_reference_harness.session import context
from signet_reference_harness.session.lifecycle import Lifecycle, uninterrupted
from signet_reference_harness.session.memory_effect import effect_of
from signet_reference_harness.session.turn import ModelLoop, TurnHistory, TurnListener, TurnResult, broken_reply
from signet_reference_harness.tools import ToolResult
from signet_reference_harness.tools.permission import Permissions
from signet_reference_harness.tools.registry import ResultFolder, ToolRegistry


@dataclass(slots=True, eq=False)
class Session(Lifecycle):
    """A session of one agent in one project, for one task at a time: its lifecycle, and the turns with the model."""

    tools: ToolRegistry = field(kw_only=True)
    most_rounds: int = field(kw_only=True)
    context_budget: int | None = field(default=None, kw_only=True)
    """How many tokens the context may have before it is compacted; None sets no limit."""
    options: CompletionOptions = field(default_factory=CompletionOptions, kw_only=True)
    """The options of a completion for which the caller gives none."""
    workspace: Path | None = field(default=None, kw_only=True)
    """The folder of the agent's own files."""
    results: ResultFolder = field(default_factory=ResultFolder, kw_only=True)
    """The folder for tool results that are too long for the model."""
    steered: Callable[[], Sequence[Message]] = field(default=tuple, kw_only=True)
    """Returns the person's messages since the last round of tools."""
    permissions: Permissions | None = field(default=None, kw_only=True)
    """Permission of the model to use tools; None permits everything."""
    cut_turn: TurnResult | None = field(default=None, kw_only=True)
    """The result of the last turn when it was cancelled; None for another turn."""
    _noticed: int = 0
    """How many notices of the tools this session has passed on."""
    _identity_files: tuple[Reminder, ...] = ()
    _identity_of: int = 0
    """The number of the opening at which these files were read."""
    context_tokens: int = field(default=0, kw_only=True)
    """Tokens in the model's context, as the provider counted them; estimated after a compaction, 0 at first."""
    _context_is_full: bool = False
    """The provider found the context too long."""

    async def turn(
        self,
        prompt: str,
        provider: Provider,
        feedback: Mapping[str, float] | None = None,
        *,
        options: CompletionOptions | None = None,
        listener: TurnListener | None = None,
        past: TurnHistory | None = None,
    ) -> TurnResult:
        """Take a turn: send the prompt to the daemon, then to the model, and run its tools until it has answered.

        `feedback` goes with the prompt: how useful memories were, by their ids, from -1 to 1. `options` say which model
        answers, and how. `listener` gets each piece of the answer, message and tool call as they come. `past` is the
        part of the turn that a dead process has done. If the task is cancelled, the arrived part of the answer is kept,
        :attr:`cut_turn` gets the result of the turn, and CancelledError is raised again.
        """
        options, listener = options or self.options, listener or TurnListener()
        self.cut_turn = None
        compaction = await self.compact(provider, options, listener) if self._is_over_budget(prompt) else None
        turn_context = await uninterrupted(self.submit(prompt, feedback))
        noticed, research = self._noticed, await self._research(prompt)
        is_opening = self._identity_of != self.openings
        identity = self._identity()
        parts = context.TurnContext(
            notices=(*self._notices(), *(context.cut_files(identity) if is_opening else ())),
            identity=identity,
            start=tuple(filter(None, self._contexts)),
            prompt=turn_context,
            research=tuple(result for result in research if result.ok and not _is_empty(result.content)),
        )
        options = replace(options, tools=self.tools.definitions)
        messages, options = context.assemble(parts, self.conversation, prompt, options)
        before = len(messages)
        listener.message(messages[-1])
        loop = ModelLoop(
            provider,
            options,
            messages,
            self._run_call,
            listener,
            self.most_rounds,
            between=self._between,
            offered=lambda: self.tools.definitions,
            past=past or TurnHistory(),
        )
        try:
            await loop.run()
        except asyncio.CancelledError:
            kept = loop.completed_messages(before) if loop.reply.strip() else []
            if kept:
                self._record(prompt, loop, kept[before - 1 :])
            self.cut_turn = replace(loop.result(before - 1), messages=tuple(kept[before - 1 :]))
            raise
        self.context_tokens = loop.last_usage.input_tokens + loop.last_usage.output_tokens
        self._context_is_full = loop.outcome is StopReason.CONTEXT_LIMIT
        if loop.has_answer:
            self._record(prompt, loop, loop.messages[before - 1 :])
        else:
            self._noticed = noticed
        effect = effect_of(
            prompt,
            loop.reply,
            start_rows=self.start_rows,
            contexts=parts.start,
            submitted=turn_context,
            submission=self.submission,
            results=(*research, *loop.results),
        )
        if not effect.is_empty:
            listener.memory(effect)
        return replace(
            loop.result(before - 1),
            memory=effect,
            injected=bool(turn_context or any(self._contexts)),
            usage=loop.usage if compaction is None else loop.usage + compaction.usage,
            compacted=compaction is not None,
        )

    async def go_on(self, provider: Provider) -> TurnResult:
        """Let the model work without a new prompt; neither the conversation nor the daemon keeps its answers."""
        messages = list(self.conversation.messages)
        options = replace(self.options, tools=self.tools.definitions)
        loop = ModelLoop(provider, options, messages, self._run_call, TurnListener(), self.most_rounds)
        await loop.run()
        return loop.result(len(self.conversation.messages))

    def _notices(self) -> tuple[Reminder, ...]:
        """Notices about tools since the last call, for the model and for the person."""
        fresh = self.tools.notices[self._noticed :]
        self._noticed += len(fresh)
        return tuple(Reminder(kind="notice", origin="harness", visibility="both", text=text) for text in fresh)

    def _between(self) -> Sequence[Message]:
        """The messages after the tool results of a round: notices about tools, and what the person wrote meanwhile."""
        notices = self._notices()
        return [*([Message("user", "", reminders=notices)] if notices else []), *self.steered()]

    def _identity(self) -> tuple[Reminder, ...]:
        """The agent's files, read once per opening, so that the beginning of the model's context stays the same."""
        if self._identity_of != self.openings:
            self._identity_files = context.identity_files(self.workspace, self.identity.project)
            self._identity_of = self.openings
        return self._identity_files

    def _is_over_budget(self, prompt: str) -> bool:
        messages = self.conversation.messages
        if not messages or self._context_is_full:
            return bool(messages)
        used = self.context_tokens + context.estimated_tokens((), prompt)
        if not self.context_tokens:
            used = context.estimated_tokens(messages, prompt, self.conversation.summary, *self._contexts)
        return self.context_budget is not None and used > self.context_budget

    def _record(self, prompt: str, loop: ModelLoop, messages: Sequence[Message]) -> None:
        self.conversation.add_turn(prompt, loop.reply, messages)
        if loop.outcome in {StopReason.MALFORMED, StopReason.ERROR, StopReason.CANCELLED}:
            self.conversation.pending = (broken_reply(loop.detail),)

    async def clear(self) -> None:
        """Clear the session as :meth:`Lifecycle.clear` does, and count the tokens of its context from 0 again."""
        self.context_tokens, self._context_is_full = 0, False
        await Lifecycle.clear(self)

    async def compact(
        self, provider: Provider, options: CompletionOptions | None = None, listener: TurnListener | None = None
    ) -> context.SessionCompaction:
        """Replace the conversation by the model's summary, and report it to the daemon.

        The daemon instructs the model how to write it. If the model fails, the summary is a list of the user's prompts.
        """
        instructions = await uninterrupted(self.pre_compaction())
        options = replace(options or self.options, tools=self.tools.definitions)
        loop = await context.ask_for_summary(provider, self.conversation, instructions, options)
        by_model = context.is_summary(loop)
        reply = await uninterrupted(self.compaction_complete(loop.reply if by_model else ""))
        self._context_is_full = False
        self.context_tokens = context.estimated_tokens(
            (), self.conversation.summary, *self._contexts, *(each.text for each in self._identity_files)
        )
        (listener or TurnListener()).compaction(self.conversation.summary)
        return context.SessionCompaction(
            summary=self.conversation.summary,
            reply=reply,
            instructions=instructions,
            by_model=by_model,
            detail="" if by_model else loop.detail,
            usage=loop.usage,
        )

    async def _research(self, prompt: str) -> tuple[ToolResult, ...]:
        """Run the tools that precede the model."""
        return tuple([await self.use_tool(name, {"query": prompt}) for name in self.tools.before_generation])

    async def _run_call(self, call: ToolCall) -> ToolResult:
        allowed = self.permissions
        if allowed is None:
            return await self.use_tool(call.name, call.arguments)
        key, project = self.identity.key, self.identity.project
        return await self.use_tool(call.name, call.arguments, lambda: allowed.refusal_of(call, key, project))

    async def use_tool(
        self, name: str, arguments: Mapping[str, Any], refusal: Callable[[], Awaitable[str]] | None = None
    ) -> ToolResult:
        """Run one tool. `refusal` is awaited last before the call, and may return the reason to refuse it."""
        if self.tools.asks_the_daemon(name) and not await self._is_started():
            return ToolResult(name, False, {}, "the daemon does not hold this session")
        result = await self.tools.execute(name, arguments, self.identity, self.client, self.results, refusal)
        if result.reply is not None:
            self.keep_reply(result.reply)
        return result


def _is_empty(content: Any) -> bool:
    """Whether a tool found nothing: its content is empty, or its list of `results` is."""
    return not content or (isinstance(content, Mapping) and content.get("results") == [])
