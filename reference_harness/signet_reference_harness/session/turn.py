"""The model's part of a turn: ask the model and run the tools that it calls, until it has answered.

Answers are streamed. :meth:`ModelLoop.run` raises no error of a provider or a tool; :attr:`ModelLoop.outcome` says how
the turn ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from io import StringIO
from typing import Any, Final

from signet_reference_harness.errors import ProviderDeferredError, ProviderError
from signet_reference_harness.messages import Message, Reminder, ToolCall, ToolDefinition, lower_reminders
from signet_reference_harness.providers import (
    CompletionChunk,
    CompletionOptions,
    CompletionResult,
    Provider,
    StopReason,
    Usage,
)
from signet_reference_harness.providers.failures import answer_too_long
from signet_reference_harness.session.memory_effect import MemoryEffect
from signet_reference_harness.tools import ToolResult
from signet_reference_harness.tools.registry import as_json


class TurnHistory:
    """Answers of the model and tool results that a dead process got in a turn; used before new ones are requested."""

    def __init__(self, answers: Iterable[CompletionResult] = (), results: Iterable[ToolResult] = ()) -> None:
        self._answers = deque(answers)
        self._results = deque(results)

    def answer(self) -> CompletionResult | None:
        """The next answer that the model has given already; None if the model has to be asked."""
        return self._answers.popleft() if self._answers else None

    def result(self) -> ToolResult | None:
        """The result of the next tool, if that was begun already; None if the tool has to be run."""
        return self._results.popleft() if self._results else None


TURN_S: Final = 0.02
"""How long a provider that never waits is read before other tasks of the event loop run."""
MOST_ROUNDS: Final = 8
"""Rounds of tool calls in one turn; after them the model is asked once more, without tools."""
LONGEST_DETAIL: Final = 500
CALLS_TOOLS: Final = frozenset({StopReason.TOOL_USE, StopReason.END_TURN, StopReason.STOP_SEQUENCE})
"""Reasons with which tool calls are complete: after any other, arguments may have been cut."""
ANSWERED: Final = frozenset({StopReason.END_TURN, StopReason.STOP_SEQUENCE, StopReason.ROUND_LIMIT})
"""Reasons with which even an empty reply is the model's answer."""
ROUND_LIMIT_TEXT: Final = (
    "The largest number of tool rounds in one turn is reached: {rounds}. No tool can be called now. "
    "Answer with what you have, and say what is missing."
)


