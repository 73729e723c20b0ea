"""Marks and calls of a small recording: steps of the user, hooks of a key, what is switched on and off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from signet_conformance.facts import Recording
from signet_conformance.trace.marks import StepMark
from tests.support.case_traces import KEYED

Item = Mapping[str, Any]
FAR = 10**9


def mark(name: str, **data: Any) -> Item:
    """A mark of the kit."""
    return {"mark": name, "data": data}


def step(kind: str | None, session: str | None = "s1", **more: Any) -> Item:
    """A step that was given to the connector."""
    return mark("step", step=kind, session=session, **more)


def hook(operation: str, key: str = "k1", said: str = "one", **more: Any) -> Item:
    """A hook of a key."""
    body = {**KEYED, "sessionKey": key, "userMessage": said}
    return {"request": {"method": "POST", "path": f"/api/hooks/{operation}", "body": body}, **more}


def start(key: str = "k1") -> Item:
    """A session-start."""
    return hook("session-start", key)


def prompt(key: str = "k1") -> Item:
    """A user-prompt-submit."""
    return hook("user-prompt-submit", key)


def end(key: str = "k1") -> Item:
    """A session-end."""
    return hook("session-end", key)


def recall(key: str) -> Item:
    """A recall of a key."""
    return {"request": {"method": "POST", "path": "/api/memory/recall", "body": {"sessionKey": key, "query": "x"}}}


def save(key: str) -> Item:
    """A memory that is stored with a key."""
    return {"request": {"method": "POST", "path": "/api/memory/remember", "body": {"sessionKey": key, "content": "x"}}}


PRE = hook("pre-compaction")
CHECKPOINT = hook("session-checkpoint-extract")
PROBE = {"request": {"method": "GET", "path": "/health"}}
POLICY = {"request": {"method": "GET", "path": "/api/marketplace/mcp/policy"}}
UNHEARD = {**prompt(), "response": None}
LOADED = mark("loaded", ok=True)
CLOSED, OPENED = mark("fault", kind="refuse", on=True), mark("fault", kind="refuse", on=False)
RESET_ON, RESET_OFF = mark("fault", kind="reset", on=True), mark("fault", kind="reset", on=False)
SLOW, QUICK = mark("fault", kind="delay", on=True), mark("fault", kind="delay", on=False)
STOPPED = mark("handler", event="Hook", outcome="timed_out")


def steps_of(recording: Recording) -> Sequence[StepMark]:
    """Its step marks."""
    return recording.marks(StepMark)
