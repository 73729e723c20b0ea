"""A runtime adapter for a harness that keeps its own conversations and may call in any order, at any time.

The daemon still gets what the contract demands, by the lifecycle of the reference harness itself: a lost start is sent
before the next prompt, a lost end is sent again, and nothing is sent twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Self
from uuid import uuid4

import httpx

from signet_reference_harness.config import HarnessConfig, RuntimePath, origin_of
from signet_reference_harness.daemon_client import adapter
from signet_reference_harness.daemon_client.reply import Reply, held_back
from signet_reference_harness.daemon_client.routing import RoutingTable
from signet_reference_harness.identity import SessionIdentity, refuse_harness_as_agent
from signet_reference_harness.session import Session
from signet_reference_harness.session.conversation import TRANSCRIPT_LIMIT, Conversation
from signet_reference_harness.session.host import SessionHost

ENDED_KEPT: Final = 1_000
"""How many ended sessions are remembered; one that is resumed after that begins as a new one."""


def create_adapter(
    harness: str,
    daemon_url: str | None = None,
    *,
    agent: str | None = None,
    runtime_path: RuntimePath = "plugin",
    environ: Mapping[str, str] | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> SessionAdapter:
    """The adapter of the harness named `harness`, for the daemon at `daemon_url`, or else at the address in `environ`.

    Sessions belong to `agent` (default: SIGNET_AGENT_ID) unless they name another. Token, deadlines and bypass come
    from `environ` (os.environ) too; `transport` is httpx's. Raises ConfigError for a name, a path or an address that
    cannot be used, IdentityError for an agent with the harness's name.
    """
    config = HarnessConfig.from_environment(os.environ if environ is None else environ)
    config = replace(config, harness=harness, runtime_path=runtime_path, agent=agent or config.agent)
    if daemon_url is not None:
        remedy = "give an origin such as http://127.0.0.1:3850"
        config = replace(config, origin=origin_of(daemon_url, "the daemon's address", remedy=remedy))
    refuse_harness_as_agent(config.agent, harness)
    return SessionAdapter(config, transport=transport)


class _HostConversation(Conversation):
    """A conversation as far as an adapter knows it: the user's prompts, and the harness's account of the rest."""

    def __init__(self) -> None:
        super().__init__()
        self.counted = 0
        """How many messages the harness counts."""
        self.handed_over = ""
        """The transcript that the harness gave at the last end."""

    @property
    def message_count(self) -> int:
        """The number of messages, as the harness counts them."""
        return self.counted

    def add_prompt(self, prompt: str, last_reply: str | None) -> None:
        """Add the user's `prompt`, after `last_reply` if that is known."""
        if last_reply and self._turns:
            self._turns.append(("assistant", last_reply))
        self.last_reply = last_reply
        self._turns.append(("user", prompt))
        self.handed_over = ""

    def transcript(self, outgoing: Callable[[str], str]) -> str:
        """The newest lines of the harness's transcript; before it gave one, the user's prompts."""
        text = outgoing(self.handed_over)
        if not text.strip():
            return super().transcript(outgoing)
        if len(text) <= TRANSCRIPT_LIMIT:
            return text
        return text[-TRANSCRIPT_LIMIT:].partition("\n")[2] or text[:TRANSCRIPT_LIMIT]


@dataclass(slots=True)
class _KnownSession:
    """A session of the adapter. The call in progress holds the lock `turn`."""

    session: Session
    conversation: _HostConversation
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    calls: int = 0
    """Calls that are in progress or wait for their turn."""


