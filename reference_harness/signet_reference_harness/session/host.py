"""The sessions of one process, by the names that the host gives them, over one shared client."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

import httpx

from signet_reference_harness.config import HarnessConfig
from signet_reference_harness.daemon_client import AdapterClient
from signet_reference_harness.daemon_client.adapter import StartSource
from signet_reference_harness.daemon_client.reply import Reply
from signet_reference_harness.daemon_client.routing import RoutingTable
from signet_reference_harness.errors import StepError
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.providers import CompletionOptions, CompletionResult, Provider
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.session import Session
from signet_reference_harness.session.lifecycle import CLEAR, SHUTDOWN
from signet_reference_harness.session.turn import MOST_ROUNDS
from signet_reference_harness.tools import DaemonTool, Tool, ToolSource
from signet_reference_harness.tools.built_in import BUILT_IN
from signet_reference_harness.tools.permission import Permissions
from signet_reference_harness.tools.registry import ToolRegistry

SWITCH: Final = "session_switch"
Models = Callable[[Sequence[CompletionResult], Callable[[], Awaitable[None]] | None], Provider]
"""Makes a model that gives these answers in order; the function, if any, is awaited before the first."""


class SessionHost:
    """Any number of sessions, of any number of agents, at the same time. Close it with :meth:`aclose`."""

    def __init__(
        self,
        config: HarnessConfig,
        tools: Sequence[Tool | DaemonTool] = BUILT_IN,
        *,
        research: Sequence[str] = (),
        sources: Sequence[ToolSource] = (),
        workspace: Path | None = None,
        context_budget: int | None = None,
        most_rounds: int = MOST_ROUNDS,
        options: CompletionOptions | None = None,
        permissions: Permissions | None = None,
        routing: RoutingTable | None = None,
        model_turn: Callable[[str], Awaitable[None]] | None = None,
        models: Models = ScriptedProvider,
        transport: httpx.AsyncBaseTransport | None = None,
        starts_at_prompt: bool = False,
        client: AdapterClient | None = None,
    ) -> None:
        """`research` names tools that run on each prompt before the model does, with the prompt as their `query`.

        `sources` bring further tools, which may change; the caller closes them.
        `workspace` is the folder of the agent's own files; a context of over `context_budget` tokens is compacted, and
        a turn has at most `most_rounds` rounds of tools.
        `options` are those of each completion of the model, `permissions` what it may do; by default everything.
        With a `routing` table each session speaks to the daemon of its agent, and to no other.
        `model_turn` is awaited with a session's name before its model is asked; `models` makes the model of a step
        from the answers that it is to give. `transport` is httpx's. With `starts_at_prompt` the daemon hears of a
        session at its first prompt, as OpenClaw's connector does it, and not when the session opens. `client` speaks to
        the daemon of `config`; by default one is made.
        """
        self.client = client or AdapterClient(config, transport)
        self._clients = {(config.origin, config.token): self.client}
        self._routing = routing
        self._transport = transport
        self.model_turn = model_turn
        self.models = models
        self.options = options or CompletionOptions()
        self._hooks = itertools.count(1)
        self._new_session = partial(
            Session,
            tick=lambda: next(self._hooks),
            starts_at_prompt=starts_at_prompt,
            tools=ToolRegistry(tools, research, sources),
            workspace=workspace,
            context_budget=context_budget,
            most_rounds=most_rounds,
            permissions=permissions,
        )
        self._sessions: dict[str, Session] = {}
        self._forgotten_starts: dict[str, int] = {}
        """By agent, the last start of a session that is forgotten."""

    def knows(self, name: str) -> bool:
        """Whether there is a session of that name."""
        return name in self._sessions

    def session(self, name: str) -> Session:
        """The session of that name. Raises StepError when none was started."""
        try:
            return self._sessions[name]
        except KeyError:
            raise StepError(f"there is no session {name!r}", remedy="start it first") from None

    def session_for(self, name: str, *, project: str | None, agent: str | None, key: str | None) -> Session:
        """The session of that name, created if it is new.

        None keeps the identity of a known session. A new one then gets a fresh key, and the agent that the key names,
        or else the environment. Raises StepError if a new session lacks a project, if a known one would change its
        identity, or if the key is in use; IdentityError for an identity that the contract forbids; RoutingError for an
        agent without a daemon.
        """
        known = self._sessions.get(name)
        if known is not None:
            self._check_unchanged(known, name, project=project, agent=agent, key=key)
            return known
        if project is None:
            raise StepError(f"session {name!r} has no project", remedy="give its working directory as 'project'")
        key = str(uuid4()) if key is None else key
        identity = SessionIdentity(
            key, agent or agent_in(key) or self.client.config.agent, project, self.client.config.harness
        )
        for other, session in self._sessions.items():
            if session.identity.key == identity.key:
                raise StepError(f"key {identity.key!r} is that of session {other!r}", remedy="give each its own key")
        made = self._new_session(identity, self._client_of(identity.agent), options=self.options)
        self._sessions[name] = made
        return made

    async def start(self, session: Session, source: StartSource, replaces: Session | None = None) -> bool:
        """End the session that this one `replaces`, then open this one. Return False if it was open already."""
        if replaces is not None and replaces is not session:
            await replaces.end(SWITCH)
        if source == "clear" and session.is_open:
            await self.clear(session)
            return True
        return await session.start(source)

    async def clear(self, session: Session) -> None:
        """Empty the model's context, end the session as :meth:`end` does, and start it again.

        If the start has to wait, the daemon gets only the end for now.
        """
        await self._checkpoint_if_overtaken(session)
        await session.clear()

    async def begin_anew(self, name: str, *, end_untold: bool = False) -> Session:
        """Clear a session as hosts do that give it another id: end it, and give its name to one with a fresh key.

        With `end_untold` the host does not report the end, so the session is not ended at the daemon.
        """
        before = await self._leave(name, CLEAR, unreported=end_untold)
        after = self.session_for(name, project=before.identity.project, agent=before.identity.agent, key=None)
        await after.start(CLEAR)
        return after

    async def continue_session(self, name: str, *, anew: bool = False, end_untold: bool = False) -> Session:
        """Continue a session as the next process does after a kill.

        With `anew` it continues under a fresh key. The session under the old key is ended first, unless `end_untold`
        says that the host does not report the end.
        """
        left = await self._leave(name, SHUTDOWN, unreported=end_untold or not anew)
        identity = left.identity
        key = None if anew else identity.key
        session = self.session_for(name, project=identity.project, agent=identity.agent, key=key)
        await session.continue_from(left)
        return session

    async def _leave(self, name: str, reason: str, *, unreported: bool) -> Session:
        """End a session, or only forget it if its end is `unreported`. Return it; its name is free then."""
        left = self.session(name)
        if unreported:
            self._sessions.pop(name).results.close()
        else:
            await self.end(left, reason)
            self._sessions[f"{name}, until {left.identity.key}"] = self._sessions.pop(name)
        return left

    async def end(self, session: Session, reason: str = SHUTDOWN) -> Reply:
        """Close a session.

        If another session of the agent was started since this one's last hook, a checkpoint goes before the end.
        Otherwise the daemon would assume that the other session has replaced this one.
        """
        await self._checkpoint_if_overtaken(session)
        return await session.end(reason)

    async def send_unsent_ends(self) -> None:
        """Send the ends that could not be sent before. Call it before any other request to the daemon.

        If one end does not reach its daemon, no other is tried there now, since each would wait as long.
        """
        unreachable: set[AdapterClient] = set()
        for session in tuple(self._sessions.values()):
            if session.has_unsent_end and session.client not in unreachable:
                await session.send_unsent_end(overtaken=self._is_overtaken(session))
                if session.has_unsent_end and not session.client.is_answering:
                    unreachable.add(session.client)

    def forget(self, name: str) -> bool:
        """Forget a session. Return False if it is open, or if its end still has to be sent."""
        session = self._sessions[name]
        if not session.is_settled:
            return False
        agent = session.identity.agent
        self._forgotten_starts[agent] = max(self._forgotten_starts.get(agent, 0), session.last_start)
        session.results.close()
        del self._sessions[name]
        return True

    async def aclose(self) -> None:
        """Send the missing ends again, end the open sessions, and close the connections."""
        sessions = self._sessions.values()
        await self.send_unsent_ends()
        await asyncio.gather(*(session.repeat_lost_end() for session in sessions))
        await asyncio.gather(*(self.end(session) for session in sessions if session.is_open))
        for session in sessions:
            session.results.close()
        await asyncio.gather(*(client.aclose() for client in self._clients.values()))

    def _client_of(self, agent: str) -> AdapterClient:
        """The client of the agent's daemon, which its session keeps."""
        if self._routing is None:
            return self.client
        config = self._routing.settings_for(agent, self.client.config)
        place = (config.origin, config.token)
        if place not in self._clients:
            self._clients[place] = AdapterClient(config, self._transport)
        return self._clients[place]

    async def _checkpoint_if_overtaken(self, session: Session) -> None:
        if session.is_open and self._is_overtaken(session):
            await session.checkpoint()

    def _is_overtaken(self, session: Session) -> bool:
        if self._forgotten_starts.get(session.identity.agent, 0) > session.last_hook:
            return True
        return any(
            other.identity.agent == session.identity.agent and other.last_start > session.last_hook
            for other in self._sessions.values()
        )

    @staticmethod
    def _check_unchanged(session: Session, name: str, **given: str | None) -> None:
        for field, value in given.items():
            known = getattr(session.identity, field)
            if value is not None and value.strip().removeprefix("session:") != known:
                raise StepError(
                    f"session {name!r} has the {field} {known!r}, not {value!r}",
                    remedy="give another identity to a session of another name",
                )


def agent_in(key: str) -> str | None:
    """The agent that a key of the form `agent:<id>:…` names; None for other keys."""
    scheme, _, rest = key.strip().partition(":")
    return rest.partition(":")[0].strip() or None if scheme == "agent" else None