class TurnListener:
    """Gets the events of a turn while it runs; a subclass overrides the methods that it needs.

    An exception of a method ends the turn and reaches the caller.
    """

    def chunk(self, chunk: CompletionChunk) -> None:
        """A piece of what the model says or thinks has arrived."""

    def answer(self, answer: CompletionResult) -> None:
        """The model's answer has ended, perhaps early: its text, and the tools that it calls."""

    def message(self, message: Message) -> None:
        """A message was added to the context, with its lasting reminders: a prompt, a reply, or a tool's result.

        If the turn ends in an error, its messages are removed again; see :attr:`TurnResult.messages`.
        """

    def tool_call(self, call: ToolCall) -> None:
        """A tool that the model asked for is about to run."""

    def tool_result(self, call: ToolCall, result: ToolResult) -> None:
        """A tool is done; the model will get this result."""

    def compaction(self, summary: str) -> None:
        """A summary has replaced the conversation."""

    def memory(self, effect: MemoryEffect) -> None:
        """The model has answered, and memory had this effect. Not called if it had none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """A turn as the user saw it.

    `outcome` says how it ended, `raw_reason` is the provider's own word for that, and `detail` explains an unusual end
    to a person. If the model, not the daemon, prevented an answer, `error` is set, `remedy` may say what to do about
    it, and the conversation has no trace of the turn. Of a reply that broke off, the arrived part is kept. `usage` is
    that of all `rounds` together; `messages` are those that the turn added to the conversation.
    """

    reply: str = ""
    injected: bool = False
    tool_results: tuple[ToolResult, ...] = ()
    error: str | None = None
    remedy: str | None = None
    outcome: StopReason = StopReason.END_TURN
    raw_reason: str | None = None
    detail: str = ""
    usage: Usage = field(default_factory=Usage)
    rounds: int = 0
    """How often the model was asked."""
    deferred_s: float | None = None
    """Seconds after which the provider wants to be asked again, if it has put the turn off."""
    compacted: bool = False
    """Whether the conversation was summarised before this turn."""
    messages: tuple[Message, ...] = ()
    memory: MemoryEffect = field(default_factory=MemoryEffect)


@dataclass(slots=True)
class ModelLoop:
    """Asks `provider` about `messages` and runs the tools that it calls by `use`, at most `most_rounds` rounds of them.

    New messages are added to `messages`; after the run the last one is the model's reply.
    """

    provider: Provider
    options: CompletionOptions
    messages: list[Message]
    use: Callable[[ToolCall], Awaitable[ToolResult]]
    listener: TurnListener = field(default_factory=TurnListener)
    most_rounds: int = MOST_ROUNDS
    between: Callable[[], Sequence[Message]] = tuple
    """Returns the messages that follow the tool results of a round."""
    offered: Callable[[], tuple[ToolDefinition, ...]] | None = None
    """Returns the current tools, and is called after each round; None if the tools never change."""
    past: TurnHistory = field(default_factory=TurnHistory)
    """Answers and results of an earlier process, used before new ones are requested; the listener does not get them."""
    outcome: StopReason = StopReason.CANCELLED
    raw_reason: str | None = None
    detail: str = ""
    usage: Usage = field(default_factory=Usage)
    last_usage: Usage = field(default_factory=Usage)
    """The tokens of the last completion: its input is the whole context."""
    rounds: int = 0
    deferred_s: float | None = None
    remedy: str | None = None
    """Advice on what to do if the provider failed."""
    results: list[ToolResult] = field(default_factory=list)
    _text: StringIO = field(default_factory=StringIO)

    @property
    def reply(self) -> str:
        """The model's text since it was last asked."""
        return self._text.getvalue()

    @property
    def has_answer(self) -> bool:
        """Whether there is a reply to keep."""
        return bool(self.reply.strip()) or self.outcome in ANSWERED

    async def run(self) -> None:
        """Ask the model and run its tools until it has answered, has failed, or has used all rounds."""
        for number in range(self.most_rounds + 1):
            last = number == self.most_rounds
            if last:
                self._forbid_tools()
            completion = await self._ask()
            calls = completion.tool_calls if completion.stop_reason in CALLS_TOOLS and not last else ()
            # Providers that sign thinking do not accept it back if it was cut.
            thinking = completion.thinking if completion.stop_reason in CALLS_TOOLS else ()
            self._add(Message("assistant", completion.content, calls, thinking=thinking))
            if not calls:
                self._conclude(completion, last=last)
                return
            for call in calls:
                await self._run_tool(call)
            for message in self.between():
                self._add(message)
            if self.offered is not None:
                self.options = replace(self.options, tools=self.offered())

    def completed_messages(self, before: int) -> list[Message]:
        """The messages of a cancelled turn: without a round whose tools have not all ended, and with a partial reply.

        `before` is how many messages there were before the turn.
        """
        messages = list(self.messages)
        called = next((i for i in range(len(messages) - 1, before - 1, -1) if messages[i].tool_calls), None)
        if called is not None and len(messages) - called - 1 < len(messages[called].tool_calls):
            del messages[called:]
        if messages[-1].role != "assistant":
            messages.append(Message("assistant", self.reply))
        return messages

    def result(self, before: int) -> TurnResult:
        """The result of the turn so far; `before` is how many messages there were before the turn."""
        return TurnResult(
            reply=self.reply,
            tool_results=tuple(self.results),
            error=None if self.has_answer else self.detail,
            remedy=None if self.has_answer else self.remedy,
            outcome=self.outcome,
            raw_reason=self.raw_reason,
            detail=self.detail,
            usage=self.usage,
            rounds=self.rounds,
            deferred_s=self.deferred_s,
            messages=tuple(self.messages[before:]) if self.has_answer else (),
        )

    def _forbid_tools(self) -> None:
        self.options = replace(self.options, tool_choice="none")
        if self.most_rounds:
            text = ROUND_LIMIT_TEXT.format(rounds=self.most_rounds)
            limit = Reminder(kind="round_limit", origin="harness", text=text)
            self._add(Message("user", "", reminders=(limit,)))

    def _add(self, message: Message) -> None:
        self.messages.append(message)
        self.listener.message(message)

    def _conclude(self, completion: CompletionResult, *, last: bool) -> None:
        limited = last and self.most_rounds > 0 and completion.stop_reason in CALLS_TOOLS
        self.outcome = StopReason.ROUND_LIMIT if limited else completion.stop_reason
        self.raw_reason, self.detail = completion.raw_reason, completion.detail[:LONGEST_DETAIL]
        if limited and not self.detail:
            self.detail = f"the model called tools in all {self.most_rounds} rounds that a turn may have"
            if not self.reply.strip():
                self.detail += ", and gave no answer when it was asked for one without tools"
        if not self.has_answer and not self.detail:
            self.detail = f"the model gave no answer: {self.outcome}"

    async def _ask(self) -> CompletionResult:
        """Get one completion. A failure gives one too, with the text that had arrived."""
        self.rounds += 1
        self._text = StringIO()
        completion = self.past.answer()
        if completion is None:
            completion = await self._stream()
            self.listener.answer(completion)
        self._text = StringIO(completion.content)
        self.last_usage = completion.usage
        self.usage += completion.usage
        return completion

    async def _stream(self) -> CompletionResult:
        lowered = lower_reminders(self.messages)
        completion, until = CompletionResult(content=""), time.monotonic() + TURN_S
        async with contextlib.aclosing(self._chunks(lowered)) as chunks:
            async for chunk in chunks:
                completion = chunk.result or completion
                if chunk.text and chunk.kind == "text":
                    self._text.write(chunk.text)
                if chunk.text:
                    self.listener.chunk(chunk)
                if time.monotonic() > until:
                    # Otherwise a reader of the events, or a cancellation, would wait until the provider does.
                    await asyncio.sleep(0)
                    until = time.monotonic() + TURN_S
        return completion

    async def _chunks(self, messages: Sequence[Message]) -> AsyncGenerator[CompletionChunk]:
        """Yield the provider's stream; instead of an exception, a last chunk with the failure."""
        complete, failure = False, "the stream closed without a reason"
        raw_reason: str | None = None
        size, most = 0, self.options.longest_answer
        try:
            async with _closing(self.provider.stream(messages, self.options)) as stream:
                async for chunk in stream:
                    _check(chunk)
                    complete = chunk.result is not None
                    size += len(chunk.text)
                    if size > most:
                        complete, failure = False, f"the stream is too long: {answer_too_long(most).message}"
                        break
                    yield chunk
        except ProviderError as error:
            complete, failure, raw_reason = False, error.message, error.raw_reason
            self.remedy = error.remedy
            self.deferred_s = error.seconds if isinstance(error, ProviderDeferredError) else None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a provider is a stranger's code: its crash may not end the session
            complete, failure = False, f"the provider crashed: {type(error).__name__}: {error}"
        if not complete:
            reason = StopReason.MALFORMED if self.reply or failure.startswith("the stream") else StopReason.ERROR
            broken = CompletionResult(content=self.reply, stop_reason=reason, raw_reason=raw_reason, detail=failure)
            yield CompletionChunk("", result=broken)

    async def _run_tool(self, call: ToolCall) -> None:
        result = self.past.result()
        if result is None:
            self.listener.tool_call(call)
            result = ToolResult(call.name, False, {}, call.fault) if call.fault else await self.use(call)
            self.listener.tool_result(call, result)
        self.results.append(result)
        self._add(Message("tool", result_text(result), tool_call_id=call.id))


def _check(chunk: Any) -> None:
    """Raise TypeError if a provider yields anything but a well-formed CompletionChunk."""
    if not isinstance(chunk, CompletionChunk):
        raise TypeError(f"it yielded {type(chunk).__name__}, not a CompletionChunk")
    if not isinstance(chunk.result, CompletionResult | None):
        raise TypeError(f"a chunk's result is {type(chunk.result).__name__}, not a CompletionResult")


def result_text(result: ToolResult) -> str:
    """A tool's result for the model, as JSON."""
    return as_json(result.content if result.ok else {"error": result.error})


@contextlib.asynccontextmanager
async def _closing(stream: AsyncIterator[Any]) -> AsyncIterator[AsyncIterator[Any]]:
    """Close the stream at the end, if it has `aclose`: a provider may return any iterator."""
    try:
        yield stream
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            with contextlib.suppress(Exception):
                await close()


def broken_reply(why: str) -> Reminder:
    """The reminder for the next turn that the reply broke off, and why."""
    text = f"Your reply before this message broke off; the user saw only what stands there. {why}".strip()
    return Reminder(kind="broken_reply", origin="harness", text=text)
