"""The interface by which a harness joins Signet: five lifecycle events, each one daemon call.

An implementation translates and nothing more. It never raises for anything the daemon does or fails
to do: every result carries a :class:`~signet_reference_harness.daemon_client.reply.Reply` instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from signet_reference_harness.daemon_client.reply import Reply
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.messages import objects

StartSource = Literal["startup", "resume", "compact", "clear"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStartParams:
    """A session begins: `source` says why, `parent` and `subagent` whose sub-agent works in it.

    `recovers`: the daemon lost a session that goes on; its context is still in the conversation.
    """

    session: SessionIdentity
    source: StartSource = "startup"
    parent: str | None = None
    """The key of the session that a sub-agent works for."""
    subagent: str | None = None
    """The harness's own id of the sub-agent; Signet does not know it as an agent."""
    recovers: bool = False
    anew: bool = False
    """The user opens the session again, so this start is sent even if it equals one that the daemon refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStartResult:
    """`inject` is context for the model, perhaps empty; `memories` are the daemon's rows, unchanged."""

    reply: Reply
    inject: str = ""
    memories: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, reply: Reply) -> SessionStartResult:
        """Read the daemon's answer."""
        return cls(reply=reply, inject=reply.text("inject"), memories=tuple(objects(reply.body.get("memories"))))


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSubmitParams:
    """The user's own words, before the model sees them; `last_assistant_message` is what they answer to.

    `memory_feedback` rates memories by id, from -1 to 1.
    """

    session: SessionIdentity
    user_message: str
    last_assistant_message: str | None = None
    memory_feedback: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSubmitResult:
    """`inject` is context for this turn. `session_known` is None when the daemon does not report it."""

    reply: Reply
    inject: str = ""
    session_known: bool | None = None

    @classmethod
    def of(cls, reply: Reply) -> PromptSubmitResult:
        """Read the daemon's answer."""
        known = reply.body.get("sessionKnown")
        session_known = known if isinstance(known, bool) and reply.is_settled else None
        return cls(reply=reply, inject=reply.text("inject"), session_known=session_known)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEndParams:
    """A session is over: its transcript, best as JSON lines of `role` and `content`, and the boundary that ended it."""

    session: SessionIdentity
    transcript: str
    reason: str = "session_shutdown"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreCompactionParams:
    """The conversation of `message_count` messages is about to be replaced by a summary."""

    session: SessionIdentity
    message_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PreCompactionResult:
    """`summary_prompt` and `guidelines` are the daemon's wishes for the summary; empty without wishes."""

    reply: Reply
    summary_prompt: str = ""
    guidelines: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionCompleteParams:
    """The summary that took the conversation's place."""

    session: SessionIdentity
    summary: str


class RuntimeAdapter(ABC):
    """The interface that a harness implements to join Signet. `harness` is its name on every call.

    The implementation for Python is :class:`~signet_reference_harness.adapter.SessionAdapter`.
    """

    harness: str

    @abstractmethod
    async def on_session_start(self, params: SessionStartParams) -> SessionStartResult:
        """POST session-start: claims the key and brings the context of the first turn."""

    @abstractmethod
    async def on_user_prompt_submit(self, params: PromptSubmitParams) -> PromptSubmitResult:
        """POST user-prompt-submit: records the prompt and brings the context of this turn."""

    @abstractmethod
    async def on_session_end(self, params: SessionEndParams) -> Reply:
        """POST session-end: releases the key and hands over the transcript."""

    @abstractmethod
    async def on_pre_compaction(self, params: PreCompactionParams) -> PreCompactionResult:
        """POST pre-compaction: asks how to summarise."""

    @abstractmethod
    async def on_compaction_complete(self, params: CompactionCompleteParams) -> Reply:
        """POST compaction-complete: hands over the summary. Each call that arrives stores one more summary."""

    async def aclose(self) -> None:  # noqa: B027  an adapter that only translates holds nothing
        """No call follows. An implementation that holds sessions open ends them."""
