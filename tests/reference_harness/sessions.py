"""Short ways to sessions and turns, for tests."""

from __future__ import annotations

import json
from typing import Any

from signet_conformance.contracts import StreamingProvider as Stream
from signet_reference_harness.providers import CompletionResult
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.session import Session
from signet_reference_harness.session.host import SessionHost
from signet_reference_harness.session.turn import TurnResult

__all__ = ["AGENT", "IDENTITY", "PATIENT", "PROJECT", "Stream", "say", "session_of", "turns"]

PROJECT = "/workspace/acme"
AGENT = "atlas-agent"
PATIENT = dict.fromkeys(
    ("SIGNET_HEALTH_TIMEOUT", "SIGNET_SESSION_START_TIMEOUT", "SIGNET_PROMPT_SUBMIT_TIMEOUT"), "60000"
)
"""An environment whose deadlines a busy machine keeps."""
IDENTITY = {"harness": "reference", "sessionKey": "key-s1", "agentId": AGENT, "runtimePath": "plugin"}
"""What every hook of the session that :func:`session_of` makes says of it."""


def session_of(host: SessionHost, name: str = "s1", *, key: str | None = None, agent: str = AGENT) -> Session:
    """A session that has not been started; its key is `key-<name>` unless given."""
    return host.session_for(name, project=PROJECT, agent=agent, key=key or f"key-{name}")


async def say(session: Session, text: str, reply: str = "Fine.") -> TurnResult:
    """One turn with a scripted reply."""
    return await session.turn(text, ScriptedProvider([CompletionResult(content=reply)]))


def turns(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Role and content of each line of an end's transcript."""
    return [(line["role"], line["content"]) for line in map(json.loads, body["transcript"].split("\n"))]