class SessionAdapter(adapter.RuntimeAdapter):
    """Any number of sessions of one harness, each called from one task at a time or from many.

    A call that would break the contract is not made, and its reply says why: a start of an open session, or the end of
    one that is over. A prompt of a session that is not open opens it. Close it with :meth:`aclose`, which ends what is
    open; or use it as an asynchronous context manager.
    """

    def __init__(
        self,
        config: HarnessConfig,
        *,
        routing: RoutingTable | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """With a `routing` table each session speaks to the daemon of its agent."""
        self.harness = config.harness
        self._agent = config.agent
        self._host = SessionHost(config, (), routing=routing, transport=transport)
        self._known: OrderedDict[str, _KnownSession] = OrderedDict()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def session(self, project: str, *, key: str | None = None, agent: str | None = None) -> SessionIdentity:
        """The identity of a session in the folder `project` (an absolute path), with a fresh key unless one is given.

        Raises IdentityError.
        """
        return SessionIdentity(key or str(uuid4()), agent or self._agent, project, self.harness)

    async def on_session_start(self, params: adapter.SessionStartParams) -> adapter.SessionStartResult:
        """Open a session. Nothing is sent for one that is open, unless its context is cleared."""
        async with self._turn(params.session) as known:
            known.session.parent, known.session.subagent = params.parent, params.subagent
            if not await self._host.start(known.session, params.source):
                return adapter.SessionStartResult(reply=held_back("session-start", "the session is open already"))
            return adapter.SessionStartResult.of(_last(known.session.take_replies(), "session-start"))

    async def on_user_prompt_submit(self, params: adapter.PromptSubmitParams) -> adapter.PromptSubmitResult:
        """Report a prompt. The context of a start that had to go first precedes the turn's own."""
        async with self._turn(params.session) as known:
            # A harness that resumes an old session, or did not report its start, has not opened it.
            await known.session.start("resume")
            known.conversation.add_prompt(params.user_message, params.last_assistant_message)
            await known.session.submit(params.user_message, params.memory_feedback, repeated=True)
            replies = known.session.take_replies()
            result = adapter.PromptSubmitResult.of(_last(replies, "user-prompt-submit"))
            contexts = (reply.text("inject") for reply in replies if reply.operation == "session-start")
            return replace(result, inject="\n\n".join(filter(None, [*contexts, result.inject])))

    async def on_session_end(self, params: adapter.SessionEndParams) -> Reply:
        """Close a session; a `reason` that names no boundary is sent as a shutdown."""
        async with self._turn(params.session) as known:
            if not known.session.openings:
                await known.session.start("resume")
            known.conversation.handed_over = params.transcript
            return await self._host.end(known.session, params.reason)

    async def on_pre_compaction(self, params: adapter.PreCompactionParams) -> adapter.PreCompactionResult:
        """Report that a compaction begins."""
        async with self._turn(params.session) as known:
            known.conversation.counted = params.message_count
            return await known.session.pre_compaction()

    async def on_compaction_complete(self, params: adapter.CompactionCompleteParams) -> Reply:
        """Report the summary; a blank one is replaced by the user's prompts."""
        async with self._turn(params.session) as known:
            return await known.session.compaction_complete(params.summary)

    async def aclose(self) -> None:
        """End the open sessions, report the lost ends, and close the connections."""
        for known in tuple(self._known.values()):
            async with known.turn:
                continue  # a call in progress ends first
        await self._host.aclose()

    @contextlib.asynccontextmanager
    async def _turn(self, identity: SessionIdentity) -> AsyncIterator[_KnownSession]:
        """Let one call at a time use the session of an identity. Raises StepError if its key belongs to another."""
        session = self._host.session_for(identity.key, project=identity.project, agent=identity.agent, key=identity.key)
        known = self._known.get(identity.key)
        if known is None:
            known = self._known[identity.key] = _KnownSession(session, _HostConversation())
            session.conversation = known.conversation
        self._known.move_to_end(identity.key)
        known.calls += 1
        try:
            async with known.turn:
                # A session that the daemon considers open would look abandoned when the next one starts.
                await self._host.send_unsent_ends()
                session.take_replies()
                yield known
        finally:
            known.calls -= 1
            self._forget_some()

    def _forget_some(self) -> None:
        """Forget the sessions that ended longest ago, beyond ENDED_KEPT."""
        if len(self._known) <= ENDED_KEPT:
            return
        for key in tuple(self._known)[: len(self._known) - ENDED_KEPT]:
            if not self._known[key].calls and self._host.forget(key):
                del self._known[key]


def _last(replies: tuple[Reply, ...], operation: str) -> Reply:
    """The last reply of an operation; when no such call was made, what prevented it."""
    for reply in reversed(replies):
        if reply.operation == operation:
            return reply
    why = replies[-1].detail if replies else "an earlier call that this one needs could not be made"
    return held_back(operation, why or "the daemon refused an earlier call that this one needs")
