"""The current session of a chat: begun or resumed, recorded in its file, replaced by another, ended at the daemon."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Final
from uuid import uuid4

from signet_reference_harness import kept_lines
from signet_reference_harness.channels import UserTurn
from signet_reference_harness.chat.skills import Skill
from signet_reference_harness.errors import ConfigError, HarnessError
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.providers import Provider, StopReason, Usage
from signet_reference_harness.run import session_file
from signet_reference_harness.run.inputs import Folders
from signet_reference_harness.run.open_sessions import OpenMark, open_session
from signet_reference_harness.session import Session
from signet_reference_harness.session.host import SessionHost
from signet_reference_harness.session.lifecycle import uninterrupted
from signet_reference_harness.session.memory_effect import MemoryEffect
from signet_reference_harness.session.turn import TurnResult
from signet_reference_harness.session.watching import Publisher

MOST_LISTED: Final = 20
"""How many sessions /resume lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumableSession:
    """A session that can be continued: when it was last written to, and its first prompt."""

    key: str
    written: datetime
    first: str
    turns: int


@dataclass(slots=True, eq=False)
class ChatSession:
    """The one session of a chat at a time, with its file."""

    host: SessionHost
    provider: Provider
    folders: Folders
    """The places of session files."""
    scrub: Callable[[str], str]
    """Removes secrets from each line of such a file."""
    usual_model: str
    """Answers unless the options of a session name another."""
    spent: dict[str, Usage] = field(default_factory=dict)
    """Tokens of the session since it was taken up, by the model that took them."""
    effect: MemoryEffect | None = None
    """The effect of memory on the last answer; None before one."""
    _session: Session | None = None
    _file: session_file.SessionFile | None = None
    _mark: OpenMark | None = None
    """Exists while the daemon may hold the session open."""
    _owing: list[tuple[OpenMark, Session]] = field(default_factory=list)
    """Former sessions whose end was lost, with their marks: the host repeats it when it closes."""
    _last: tuple[str, bool] | None = None
    """The prompt of the last turn, and whether the conversation holds the turn; None without one."""

    @property
    def session(self) -> Session:
        """The session that is open. Raises AssertionError before the first one is."""
        assert self._session is not None  # noqa: S101 - for mypy: callers have called switch_to
        return self._session

    @property
    def model(self) -> str:
        """The model that answers."""
        return self.session.options.model or self.usual_model

    def _spend(self, usage: Usage) -> None:
        self.spent[self.model] = self.spent.get(self.model, Usage()) + usage

    async def switch_to(self, identity: SessionIdentity, stored: session_file.StoredSession | None) -> None:
        """Begin a session, or resume the `stored` one, and end the session that is open.

        Raises ConfigError, and changes nothing, if its file cannot be opened.
        """
        before, old_file = self._session, self._file
        self._release_owing(identity.key)
        session, file = await open_session(self.host, identity, self.folders, stored, self.scrub)
        try:
            mark = OpenMark.create(self.folders.open_sessions, session, file.path)
        except HarnessError:
            file.close()
            raise
        self._session, self._file, self.spent, self.effect = session, file, {}, None
        self._last = None
        old_mark, self._mark = self._mark, mark
        try:
            await uninterrupted(self.host.start(session, "startup" if stored is None else "resume", before))
        finally:
            if old_file is not None:
                old_file.close()
            if old_mark is not None and before is not None:
                if before.owes_end and before is not session:
                    self._owing.append((old_mark, before))
                else:
                    old_mark.release(owed=before.owes_end)

    async def turn(self, sent: UserTurn, listener: Publisher) -> TurnResult:
        """Perform a turn with the model, and record it in the session's file however it ends."""
        session, file = self.session, self._open_file
        session.cut_turn = None
        file.note_turn(sent.content)
        recorder = session_file.RecordedTurn(listener.put, file)
        result = TurnResult(outcome=StopReason.ERROR)
        try:
            result = await session.turn(sent.content, self.provider, listener=recorder)
            self.effect = result.memory
        except asyncio.CancelledError:
            result = session.cut_turn or TurnResult(outcome=StopReason.CANCELLED)
            raise
        finally:
            self._spend(result.usage)
            self._last = (sent.content, bool(result.messages))
            file.note_outcome(str(result.outcome), result.reply, result.messages, error=result.error)
        return result

    async def use_skill(self, skill: Skill, arguments: str, sent: UserTurn, listener: Publisher) -> TurnResult:
        """Perform a turn in which the model follows a skill, and report the skill to the daemon."""
        session, began, clock = self.session, kept_lines.now(), time.monotonic()
        conversation = session.conversation
        conversation.pending = (*conversation.pending, skill.reminder)
        error: str | None = "stopped"
        try:
            result = await self.turn(sent, listener)
            error = result.error
        finally:
            conversation.pending = tuple(each for each in conversation.pending if each != skill.reminder)
            invocation = {
                "skillName": skill.name,
                "toolUseId": str(uuid4()),
                "latencyMs": round((time.monotonic() - clock) * 1_000),
                "success": error is None,
                "origin": str(skill.origin),
                "createdAt": began,
                **({} if error is None else {"errorText": error}),
                **({"args": arguments} if arguments else {}),
            }
            session.keep_reply(await uninterrupted(session.client.skill_invocation(session.identity, invocation)))
        return result

    async def compact(self) -> str:
        """Replace the conversation by a summary, and return it."""
        result = await self.session.compact(self.provider)
        self._open_file.note_compaction(result.summary)
        self._spend(result.usage)
        note = "" if result.by_model else f"\n\nThe model could not summarise: {result.detail}"
        return f"{result.summary}{note}"

    def undo(self) -> bool:
        """Remove the last turn from the conversation. Return False if none can be removed."""
        self._last = None
        if self.session.conversation.undo() is None:
            return False
        self._open_file.note_undo()
        return True

    def take_back_prompt(self) -> str | None:
        """Remove the last turn, and return its prompt, so that it can be asked again; None without one."""
        if self._last is None:
            return None
        prompt, is_kept = self._last
        if is_kept:
            self.undo()
        return prompt

    def use_model(self, name: str) -> None:
        """Use another model of the provider from here on, also in later sessions of this chat."""
        self.host.options = self.session.options = replace(self.session.options, model=name)

    async def clear(self) -> None:
        """End the session, and begin it anew with nothing in the model's context."""
        self._last = None
        await uninterrupted(self.host.clear(self.session))
        self._open_file.note_clear()

    async def end(self) -> None:
        """End the session at the daemon."""
        if self._session is not None:
            await self.host.end(self._session)

    def close(self) -> None:
        """Close the session's file, and remove its mark unless the daemon may still hold the session open."""
        if self._mark is not None:
            self._mark.release(owed=self._session is None or self._session.owes_end)
        self._release_owing()
        if self._file is not None:
            self._file.close()

    def _release_owing(self, key: str | None = None) -> None:
        """Release the marks of former sessions: all of them, or those of the session with this key."""
        for mark, session in self._owing:
            if key in (None, session.identity.key):
                mark.release(owed=session.owes_end)
        self._owing = [each for each in self._owing if key not in (None, each[1].identity.key)]

    def resumable(self) -> Sequence[ResumableSession]:
        """The other sessions of this agent in this project that can be continued, the latest first."""
        here = self.session.identity
        found = session_file.sessions_of(self.folders.sessions, here.agent, here.project)
        others = (each for each in found if each.identity.key != here.key)
        return [_entry_of(stored) for stored in islice(others, MOST_LISTED)]

    def stored(self, key: str) -> session_file.StoredSession:
        """Read the file of a session. Raises ConfigError if it is missing, or of another agent or project."""
        here = self.session.identity
        stored = session_file.read_session(session_file.path_of(self.folders.sessions, key))
        if (stored.identity.agent, stored.identity.project) != (here.agent, here.project):
            raise ConfigError(
                f"session {key} is of agent {stored.identity.agent} in {stored.identity.project}",
                remedy=f"signet-harness chat --session {key}",
            )
        return stored

    @property
    def _open_file(self) -> session_file.SessionFile:
        assert self._file is not None  # noqa: S101 - for mypy: callers have called switch_to
        return self._file


def _entry_of(stored: session_file.StoredSession) -> ResumableSession:
    prompts = [text for role, text in stored.turns if role == "user"]
    written = datetime.fromtimestamp(stored.written, UTC)
    return ResumableSession(key=stored.identity.key, written=written, first=next(iter(prompts), ""), turns=len(prompts))
