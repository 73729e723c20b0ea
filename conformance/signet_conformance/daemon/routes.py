"""Which method and path is answered by what, in the order in which the daemon looks; who may call it; how it fails."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from signet_conformance.daemon import (
    compaction,
    forgetting,
    lifecycle,
    memory_calls,
    mutations,
    polled,
    presence,
    secrets,
    session_calls,
)
from signet_conformance.daemon.captures import capture_status
from signet_conformance.daemon.mcp import mcp
from signet_conformance.daemon.remember import remember
from signet_conformance.daemon.wire import Answer, Call

if TYPE_CHECKING:
    from signet_conformance.daemon.behaviour import Behaviour
    from signet_conformance.daemon.state import Daemon

Handler: TypeAlias = "Callable[[Daemon, Call], Answer | Awaitable[Answer]]"

_HOOK_FAILED: Final = "Hook execution failed"


@dataclass(frozen=True)
class Route:
    """One route: `failure` is the error text of a crash in it; without one a crash is plain text."""

    method: str
    path: str
    handler: Handler
    failure: str | None = None
    only: Callable[[Behaviour], bool] | None = None

    @property
    def pattern(self) -> re.Pattern[str]:
        """The path with its variable segments as groups."""
        return pattern_of(self.path)


def pattern_of(path: str) -> re.Pattern[str]:
    """`path` as an expression: ``:name`` is one segment, a ``*`` at the end anything."""
    text = re.sub(r":(\w+)", r"(?P<\1>[^/]+)", path.replace(".", r"\."))
    return re.compile(text.removesuffix("/*") + "(?:/.*)?" if text.endswith("/*") else text)


def _later(behaviour: Behaviour) -> bool:
    return behaviour.later_hooks


def _newest(behaviour: Behaviour) -> bool:
    return behaviour.notifications


#: Every route; the first that matches answers. memory/:id hides a GET memory/search, as in the real daemon.
ROUTES: Final = (
    Route("POST", "/api/hooks/session-start", lifecycle.session_start, _HOOK_FAILED),
    Route("POST", "/api/hooks/user-prompt-submit", lifecycle.prompt_submit, _HOOK_FAILED),
    Route("POST", "/api/hooks/session-end", lifecycle.session_end, _HOOK_FAILED),
    Route("POST", "/api/hooks/pre-compaction", compaction.pre_compaction, _HOOK_FAILED),
    Route("POST", "/api/hooks/compaction-complete", compaction.compaction_complete, "Failed to save summary"),
    Route("POST", "/api/hooks/session-checkpoint-extract", compaction.checkpoint, _HOOK_FAILED, _later),
    Route("POST", "/api/hooks/skill-invocation", polled.skill_invocation, _HOOK_FAILED, _later),
    Route("POST", "/api/hooks/notifications", polled.notifications, _HOOK_FAILED, _newest),
    Route("GET", "/api/hooks/transcript-capture/:jobId", capture_status, _HOOK_FAILED, _newest),
    Route("POST", "/api/hooks/remember", memory_calls.hook_remember, _HOOK_FAILED),
    Route("POST", "/api/hooks/recall", memory_calls.hook_recall, _HOOK_FAILED),
    Route("GET", "/api/hooks/synthesis/config", polled.synthesis_config),
    Route("POST", "/api/hooks/synthesis/complete", polled.synthesis_complete, "Failed to save MEMORY.md"),
    Route("GET", "/api/memories", memory_calls.list_memories),
    Route("GET", "/memory/search", memory_calls.search_rows),
    Route("POST", "/api/memory/codex-native-note", memory_calls.codex_note, None, _later),
    Route("POST", "/api/memory/remember", remember),
    Route("POST", "/api/memory/save", memory_calls.remember_alias),
    Route("POST", "/api/hook/remember", memory_calls.remember_alias),
    Route("GET", "/api/memory/:id", memory_calls.get_memory),
    Route("GET", "/api/memory/:id/history", mutations.history),
    Route("POST", "/api/memory/:id/recover", mutations.recover_memory),
    Route("PATCH", "/api/memory/:id", mutations.patch_memory),
    Route("DELETE", "/api/memory/:id", mutations.delete_memory),
    Route("POST", "/api/memory/feedback", memory_calls.feedback),
    Route("POST", "/api/memory/forget", forgetting.forget_memories),
    Route("POST", "/api/memory/modify", mutations.modify_memories),
    Route("POST", "/api/memory/recall", memory_calls.memory_recall),
    Route("GET", "/api/sessions", session_calls.list_sessions),
    Route("POST", "/api/sessions/search", session_calls.search_sessions, None, _later),
    Route("GET", "/api/sessions/summaries", session_calls.list_summaries),
    Route("POST", "/api/sessions/summaries/expand", session_calls.expand_summary),
    Route("GET", "/api/sessions/:key", session_calls.get_session),
    Route("GET", "/api/sessions/:key/transcript", session_calls.get_transcript),
    Route("POST", "/api/sessions/:key/bypass", session_calls.bypass_session),
    Route("POST", "/api/sessions/:key/renew", session_calls.renew_session),
    Route("GET", "/api/secrets", secrets.list_secrets),
    Route("POST", "/api/secrets/exec", secrets.exec_secrets),
    Route("GET", "/api/secrets/exec/:jobId", secrets.exec_status, None, lambda behaviour: behaviour.exec_is_job),
    Route("POST", "/api/secrets/:name/exec", secrets.exec_secrets),
    Route("POST", "/api/secrets/:name", secrets.put_secret),
    Route("DELETE", "/api/secrets/:name", secrets.delete_secret),
    Route("GET", "/health", polled.health),
    Route("GET", "/health/live", polled.ready, None, _newest),
    Route("GET", "/health/ready", polled.ready, None, _newest),
    Route("GET", "/", polled.home),
    Route("GET", "/api/status", polled.status),
    Route("GET", "/api/agents", polled.list_agents),
    Route("GET", "/api/agents/:name", polled.get_agent),
    Route("GET", "/api/marketplace/mcp", polled.marketplace),
    Route("GET", "/api/marketplace/mcp/policy", polled.marketplace),
    Route("GET", "/api/marketplace/mcp/tools", polled.marketplace),
    Route("GET", "/api/marketplace/mcp/search", polled.marketplace),
    Route("GET", "/api/marketplace/mcp/:id", polled.marketplace_server),
    Route("POST", "/api/marketplace/mcp/call", polled.marketplace_call),
    Route("POST", "/api/diagnostics/openclaw/heartbeat", polled.heartbeat),
    Route("GET", "/api/knowledge/stats", polled.knowledge),
    Route("GET", "/api/knowledge/communities", polled.knowledge),
    Route("GET", "/api/knowledge/hygiene", polled.knowledge),
    Route("GET", "/api/knowledge/entities", polled.knowledge),
    Route("GET", "/api/knowledge/navigation/entities", polled.knowledge),
    Route("GET", "/api/cross-agent/presence", presence.list_presence),
    Route("POST", "/api/cross-agent/presence", presence.post_presence),
    Route("DELETE", "/api/cross-agent/presence/:sessionKey", presence.delete_presence),
    Route("GET", "/api/cross-agent/messages", presence.list_messages),
    Route("POST", "/api/cross-agent/messages", presence.post_message),
    Route("GET", "/api/auth/whoami", polled.whoami),
    Route("GET", "/api/auth/methods", polled.auth_methods),
    Route("POST", "/api/auth/login", polled.login),
    Route("POST", "/api/auth/token", polled.make_token),
    Route("GET", "/api/auth/api-keys", polled.list_keys),
    Route("POST", "/api/auth/api-keys", polled.make_key),
    Route("DELETE", "/api/auth/api-keys/:id", polled.revoke_key),
    *(Route(method, "/mcp", mcp) for method in ("GET", "POST", "DELETE", "PUT", "PATCH")),
)


@dataclass(frozen=True)
class Guard:
    """Who may call what `path` matches, whether or not it exists: `permission`, at most at the rate of `operation`.

    With `loses_answer` the refusal itself is lost, and the caller sees a crash.
    """

    path: str
    permission: str
    methods: tuple[str, ...] = ()
    operation: str | None = None
    loses_answer: bool = False


GUARDS: Final = (
    *(
        Guard(f"/api/{path}", "remember")
        for path in ("memory/remember", "memory/save", "memory/codex-native-note", "hook/remember")
    ),
    *(
        Guard(path, "recall")
        for path in (
            "/api/memory/recall",
            "/api/memory/search",
            "/memory/search",
            "/memory/similar",
            "/api/memory/timeline",
        )
    ),
    Guard("/api/memory/modify", "modify", operation="modify", loses_answer=True),
    Guard("/api/memory/forget", "forget", operation="batchForget", loses_answer=True),
    Guard("/api/memory/:id/recover", "recover"),
    Guard("/api/memory/:id", "modify", ("PATCH",), "modify"),
    Guard("/api/memory/:id", "forget", ("DELETE",), "forget"),
    Guard("/api/memory/:id", "recall", ("GET", "HEAD")),
    Guard("/api/cross-agent/*", "recall", ("GET", "HEAD")),
    Guard("/api/cross-agent/*", "remember", ("POST", "PUT", "PATCH", "DELETE")),
    *(
        Guard(f"/api/sessions/{path}", "recall")
        for path in ("summaries", "search", "blackbox", ":key/blackbox", ":key/transcript")
    ),
    Guard("/api/secrets/*", "admin"),
    Guard("/api/auth/token", "admin", operation="admin", loses_answer=True),
    Guard("/api/auth/api-keys/*", "admin", operation="admin", loses_answer=True),
)
