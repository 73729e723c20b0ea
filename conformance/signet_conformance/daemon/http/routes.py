"""The routes in the daemon's order: method, path, handler, the error text of a crash, and the permission needed."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from signet_conformance.daemon.handlers import agents, canned, credentials, mcp, secrets, sessions
from signet_conformance.daemon.handlers.early import hooks as early_hooks, memories as early_memories
from signet_conformance.daemon.handlers.hooks import compaction, memories as hook_memories, prompting, session
from signet_conformance.daemon.handlers.memories import changing, reading, saving
from signet_conformance.daemon.state import Daemon
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest

Handler: TypeAlias = "Callable[[Daemon, DaemonRequest], DaemonAnswer | Awaitable[DaemonAnswer]]"

_HOOK_FAILED: Final = "Hook execution failed"


@dataclass(frozen=True)
class RequiredPermission:
    """The permission that a caller needs, and the name of the `rate` limit on its calls.

    With `loses_answer` the caller gets a 500 in place of the refusal, as from the real daemon.
    """

    permission: str
    rate: str | None = None
    loses_answer: bool = False


@dataclass(frozen=True)
class Endpoint:
    """One route. `failure` is the error in the JSON answer to a crash; without it, that answer is plain text.

    `right` applies to every method on the path, since the real daemon checks it before it looks for a route. `only`
    names the trait of `Behaviour` of the versions that have the route (None: all).
    """

    method: str
    path: str
    handler: Handler
    failure: str | None = None
    only: str | None = None
    right: RequiredPermission | None = None


@dataclass(frozen=True)
class GuardedArea:
    """Paths that need a permission for these `methods` (empty: all), whether or not a route exists."""

    path: str
    right: RequiredPermission
    methods: tuple[str, ...] = ()
    only: str | None = None


def _pattern_of(path: str) -> re.Pattern[str]:
    """The expression for a path: ``:name`` matches one segment, ``*`` at the end anything."""
    text = re.sub(r":(\w+)", r"(?P<\1>[^/]+)", path.replace(".", r"\."))
    return re.compile(text.removesuffix("/*") + "(?:/.*)?" if text.endswith("/*") else text)


def _canned(method: str, path: str, *, only: str | None = None, scoped: bool = False, **answer: Any) -> Endpoint:
    """The route of a row of `canned.json`; `only` names the trait of the versions that have it."""
    return Endpoint(method, path, canned.CannedHandler(DaemonAnswer(**answer), scoped), only=only)


_SAVES: Final = RequiredPermission("remember")
_READS: Final = RequiredPermission("recall")
_MODIFIES: Final = RequiredPermission("modify", rate="modify", loses_answer=True)
_FORGETS: Final = RequiredPermission("forget", rate="batchForget", loses_answer=True)
_RULES: Final = RequiredPermission("admin", rate="admin", loses_answer=True)

#: Every route; the first that matches answers. memory/:id hides a GET memory/search, as in the real daemon.
ROUTES: Final = (
    Endpoint("POST", "/api/hooks/session-start", early_hooks.session_start, _HOOK_FAILED, "early"),
    Endpoint("POST", "/api/hooks/user-prompt-submit", early_hooks.prompt_submit, _HOOK_FAILED, "early"),
    Endpoint("POST", "/api/hooks/session-end", early_hooks.session_end, _HOOK_FAILED, "early"),
    Endpoint("POST", "/api/hooks/pre-compaction", early_hooks.pre_compaction, _HOOK_FAILED, "early"),
    Endpoint(
        "POST", "/api/hooks/compaction-complete", early_hooks.compaction_complete, "Failed to save summary", "early"
    ),
    Endpoint("POST", "/api/hooks/remember", early_memories.hook_remember, _HOOK_FAILED, "early"),
    Endpoint("POST", "/api/hooks/recall", early_memories.hook_recall, _HOOK_FAILED, "early"),
    Endpoint("POST", "/api/memory/remember", early_memories.remember, only="early", right=_SAVES),
    Endpoint("POST", "/api/memory/save", early_memories.remember_alias, only="early", right=_SAVES),
    Endpoint("POST", "/api/hook/remember", early_memories.remember_alias, only="early", right=_SAVES),
    Endpoint("POST", "/api/memory/recall", early_memories.memory_recall, only="early", right=_READS),
    Endpoint("POST", "/api/hooks/session-start", session.session_start, _HOOK_FAILED),
    Endpoint("POST", "/api/hooks/user-prompt-submit", prompting.prompt_submit, _HOOK_FAILED),
    Endpoint("POST", "/api/hooks/session-end", session.session_end, _HOOK_FAILED),
    Endpoint("POST", "/api/hooks/pre-compaction", compaction.pre_compaction, _HOOK_FAILED),
    Endpoint("POST", "/api/hooks/compaction-complete", compaction.compaction_complete, "Failed to save summary"),
    Endpoint("POST", "/api/hooks/session-checkpoint-extract", compaction.checkpoint, _HOOK_FAILED, "grown"),
    Endpoint("POST", "/api/hooks/skill-invocation", canned.skill_invocation, _HOOK_FAILED, "later_hooks"),
    Endpoint("POST", "/api/hooks/notifications", canned.notifications, _HOOK_FAILED, "notifications"),
    Endpoint("GET", "/api/hooks/transcript-capture/:jobId", session.capture_status, _HOOK_FAILED, "notifications"),
    Endpoint("POST", "/api/hooks/remember", hook_memories.hook_remember, _HOOK_FAILED),
    Endpoint("POST", "/api/hooks/recall", hook_memories.hook_recall, _HOOK_FAILED),
    Endpoint("POST", "/api/hooks/synthesis/complete", canned.complete_synthesis, "Failed to save MEMORY.md"),
    Endpoint("GET", "/api/memories", reading.list_memories),
    Endpoint("GET", "/memory/search", reading.search_rows, right=_READS),
    Endpoint("POST", "/api/memory/codex-native-note", reading.codex_note, only="later_hooks", right=_SAVES),
    Endpoint("POST", "/api/memory/remember", saving.remember, right=_SAVES),
    Endpoint("POST", "/api/memory/save", hook_memories.remember_alias, right=_SAVES),
    Endpoint("POST", "/api/hook/remember", hook_memories.remember_alias, right=_SAVES),
    Endpoint("GET", "/api/memory/:id", reading.get_memory),
    Endpoint("GET", "/api/memory/:id/history", changing.history),
    Endpoint("POST", "/api/memory/:id/recover", changing.recover_memory, right=RequiredPermission("recover")),
    Endpoint("PATCH", "/api/memory/:id", changing.patch_memory),
    Endpoint("DELETE", "/api/memory/:id", changing.delete_memory),
    Endpoint("POST", "/api/memory/feedback", reading.feedback),
    Endpoint("POST", "/api/memory/forget", changing.forget_memories, right=_FORGETS),
    Endpoint("POST", "/api/memory/modify", changing.modify_memories, right=_MODIFIES),
    Endpoint("POST", "/api/memory/recall", reading.memory_recall, right=_READS),
    Endpoint("GET", "/api/sessions", sessions.list_sessions),
    Endpoint("POST", "/api/sessions/search", sessions.search_sessions, only="later_hooks", right=_READS),
    Endpoint("GET", "/api/sessions/summaries", sessions.list_summaries, only="grown", right=_READS),
    Endpoint("POST", "/api/sessions/summaries/expand", sessions.expand_summary, only="grown"),
    Endpoint("GET", "/api/sessions/:key", sessions.get_session),
    Endpoint("GET", "/api/sessions/:key/transcript", sessions.get_transcript, only="later_hooks", right=_READS),
    Endpoint("POST", "/api/sessions/:key/bypass", sessions.bypass_session),
    Endpoint("POST", "/api/sessions/:key/renew", sessions.renew_session, only="grown"),
    Endpoint("GET", "/api/secrets", secrets.list_secrets),
    Endpoint("POST", "/api/secrets/exec", secrets.exec_secrets),
    Endpoint("GET", "/api/secrets/exec/:jobId", secrets.exec_status, only="exec_is_job"),
    Endpoint("POST", "/api/secrets/:name/exec", secrets.exec_secrets),
    Endpoint("POST", "/api/secrets/:name", secrets.put_secret),
    Endpoint("DELETE", "/api/secrets/:name", secrets.delete_secret),
    Endpoint("GET", "/health", canned.health),
    Endpoint("GET", "/api/status", canned.status),
    Endpoint("GET", "/api/agents", agents.list_agents, only="grown"),
    Endpoint("GET", "/api/agents/:name", agents.get_agent, only="grown"),
    Endpoint("GET", "/api/marketplace/mcp/search", canned.search_marketplace),
    Endpoint("POST", "/api/marketplace/mcp/call", canned.call_marketplace),
    Endpoint("POST", "/api/diagnostics/openclaw/heartbeat", canned.heartbeat, only="grown"),
    Endpoint("GET", "/api/knowledge/hygiene", canned.hygiene, only="grown"),
    Endpoint("POST", "/api/cross-agent/presence", agents.post_presence),
    Endpoint("DELETE", "/api/cross-agent/presence/:sessionKey", agents.delete_presence),
    Endpoint("POST", "/api/cross-agent/messages", agents.post_message),
    Endpoint("GET", "/api/auth/whoami", credentials.whoami),
    Endpoint("GET", "/api/auth/methods", credentials.auth_methods, only="api_keys"),
    Endpoint("POST", "/api/auth/login", credentials.login, only="api_keys"),
    Endpoint("POST", "/api/auth/token", credentials.make_token, right=_RULES),
    Endpoint("GET", "/api/auth/api-keys", credentials.list_keys, only="api_keys"),
    Endpoint("POST", "/api/auth/api-keys", credentials.make_key, only="api_keys"),
    Endpoint("DELETE", "/api/auth/api-keys/:id", credentials.revoke_key, only="api_keys"),
    *(Endpoint(method, "/mcp", mcp.mcp) for method in ("GET", "POST", "DELETE", "PUT", "PATCH")),
    *(_canned(**row) for row in canned.CANNED),
)

_WRITES: Final = ("POST", "PUT", "PATCH", "DELETE")
_LOOKS: Final = ("GET", "HEAD")

#: The rights that hold for more than one route, asked after those of the routes.
AREAS: Final = (
    *(GuardedArea(path, _READS) for path in ("/api/memory/search", "/memory/similar", "/api/memory/timeline")),
    GuardedArea("/api/memory/:id", RequiredPermission("modify", rate="modify"), ("PATCH",)),
    GuardedArea("/api/memory/:id", RequiredPermission("forget", rate="forget"), ("DELETE",)),
    GuardedArea("/api/memory/:id", _READS, _LOOKS),
    GuardedArea("/api/cross-agent/*", _READS, _LOOKS),
    GuardedArea("/api/cross-agent/*", _SAVES, _WRITES),
    *(GuardedArea(f"/api/sessions/{path}", _READS) for path in ("blackbox", ":key/blackbox")),
    GuardedArea("/api/secrets/*", RequiredPermission("admin"), only="grown"),
    GuardedArea("/api/auth/api-keys/*", _RULES),
)

#: The expression of each path. Compiled with this module, which the fork server imports once for all its daemons.
PATTERNS: Final = {path: _pattern_of(path) for path in {each.path for each in ROUTES} | {each.path for each in AREAS}}
