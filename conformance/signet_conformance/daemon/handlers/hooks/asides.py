"""The hooks beside a session's life: skills, notifications, synthesis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from signet_conformance.daemon.handlers.hooks.claims import (
    held_by_other,
    is_internal,
    runtime_path,
)
from signet_conformance.daemon.state.agents import plain_agent, resolve_agent
from signet_conformance.daemon.values import fields_of, text_or_none, truthy
from signet_conformance.daemon.wire import Answer, Call, refusal

if TYPE_CHECKING:
    from signet_conformance.daemon.state.daemon import Daemon

_SYNTHESIS: Final = {
    "enabled": True, "provider": "none", "model": "none", "timeout": 120_000, "maxTokens": 8000, "idleGapMinutes": 15,
}  # fmt: skip


def skill_invocation(daemon: Daemon, call: Call) -> Answer:
    """POST hooks/skill-invocation: noted."""
    if is_internal(call):
        return Answer({"recorded": False})
    body = call.json()
    fields = body if isinstance(body, dict) else {}
    if not text_or_none(fields.get("harness")):
        return refusal(400, "harness is required")
    skill = fields.get("skillName")
    if not text_or_none(fields.get("skill") if skill is None else skill):
        return refusal(400, "skillName is required")
    if daemon.behaviour.skill_conflict_is_409:
        refused = held_by_other(
            daemon, text_or_none(fields.get("sessionKey")), runtime_path(call, fields), plain_agent(fields)
        )
        if refused:
            return refused
    return Answer({"recorded": True})


def notifications(_daemon: Daemon, call: Call) -> Answer:
    """POST hooks/notifications: there are none."""
    if is_internal(call):
        return Answer({"inject": ""})
    fields = fields_of(call.json())
    if not truthy(fields.get("harness")) or not truthy(fields.get("hook")):
        return refusal(400, "harness and hook are required")
    resolve_agent(fields.get("agentId"), fields.get("sessionKey"))
    return Answer({"inject": "", "notifications": []})


def synthesis_config(_daemon: Daemon, _call: Call) -> Answer:
    """GET hooks/synthesis/config."""
    return Answer(_SYNTHESIS)


def synthesis_complete(_daemon: Daemon, call: Call) -> Answer:
    """POST hooks/synthesis/complete: always refused, as no synthesis worker runs here."""
    if not truthy(fields_of(call.json()).get("content")):
        return refusal(400, "content is required")
    return refusal(503, "Synthesis worker not running")
