"""POST memory/recall, and what it shares with the older hook."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from signet_conformance.daemon.handlers.memories.recall import Request, aggregated, budget_problem, plain, recall
from signet_conformance.daemon.handlers.memories.temporal import time_problem
from signet_conformance.daemon.state.agents import named_agent, resolve_agent
from signet_conformance.daemon.values import (
    ScriptError,
    UnreadableJsonError,
    fields_of,
    trimmed,
)
from signet_conformance.daemon.wire import Answer, Call, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from signet_conformance.daemon.state.daemon import Daemon


def recall_problem(fields: Mapping[str, Any]) -> str | None:
    """What is wrong with the budget or the time of a recall, else None."""
    return budget_problem(fields) or (time_problem(fields["time"]) if "time" in fields else None)


def saving_problem(daemon: Daemon, call: Call, fields: Mapping[str, Any], agent: str) -> Answer | None:
    """The refusal of an aggregate recall that would be saved by somebody who may not save."""
    saves = (
        fields.get("aggregate") is True
        and fields.get("saveAggregate") is not False
        and fields.get("save_aggregate") is not False
    )
    if not saves:
        return None
    denied = daemon.auth.permission_problem(call, "remember")
    if denied:
        return denied
    problem = daemon.auth.write_problem(call.claims, agent, fields.get("project"))
    return refusal(403, problem) if problem else None


def recalled(daemon: Daemon, request: Request) -> dict[str, Any]:
    """The answer to a recall, aggregated where it asks for that."""
    if daemon.behaviour.recall_is_plain:
        return plain(daemon, request)
    return aggregated(daemon, request) if request.fields.get("aggregate") is True else recall(daemon, request)


def read_query(call: Call) -> tuple[str, Mapping[str, Any]] | Answer:
    """The query and the fields of a recall, or the refusal of a body without a query."""
    try:
        fields = fields_of(call.json())
    except UnreadableJsonError:
        return refusal(400, "Invalid JSON body")
    query = trimmed(fields.get("query"))
    return (query, fields) if query else refusal(400, "query is required")


def memory_recall(daemon: Daemon, call: Call) -> Answer:
    """POST memory/recall: the memories that a query finds for an agent."""
    asked = read_query(call)
    if isinstance(asked, Answer):
        return asked
    query, fields = asked
    if daemon.behaviour.recall_is_plain:
        return _plainly(daemon, call, query, fields)
    problem = recall_problem(fields)
    if problem:
        return refusal(400, problem)
    given = fields.get("sessionKey")
    key = call.header("x-signet-session-key") if given is None else given
    named = fields.get("agentId")
    try:
        agent = resolve_agent(named, key)
        denied = saving_problem(daemon, call, fields, agent)
        if denied:
            return denied
        owned = call.claims.scope.get("project") if call.claims else None
        request = Request(query, agent, {**fields, **({"project": owned} if owned else {})}, key)
        trimmed(request.fields.get("project"))
        return Answer(recalled(daemon, request))
    except (ScriptError, sqlite3.Error):
        return refusal(500, "Recall failed", results=[])


def _plainly(daemon: Daemon, call: Call, query: str, fields: Mapping[str, Any]) -> Answer:
    """The recall of releases that take any agent and read the session key from its header only."""
    named = fields.get("agentId")
    agent = named_agent(named, call.header("x-signet-session-key"), any_value=True)
    owned = call.claims.scope.get("project") if call.claims else None
    try:
        return Answer(plain(daemon, Request(query, agent, {**fields, **({"project": owned} if owned else {})})))
    except (ScriptError, sqlite3.Error):
        return refusal(500, "Recall failed", results=[])
