"""Calls of two agents' sessions, for facts about what steps tell of a call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.rules.step_items import Item, mark, step

ATLAS, BEACON = "atlas-agent", "beacon-agent"


def call(operation: str, key: str, agent: str, status: int = 200, **body: Any) -> Item:
    """A hook of a key as an agent, with its answer."""
    sent: Mapping[str, Any] = {
        "harness": "openclaw",
        "sessionKey": key,
        "agentId": agent,
        "project": "/srv/atlas",
        **body,
    }
    answer = {"status": status, "body": {"memoriesSaved": 0} if status == 200 else {"error": "no"}}
    return {"request": {"method": "POST", "path": f"/api/hooks/{operation}", "body": sent}, "response": answer}


def start(key: str, agent: str = ATLAS, status: int = 200, **body: Any) -> Item:
    """A session-start."""
    return call("session-start", key, agent, status, **body)


def prompt(key: str, text: str, agent: str = ATLAS) -> Item:
    """A user-prompt-submit."""
    return call("user-prompt-submit", key, agent, userMessage=text)


def tool(session: str, name: str) -> Item:
    """A step in which the model calls a memory tool."""
    return step("tool", session, tool=name)


def save(key: str | None, agent: str) -> Item:
    """A memory that is stored, with a key or without."""
    body = {"content": "Exports run at night.", "agentId": agent, **({} if key is None else {"sessionKey": key})}
    return {"request": {"method": "POST", "path": "/api/memory/remember", "body": body}}


def recall(key: str, agent: str) -> Item:
    """A recall of a key."""
    body = {"query": "exports", "agentId": agent, "sessionKey": key}
    return {"request": {"method": "POST", "path": "/api/memory/recall", "body": body}}


def get(status: int) -> Item:
    """A look-up of one memory."""
    answer = {"status": status, "body": {"error": "no"} if status == 404 else {"id": "m"}}
    return {"request": {"method": "GET", "path": "/api/memory/m-1", "query": {"agentId": ATLAS}}, "response": answer}


def said(session: str, text: str, reply: str = "Understood.") -> Item:
    """A user turn that took place."""
    return step("prompt", session, text=text, reply=reply, index=9)


INJECT = "# Memory\n\nExports run at night, and invoices are numbered per year.\n\nThe platform rota is paged."
IN_ONE_LINE = " ".join(INJECT.split())


def told_at_the_end(text: str, role: str = "user") -> Item:
    """A session-end with this turn in its transcript, as a line of JSON."""
    return call("session-end", "k1", ATLAS, transcript=json.dumps({"role": role, "content": text}))


def refused(item: Item, kind: str | None = "status") -> Item:
    """A request that was answered 400, by a fault or by the daemon itself."""
    answer = {"response": {"status": 400, "body": {"error": "no"}}}
    return {**item, **answer, **({} if kind is None else {"fault": {"kind": kind}})}


def answered(item: Item, **body: Any) -> Item:
    """A request that was answered with these members, as the daemon does."""
    return {**item, "response": {"status": 200, "body": body}}


def injecting(text: str) -> Item:
    """A session-start whose answer injects a text."""
    return answered(start("k1"), identity={"name": "Agent"}, memories=[], inject=text)


INJECTING = injecting(INJECT)
REFUSED = {**start("k1", status=401), "fault": {"kind": "status"}}
MODEL = {"mark": "model", "data": {"session": "s1"}}
TWO = [step("start", "s1", agent=ATLAS), start("k1"), step("start", "s2", agent=BEACON), start("k2", BEACON)]
NATIVE = [mark("session_key", session="s1", key="k1"), mark("session_key", session="s2", key="k2")]
NO_RECALL, NO_SEARCH = (refused(each, None) for each in (recall("k1", ATLAS), call("recall", "k1", ATLAS, query="x")))
