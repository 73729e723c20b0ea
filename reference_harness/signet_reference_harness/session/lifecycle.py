"""The lifecycle hooks of one session, in the contract's order.

A missing hook is sent before the next hook that depends on it: a start before a prompt, the end of a compaction before
anything else, and an unsent end before the session is started again. No answer of the daemon raises here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from signet_reference_harness.daemon_client import AdapterClient, adapter
from signet_reference_harness.daemon_client.reply import OPERATIONS, REFUSALS, FailureClass, Reply, held_back
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.session.conversation import Conversation

Value = TypeVar("Value")


async def uninterrupted(work: Coroutine[Any, Any, Value]) -> Value:
    """Return the value of `work`. If the caller is cancelled meanwhile, `work` is finished first and its value lost."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.result()


CLAIMED: Final = 409
CLEAR: Final = "clear"
BOUNDARIES: Final = frozenset(OPERATIONS["session-end"]["reasons"])
SHUTDOWN: Final = "session_shutdown"
"""The reason of an end for which the host gave none that names a boundary."""


@dataclass(slots=True)
class _Daemon:
    """The daemon's knowledge of the session, as far as the harness can know."""

    wants_start: bool = True
    asks_anew: bool = False
    """The next start is not a repetition: the user opened the session, or the daemon forgot it."""
    recovers: bool = False
    """The next start recovers a running session that the daemon has forgotten."""
    wants_end: bool = False
    """A start may have arrived, and no end after it was accepted."""
    claimed_elsewhere: bool = False
    next_source: adapter.StartSource = "startup"
    pre_arrived: bool = False
    """A pre-compaction arrived whose compaction has not been completed."""
    summary: str | None = None
    """The summary of a compaction that has not been sent yet."""
    last_prompt: tuple[str, str | None] | None = None
    """The prompt that was the last hook of the session, if it was one."""
    owes_start: bool = False
    """The last hook was an end with the reason `clear`, which only a start may follow."""
    unsent_end: str | None = None
    """The reason of an end that was certainly not sent: to the daemon the session is still open."""
    lost_end: str | None = None
    """The reason of an end that was not accepted."""


@dataclass(slots=True)
class MemoryFacts:
    """Whether the daemon accepted a session's start, and how many calls it refused or did not answer."""

    started: bool = False
    refused: int = 0
    failed: int = 0

    def count(self, reply: Reply) -> None:
        """Count a call that was made, or could not be made."""
        if reply.status in REFUSALS:
            self.refused += 1
        elif reply.failure is not None and reply.failure is not FailureClass.HELD_BACK and not _is_about_a_row(reply):
            self.failed += 1

    @property
    def is_whole(self) -> bool:
        """Whether the session's memory lacks nothing."""
        return self.started and not self.refused and not self.failed


def _is_about_a_row(reply: Reply) -> bool:
    """Whether the daemon refused because a row does not exist, or the model's arguments are wrong."""
    return reply.operation.startswith("memory-") and reply.status in {400, 404}


