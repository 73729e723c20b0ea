"""The daemon client of the harness: every operation of the integration contract, failing open.

One client serves all sessions of a process over one pool of kept connections. It makes no call before a GET /health was
answered 200. After a call that the daemon did not answer, it asks for the daemon's health again first.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

import httpx

from signet_reference_harness.config import HarnessConfig
from signet_reference_harness.daemon_client import adapter
from signet_reference_harness.daemon_client.reply import OPERATIONS, FailureClass, Reply, check_shape, held_back
from signet_reference_harness.daemon_client.restraint import EnvelopeGuard, refuses, without_tokens
from signet_reference_harness.daemon_client.wire import Wire
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.messages import map_texts

PROMPTS_AT_ONCE: Final = 8
SAVE_NAMESPACE: Final = uuid5(NAMESPACE_URL, "signet-reference-harness/remember")

#: The releases that read a transcript only from the file that `transcriptPath` names.
_FILES_ONLY: Final = re.compile(r"0\.(?:\d{1,2}|10[0-8])\.")
#: The releases that cannot resume a session without sending its context once more.
_NO_CLAIM_ALONE: Final = re.compile(r"0\.(?:\d{1,2}|1[0-7]\d|18[01])\.|0\.182\.[01]\b")
#: The releases that do not accept reports of used skills.
_NO_SKILLS: Final = re.compile(r"0\.(?:\d{1,2}|1[0-3]\d|14[0-4])\.")


class AdapterClient(adapter.RuntimeAdapter):
    """A :class:`RuntimeAdapter` over HTTP, with the memory and secret operations besides the five hooks.

    No answer of the daemon raises here. Close it with :meth:`aclose`.
    """

    def __init__(self, config: HarnessConfig, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.config = config
        self.harness = config.harness
        self._envelopes = EnvelopeGuard()
        self._wire = Wire(config, transport)
        self._prompt_slots = asyncio.Semaphore(PROMPTS_AT_ONCE)
        self._probe = asyncio.Lock()
        self._probe_is_refused = False
        self._has_answered = False
        self.is_answering = False
        """Whether the daemon answered the last request."""
        self._daemon_version = ""
        self._transcripts: TemporaryDirectory[str] | None = None

    async def aclose(self) -> None:
        """Close the connections, and remove the transcripts that were passed as files."""
        await self._wire.aclose()
        if self._transcripts:
            self._transcripts.cleanup()

    def outgoing(self, text: str) -> str:
        """`text` as it may be sent: without credentials, and without any text that the daemon injected."""
        return self._envelopes.remove(without_tokens(text, self.config.credentials))

    async def health(self) -> Reply:
        """GET /health, with the token if there is one: before 0.145 a daemon in team mode requires it here too."""
        if self.config.bypassed:
            return held_back("health", "Signet is bypassed by the environment")
        reply = check_shape(await self._wire.exchange("health", headers=self._credentials()))
        self.is_answering = reply.accepted and reply.status == 200
        self._probe_is_refused |= refuses(reply.status)
        self._has_answered = self._has_answered or self.is_answering
        self._daemon_version = reply.text("version") or self._daemon_version
        return reply

    async def on_session_start(self, params: adapter.SessionStartParams) -> adapter.SessionStartResult:
        """POST /api/hooks/session-start."""
        optional: dict[str, Any] = {"parentSessionKey": params.parent, "harnessAgentId": params.subagent}
        if params.recovers and self._daemon_version and not _NO_CLAIM_ALONE.match(self._daemon_version):
            optional["claimOnly"] = True
        members = {"project": params.session.project, "source": params.source}
        members |= {name: value for name, value in optional.items() if value is not None}
        reply = await self._hook(params.session, "session-start", members, anew=params.anew)
        self._envelopes.remember(reply.text("inject"))
        return adapter.SessionStartResult.of(reply)

    async def on_user_prompt_submit(self, params: adapter.PromptSubmitParams) -> adapter.PromptSubmitResult:
        """POST /api/hooks/user-prompt-submit, at most eight at once."""
        members: dict[str, Any] = {
            "project": params.session.project,
            "userMessage": self.outgoing(params.user_message),
        }
        if params.last_assistant_message is not None:
            members["lastAssistantMessage"] = self.outgoing(params.last_assistant_message)
        if params.memory_feedback is not None:
            members["memory_feedback"] = dict(params.memory_feedback)
        reply = await self._hook(params.session, "user-prompt-submit", members, slots=self._prompt_slots)
        self._envelopes.remember(reply.text("inject"))
        return adapter.PromptSubmitResult.of(reply)

    async def on_session_end(self, params: adapter.SessionEndParams) -> Reply:
        """POST /api/hooks/session-end. Sent even if the daemon did not answer before: it carries the transcript."""
        members = {"cwd": params.session.project, **self._transcript_member(params), "reason": params.reason}
        return await self._hook(params.session, "session-end", members)

    def _transcript_member(self, params: adapter.SessionEndParams) -> dict[str, str]:
        """The member with the transcript: the path of a file for a daemon before 0.109, which reads nothing else."""
        if not _FILES_ONLY.match(self._daemon_version):
            return {"transcript": params.transcript}
        self._transcripts = self._transcripts or TemporaryDirectory(prefix="signet-harness-")
        # The name depends on the transcript: an end with a longer transcript is not a repeat of one that was refused.
        name = uuid5(NAMESPACE_URL, f"{params.session.key}\0{params.transcript}".encode(errors="surrogatepass").hex())
        file = Path(self._transcripts.name, f"{name}.jsonl")
        file.write_text(params.transcript, "utf-8")
        return {"transcriptPath": str(file)}

    async def on_pre_compaction(self, params: adapter.PreCompactionParams) -> adapter.PreCompactionResult:
        """POST /api/hooks/pre-compaction."""
        reply = await self._hook(params.session, "pre-compaction", {"messageCount": params.message_count})
        return adapter.PreCompactionResult(
            reply=reply, summary_prompt=reply.text("summaryPrompt"), guidelines=reply.text("guidelines")
        )

    async def on_compaction_complete(self, params: adapter.CompactionCompleteParams) -> Reply:
        """POST /api/hooks/compaction-complete. The caller repeats it only if it surely was not sent."""
        members = {"project": params.session.project, "summary": self.outgoing(params.summary)}
        return await self._hook(params.session, "compaction-complete", members)

    async def checkpoint(self, session: SessionIdentity, transcript: str) -> Reply:
        """POST /api/hooks/session-checkpoint-extract: sends the transcript of a session that continues."""
        if _FILES_ONLY.match(self._daemon_version):
            return held_back("session-checkpoint-extract", "this daemon takes no checkpoints")
        members = {"project": session.project, "transcript": transcript}
        return await self._hook(session, "session-checkpoint-extract", members)

    async def skill_invocation(self, session: SessionIdentity, invocation: Mapping[str, Any]) -> Reply:
        """POST /api/hooks/skill-invocation: reports that a skill was used."""
        if _NO_SKILLS.match(self._daemon_version):
            return held_back("skill-invocation", "this daemon is not told of skills")
        members = {"cwd": session.project, **map_texts(invocation, self.outgoing)}
        return await self._hook(session, "skill-invocation", members)

    async def recall(self, session: SessionIdentity, query: str, limit: int, extra: Mapping[str, Any]) -> Reply:
        """POST /api/memory/recall: up to `limit` (1 to 100) rows that the session has not been shown yet.

        `extra` holds further fields of the request.
        """
        members = {**extra, "query": query, "limit": limit, "sessionKey": session.key}
        return await self.operate(session, "memory-recall", members)

    async def remember(self, session: SessionIdentity, content: str, extra: Mapping[str, Any]) -> Reply:
        """POST /api/hooks/remember, under an idempotency key that agent and content determine.

        So a repeat of a lost save has the key of the first one, in any session.
        """
        content = self.outgoing(content)
        if not content.strip():
            return held_back("hooks-remember", "nothing but injected text would have been saved")
        key = uuid5(SAVE_NAMESPACE, f"{session.agent}\0{content}".encode(errors="surrogatepass").hex())
        body = {
            **map_texts(extra, self.outgoing),
            **self._session_members(session),
            "project": session.project,
            "content": content,
            "idempotencyKey": str(key),
        }
        return await self._call(session, "hooks-remember", body)

    async def operate(
        self, session: SessionIdentity, operation: str, sent: Mapping[str, Any] = MappingProxyType({}), item: str = ""
    ) -> Reply:
        """Perform an operation on memories or secrets as the session's agent; `sent` are the members of its request.

        `item` is the row or job that it is about, and needs no percent-encoding.
        """
        return await self._call(session, operation, {**sent, "agentId": session.agent}, item=item)

    async def registered_servers(self, session: SessionIdentity) -> Reply:
        """GET /api/marketplace/mcp: the MCP servers that are registered for this harness and project."""
        members = {"scoped": "1", "harness": self.harness, "workspace": session.project}
        return await self._call(session, "marketplace-servers", members)

    async def _hook(
        self, session: SessionIdentity, operation: str, members: Mapping[str, Any], **options: Any
    ) -> Reply:
        """Call a hook, with the `members` that only this one has."""
        body = {**self._session_members(session), **members}
        return await self._call(session, operation, body, **options)

    def _session_members(self, session: SessionIdentity) -> dict[str, Any]:
        return {
            "harness": self.harness,
            "sessionKey": session.key,
            "agentId": session.agent,
            "runtimePath": self.config.runtime_path,
        }

    def _headers(self, session: SessionIdentity) -> dict[str, str]:
        """The headers of every call of a session, as most operations have no members for these facts."""
        sent = {
            "x-signet-harness": self.harness,
            "x-signet-session-key": session.key,
            "x-signet-workspace": session.project,
        }
        headers = {
            "x-signet-runtime-path": self.config.runtime_path,
            "x-signet-actor": f"{self.harness}-harness",
            "x-signet-actor-type": "harness",
            **{name: value for name, value in without_tokens(sent, self.config.credentials).items() if _fits(value)},
        }
        return headers | self._credentials()

    def _credentials(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.config.token}"} if self.config.token is not None else {}

    async def _call(
        self,
        session: SessionIdentity,
        operation: str,
        members: Mapping[str, Any],
        *,
        item: str = "",
        slots: asyncio.Semaphore | None = None,
        anew: bool = False,
    ) -> Reply:
        """Make a call of a session. A daemon that did not answer is probed first, unless the operation is `unseen`."""
        if self.config.bypassed:
            return held_back(operation, "Signet is bypassed by the environment")
        # A refused probe may not be repeated: then the call itself shows whether the daemon answers again.
        probe = not (self.is_answering or self._probe_is_refused or OPERATIONS[operation].get("unseen"))
        if not self._has_answered or probe:
            lost = await self._find_daemon()
            if lost is not None:
                return replace(lost, operation=operation, sent=False, reached=False, detail=f"health: {lost.detail}")
        headers = self._headers(session)
        reply = check_shape(
            await self._wire.exchange(operation, members, headers=headers, item=item, slots=slots, anew=anew)
        )
        if reply.failure in {FailureClass.OFFLINE, FailureClass.TIMEOUT}:
            self.is_answering = False
        return reply

    async def _find_daemon(self) -> Reply | None:
        """Probe the daemon, once for all waiting calls. Return None if it answers."""
        async with self._probe:
            if self.is_answering:
                return None
            reply = await self.health()
        if self.is_answering:
            return None
        return replace(reply, status=None, body={}, is_object=False, failure=reply.failure or FailureClass.SHAPE)


def _fits(value: str) -> bool:
    """Whether a header can carry the text unchanged."""
    return value.isascii() and value.isprintable() and value == value.strip()