@dataclass(slots=True, eq=False)
class Lifecycle:
    """The hooks of a session of one agent in one project.

    `tick` numbers the hooks of all sessions of a host, so that `last_start` and `last_hook` compare.
    """

    identity: SessionIdentity
    client: AdapterClient
    tick: Callable[[], int]
    is_open: bool = False
    openings: int = 0
    """How often it was opened: at a start, a resume and a clear."""
    last_start: int = 0
    last_hook: int = 0
    parent: str | None = None
    """The key of the parent session, if a sub-agent works in this one."""
    subagent: str | None = None
    """The harness's own id of that sub-agent."""
    starts_at_prompt: bool = False
    """The start is sent with the first prompt, or with an earlier call that needs the session, not at the opening."""
    conversation: Conversation = field(default_factory=Conversation)
    replies: list[Reply] = field(default_factory=list)
    """The replies since :meth:`take_replies`."""
    memory: MemoryFacts = field(default_factory=MemoryFacts)
    start_reply: Reply | None = None
    """The daemon's answer to the last start; None before one."""
    start_rows: list[Mapping[str, Any]] = field(default_factory=list)
    """The memories that starts have brought since the context was last cleared."""
    submission: Reply | None = None
    """The daemon's answer to the prompt of the turn; None if it was not sent."""
    _contexts: list[str] = field(default_factory=list)
    """Injections of starts since the context was last cleared."""
    _daemon: _Daemon = field(default_factory=_Daemon)
    _unsent_end_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while an unsent end is sent, which steps of other sessions may cause."""

    async def start(self, source: adapter.StartSource = "startup") -> bool:
        """Open the session. Return False, and do nothing, if it is open already."""
        if self.is_open:
            return False
        self._open(source)
        await self._announce_opening()
        return True

    async def continue_from(self, left: Lifecycle) -> None:
        """Continue a session that a dead process left open at the daemon, with its conversation and context.

        Under the same key, only the claim is requested, if the daemon's release knows claims.
        """
        self.conversation, self._contexts, self.start_rows = left.conversation, left._contexts, left.start_rows
        self._open("resume")
        if left.identity.key == self.identity.key:
            self._daemon.wants_end = self._daemon.recovers = left.owes_end
        await self._announce_opening()

    async def pre_compaction(self) -> adapter.PreCompactionResult:
        """Tell the daemon that the conversation is about to be summarised, and learn how it wants that done."""
        await self._finish_compaction()
        return await self._before_compaction()

    async def compaction_complete(self, summary: str) -> Reply:
        """Replace the conversation by `summary` (if blank, by a digest), and tell the daemon."""
        summary = summary if summary.strip() else self.conversation.digest()
        self.conversation.compact(summary)
        self._daemon.summary = summary
        return await self._after_compaction()

    async def checkpoint(self) -> Reply:
        """Send the daemon the transcript of the session so far."""
        if not await self._is_started():
            return held_back("session-checkpoint-extract", "the session has not been started at the daemon")
        return await self._checkpoint()

    async def clear(self) -> None:
        """Discard the conversation; the same session then begins anew."""
        await self._end(CLEAR)
        self.conversation.clear()
        self._contexts.clear()
        self.start_rows.clear()
        self._open(CLEAR)
        await self._announce_opening()

    async def end(self, reason: str = SHUTDOWN) -> Reply:
        """Close the session. A `reason` that names no boundary is sent as a shutdown."""
        if not self.is_open:
            return held_back("session-end", "the session is not open")
        return await self._end(reason if reason in BOUNDARIES else SHUTDOWN)

    @property
    def owes_end(self) -> bool:
        """Whether the session may be open at the daemon: a start may have arrived, and no end after it was accepted."""
        return self._daemon.wants_end

    async def end_abandoned(self) -> Reply:
        """End a session that a dead process left open at the daemon; this process has not opened it."""
        self._daemon.wants_end = True
        return await self._end(SHUTDOWN)

    async def send_unsent_end(self, *, overtaken: bool) -> None:
        """Send the unsent end, if there is one and the session is closed.

        If the session is `overtaken`, a checkpoint goes before it, as :meth:`SessionHost.end` explains.
        """
        if not self.is_open:
            await self._settle_unsent_end(overtaken=overtaken)

    async def repeat_lost_end(self) -> None:
        """Send an end again that was sent and not accepted, once."""
        reason, self._daemon.lost_end = self._daemon.lost_end, None
        if reason is not None and not self.is_open and self._daemon.unsent_end is None:
            await self._send_end(reason)

    @property
    def has_unsent_end(self) -> bool:
        """Whether it is closed, and its end was not sent: to the daemon it is open."""
        return not self.is_open and self._daemon.unsent_end is not None

    @property
    def is_settled(self) -> bool:
        """Whether it is closed, and all its hooks were sent."""
        return not self.is_open and self._daemon.unsent_end is None and self._daemon.lost_end is None

    def take_replies(self) -> tuple[Reply, ...]:
        """The replies since the last call of this method, in order."""
        replies = tuple(self.replies)
        self.replies.clear()
        return replies

    def take_failures(self) -> Iterator[str]:
        """Yield the daemon's failures since the replies were last taken, a line for each operation and failure."""
        failed = [reply for reply in self.take_replies() if reply.failure is not None]
        if not self.client.config.bypassed:
            yield from dict.fromkeys(reply.in_brief for reply in failed)

    def _open(self, source: adapter.StartSource) -> None:
        if source != "startup":
            self.conversation.begin_again(source)
        self.is_open = True
        self.openings += 1
        self._daemon.lost_end = None
        self._daemon.wants_start, self._daemon.recovers, self._daemon.asks_anew = True, False, True
        # A clear of which the daemon does not know yet remains the source at a later resume.
        if self._daemon.next_source != CLEAR:
            self._daemon.next_source = source

    async def _announce_opening(self) -> None:
        if not self.starts_at_prompt:
            await self._announce()

    async def _announce(self) -> str:
        """Send the start, and return the context that it brought. Later turns keep this context."""
        daemon = self._daemon
        if daemon.claimed_elsewhere or not await self._settle_unsent_end():
            return ""
        params = adapter.SessionStartParams(
            session=self.identity,
            source=daemon.next_source,
            parent=self.parent,
            subagent=self.subagent,
            recovers=daemon.recovers,
            anew=daemon.asks_anew,
        )
        result = await self.client.on_session_start(params)
        reply = self._note(result.reply)
        self.start_reply = reply
        self.start_rows += result.memories
        self.memory.started |= reply.is_settled
        self.last_start = self.last_hook
        daemon.owes_start = daemon.owes_start and not reply.sent
        daemon.asks_anew = daemon.asks_anew and not reply.sent
        daemon.claimed_elsewhere = reply.status == CLAIMED
        daemon.wants_end = (daemon.wants_end or reply.sent) and not daemon.claimed_elsewhere
        if reply.reached:
            daemon.wants_start = daemon.recovers = False
            daemon.next_source = "resume"
        if result.inject and result.inject not in self._contexts:
            self._contexts.append(result.inject)
        return result.inject

    async def _is_started(self) -> bool:
        if self.is_open and self._daemon.wants_start:
            await self._announce()
        return self.is_open and not self._daemon.wants_start and not self._daemon.claimed_elsewhere

    async def submit(self, prompt: str, feedback: Mapping[str, float] | None = None, *, repeated: bool = False) -> str:
        """Send the prompt to the daemon, and return the context for this turn.

        A prompt is not sent if its text and the last reply are those of the previous prompt: it is the same turn, which
        the model failed to answer. `repeated` says that the user has entered the same text again.
        """
        self.submission = None
        if not await self._finish_compaction() or not await self._is_started():
            return ""
        words = self.client.outgoing(prompt)
        if not words.strip():
            return ""
        last_reply = self.conversation.last_reply
        last = self.client.outgoing(last_reply) if last_reply else None
        submission = (words, last if last and last.strip() else None)
        if submission == self._daemon.last_prompt:
            # Leaving the last reply out distinguishes a new turn of the same words from a repeated submission.
            submission = (words, None)
        if submission == self._daemon.last_prompt and not repeated:
            # The daemon has this turn, which the model failed to answer.
            return ""
        params = adapter.PromptSubmitParams(
            session=self.identity, user_message=words, last_assistant_message=submission[1], memory_feedback=feedback
        )
        result = await self.client.on_user_prompt_submit(params)
        reply = self.submission = self._note(result.reply)
        if reply.sent:
            self._daemon.last_prompt = submission
        if result.session_known is False:
            self._daemon.wants_start = self._daemon.recovers = self._daemon.asks_anew = True
            # A daemon of a release before 0.182.2 now sends all of the session's context again.
            context = await self._announce()
            self._contexts = [context] if context else self._contexts
        return result.inject

    async def _before_compaction(self) -> adapter.PreCompactionResult:
        if not await self._is_started():
            reply = held_back("pre-compaction", "the daemon does not hold this session")
            return adapter.PreCompactionResult(reply=reply)
        count = self.conversation.message_count
        params = adapter.PreCompactionParams(session=self.identity, message_count=count)
        result = await self.client.on_pre_compaction(params)
        self._note(result.reply)
        self._daemon.pre_arrived = self._daemon.pre_arrived or result.reply.reached
        return result

    async def _after_compaction(self) -> Reply:
        daemon = self._daemon
        started = await self._is_started()
        if started and daemon.summary is not None and not daemon.pre_arrived:
            await self._before_compaction()
        if not started or daemon.summary is None or not daemon.pre_arrived:
            return held_back("compaction-complete", "the daemon has not been told of a compaction")
        return await self._complete(daemon.summary)

    async def _complete(self, summary: str) -> Reply:
        if not self.client.outgoing(summary).strip():
            summary = self.conversation.digest()
        params = adapter.CompactionCompleteParams(session=self.identity, summary=summary)
        reply = self._note(await self.client.on_compaction_complete(params))
        if reply.sent:
            # It may have arrived, and the daemon stores each one that arrives, so it is never sent twice.
            self._daemon.summary, self._daemon.pre_arrived = None, False
        return reply

    async def _finish_compaction(self) -> bool:
        """Send the missing hooks of a compaction. Return False while the daemon still waits for the end of one."""
        if self._daemon.pre_arrived and self._daemon.summary is None:
            self._daemon.summary = self.conversation.digest()
        if self._daemon.summary is not None:
            await self._after_compaction()
        return not self._daemon.pre_arrived

    async def _end(self, reason: str) -> Reply:
        daemon = self._daemon
        finished = await self._finish_compaction()
        if daemon.owes_start:
            # The user asked for an end, not for a start.
            daemon.asks_anew = False
            await self._is_started()
        self.is_open = False
        daemon.wants_start = True
        if not daemon.wants_end or daemon.owes_start:
            return held_back("session-end", "the daemon does not hold this session")
        if finished:
            reply = await self._send_end(reason)
        else:
            reply = held_back("session-end", "the end of a compaction has to be sent first")
            daemon.unsent_end = reason
        if reply.sent:
            daemon.summary = None
        if not reply.accepted and reason != CLEAR:
            daemon.lost_end = reason
        return reply

    async def _settle_unsent_end(self, *, overtaken: bool = False) -> bool:
        """Send the unsent end, and the end of a compaction before it. Return False if they cannot be sent."""
        daemon = self._daemon
        async with self._unsent_end_lock:
            if daemon.unsent_end is None:
                return True
            if daemon.pre_arrived and not (await self._complete(daemon.summary or "")).sent:
                return False
            if overtaken and (await self._checkpoint()).failure is FailureClass.OFFLINE:
                return False
            return (await self._send_end(daemon.unsent_end)).sent

    async def _checkpoint(self) -> Reply:
        transcript = self.conversation.transcript(self.client.outgoing)
        return self._note(await self.client.checkpoint(self.identity, transcript))

    async def _send_end(self, reason: str) -> Reply:
        daemon = self._daemon
        transcript = self.conversation.transcript(self.client.outgoing)
        params = adapter.SessionEndParams(session=self.identity, transcript=transcript, reason=reason)
        reply = self._note(await self.client.on_session_end(params))
        if reply.accepted:
            daemon.wants_end, daemon.lost_end = False, None
        daemon.unsent_end = None if reply.sent else reason
        daemon.owes_start = reply.sent and reason == CLEAR
        return reply

    def keep_reply(self, reply: Reply) -> None:
        """Keep a reply for :meth:`take_replies`, and count what it says of the session's memory."""
        self.replies.append(reply)
        self.memory.count(reply)

    def _note(self, reply: Reply) -> Reply:
        self.keep_reply(reply)
        if reply.sent:
            self.last_hook = self.tick()
            self._daemon.last_prompt = None
        return reply
