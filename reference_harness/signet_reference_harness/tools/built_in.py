"""The built-in tools: operations of the daemon on memories and secrets, as its own MCP endpoint offers them.

`arguments.json` has all arguments that the contract allows. A host may pass some that the definitions do not show to a
model: several ids, patches, filters. The harness adds the session and its agent (`session_key`, `agent_id`) itself. No
result contains the value of a secret.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from signet_reference_harness.daemon_client import AdapterClient
from signet_reference_harness.daemon_client.reply import FailureClass, Reply, held_back, suppressed_rows
from signet_reference_harness.daemon_client.restraint import refuses
from signet_reference_harness.errors import ToolInputError
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.messages import objects
from signet_reference_harness.tools import DEFINITIONS, DaemonTool

DEFAULT_RECALL: Final = 10
MOST_UNCONFIRMED: Final = 25
"""How many rows the daemon forgets without the token of a preview."""
CHANGES: Final = ("content", "type", "tags", "importance", "pinned")
FILTERS: Final = ("query", "type", "tags", "who", "source_type", "since", "until", "scope")
DEFAULT_LISTED: Final = 100
RECALL_FIELDS: Final = (
    *("project", "type", "tags", "who", "since", "until", "keyword_query", "pinned", "aggregate", "save_aggregate"),
    *("include_recalled", "time"),
)
TIMES: Final = ("createdAt", "occurredAt", "observedAt", "sourceCreatedAt", "validFrom", "validUntil")
STORE_FIELDS: Final = ("type", "tags", "importance", "pinned", *TIMES, "transcript", "structured", "hints")
UNSHOWN_MEMBERS: Final = frozenset({"meta", "method", "query", "stats"})
"""Members of an answer about how the daemon made it."""
SHOWN_OF_ROWS: Final = (
    *("id", "content", "type", "tags", "project", "created_at", "score", "pinned", "truncated"),
    *("supplementary", "already_recalled"),
)


def _camel(name: str) -> str:
    """The daemon's name of a tool's argument: `saveAggregate` for `save_aggregate`."""
    first, *others = name.split("_")
    return "".join([first, *map(str.capitalize, others)])


async def memory_search(arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """Recall at most `limit` rows by `query`; with `aggregate_budget` also an aggregate of them.

    The reply leaves out rows with a score below `score_min`, but not those without a score.
    """
    extra = {
        _camel(name): arguments[name]
        for name in RECALL_FIELDS
        if name in arguments and (arguments[name] is not False or name == "save_aggregate")
    }
    importance = arguments.get("importance_min", arguments.get("min_score"))
    if importance is not None:
        extra["importance_min"] = importance
    if "aggregate_budget" in arguments:
        extra |= {"aggregate": True, "aggregateBudget": arguments["aggregate_budget"]}
    limit = int(arguments.get("limit", DEFAULT_RECALL))
    reply = await client.recall(session, arguments["query"], limit, extra)
    least, rows = arguments.get("score_min"), reply.body.get("results")
    if least is None or not isinstance(rows, list):
        return reply
    return replace(reply, body={**reply.body, "results": [row for row in rows if not _is_below(row, least)]})


def shown_rows(body: Mapping[str, Any]) -> dict[str, Any]:
    """The recalled or listed rows for the model, without details of how they were found.

    The daemon leaves out rows that it has shown in this session before. A note says how many, so that the model knows
    that they exist.
    """
    shown = {name: value for name, value in body.items() if name not in UNSHOWN_MEMBERS and value is not None}
    for name in ("results", "memories"):
        if isinstance(shown.get(name), list):
            shown[name] = [_shown_row(row) for row in shown[name]]
    count = suppressed_rows(body)
    if count > 0:
        rows, them = ("1 row that fits was", "it") if count == 1 else (f"{count} rows that fit were", "them")
        shown["note"] = f"{rows} shown above; include_recalled shows {them} again"
    return shown


def _shown_row(row: object) -> object:
    if not isinstance(row, Mapping):
        return row
    return {name: row[name] for name in SHOWN_OF_ROWS if row.get(name) not in (None, False, "")}


def _is_below(row: object, least: float) -> bool:
    score = row.get("score") if isinstance(row, dict) else None
    return isinstance(score, (int, float)) and score < least


async def memory_store(arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """Save `content`, with `type`, `tags`, `importance`, `pinned` and the other fields of a memory if given."""
    extra = {name: arguments[name] for name in STORE_FIELDS if name in arguments}
    for name in TIMES:
        if name in extra:
            _check_time(name, extra[name])
    return await client.remember(session, arguments["content"], extra)


async def memory_get(arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """Read the row `id`."""
    return await client.operate(session, "memory-get", item=arguments["id"])


async def memory_list(arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """List the agent's rows, newest first: at most `limit` from `offset` on, of one `type` if given."""
    query = {
        "limit": str(int(arguments.get("limit", DEFAULT_LISTED))),
        "offset": str(int(arguments.get("offset", 0))),
        **({"type": arguments["type"]} if "type" in arguments else {}),
    }
    return await client.operate(session, "memories-list", query)


async def memory_modify(arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """Change one row (`id`, `reason` and the changes) or several (`patches`, each with these members)."""
    reason = arguments.get("reason")
    patches = [_patch({"reason": reason, **patch}) for patch in arguments.get("patches", [arguments])]
    return await client.operate(session, "memory-modify", {"patches": patches})


async def memory_forget(arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """Forget the rows `ids` (or one `id`), or those that filters select; `reason` says why.

    A selection by filters, or of more than 25 rows, is previewed first. Up to 25 rows are then forgotten by their ids,
    more with the preview's token. With `mode` "preview" no row is forgotten.
    """
    selection = _selection(arguments)
    if arguments.get("mode") == "preview":
        return await client.operate(session, "memory-forget", {"mode": "preview", **selection})
    if "reason" not in arguments:
        raise ToolInputError("say in 'reason' why")
    order: dict[str, Any] = {"mode": "execute", "reason": arguments["reason"]}
    if arguments.get("force") is True:
        order["force"] = True
    if len(selection.get("ids", ())) in range(1, MOST_UNCONFIRMED + 1):
        return await client.operate(session, "memory-forget", {**selection, **order})
    preview = await client.operate(session, "memory-forget", {"mode": "preview", **selection})
    ids = _ids_in(preview)
    if preview.failure is not None or not ids:
        return preview
    if len(ids) <= MOST_UNCONFIRMED:
        return await client.operate(session, "memory-forget", {"ids": ids, "limit": len(ids), **order})
    token = preview.text("confirmToken")
    if not token:
        return replace(preview, failure=FailureClass.SHAPE, detail="the preview holds no 'confirmToken'")
    return await client.operate(session, "memory-forget", {**selection, **order, "confirm_token": token})


def _patch(patch: Mapping[str, Any]) -> dict[str, Any]:
    members = {name: patch[name] for name in ("id", "reason", *CHANGES, "if_version") if patch.get(name) is not None}
    for name in ("id", "reason"):
        if name not in members:
            raise ToolInputError(f"a patch lacks {name!r}")
    if not members.keys() & set(CHANGES):
        raise ToolInputError(f"a patch must change at least one of {', '.join(CHANGES)}")
    return members


def _selection(arguments: Mapping[str, Any]) -> dict[str, Any]:
    ids = arguments.get("ids", [arguments["id"]] if "id" in arguments else [])
    if ids:
        # A preview shows twenty rows unless the request has a limit.
        return {"ids": ids, "limit": len(ids)}
    selection = {name: arguments[name] for name in FILTERS if name in arguments}
    if not selection:
        raise ToolInputError(f"name the rows by 'ids' or by one of {', '.join(FILTERS)}")
    return {**selection, "limit": int(arguments.get("limit", 20))}


def _ids_in(preview: Reply) -> list[str]:
    return [row["id"] for row in objects(preview.body.get("candidates")) if isinstance(row.get("id"), str)]


def _check_time(name: str, value: str) -> None:
    try:
        datetime.fromisoformat(value)
    except ValueError as error:
        raise ToolInputError(f"{name!r} must be an ISO 8601 time, such as 2026-11-22T16:00:00Z") from error


TERMINAL: Final = frozenset({"completed", "failed"})
ACCEPTED: Final = 202
FIRST_PAUSE_S: Final = 0.12
LONGEST_PAUSE_S: Final = 1.0
GROWTH: Final = 1.5
JOB_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
DEFAULT_JOB_MS: Final = 300_000
JOB_GRACE_S: Final = 5.0
"""How long a job is polled beyond its own time limit."""


async def secret_list(_arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """List the names of the secrets."""
    return await client.operate(session, "secrets-list")


async def secret_exec(arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """Run `command` with `secrets`, a map of environment variables to names of secrets, and wait for its end.

    It may take `timeoutSeconds`; a host may give `timeoutMs` in its place.
    """
    seconds = arguments.get("timeoutSeconds")
    timeout_ms = int(arguments.get("timeoutMs", DEFAULT_JOB_MS) if seconds is None else seconds * 1_000)
    order = {"command": arguments["command"], "secrets": arguments["secrets"], "timeoutMs": timeout_ms}
    started = await client.operate(session, "secrets-exec", order)
    return await _follow(client, session, started, timeout_ms / 1000 + JOB_GRACE_S)


async def secret_exec_status(arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """Ask for the status of the job `jobId`."""
    return await client.operate(session, "secrets-exec-job", item=arguments["jobId"])


async def _follow(client: AdapterClient, session: SessionIdentity, started: Reply, patience_s: float) -> Reply:
    """Poll the job that `started` names until it has ended, at most `patience_s` seconds. Return the last reply."""
    if started.status != ACCEPTED or started.failure is not None or started.text("status") in TERMINAL:
        return started
    job = started.text("id")
    if not JOB_ID.fullmatch(job):
        return held_back("secrets-exec-job", "the job's id cannot be part of a path")
    reply = started
    pause = FIRST_PAUSE_S
    loop = asyncio.get_running_loop()
    until = loop.time() + patience_s
    while loop.time() < until:
        await asyncio.sleep(pause)
        pause = min(pause * GROWTH, LONGEST_PAUSE_S)
        reply = await client.operate(session, "secrets-exec-job", item=job)
        if refuses(reply.status) or reply.text("status") in TERMINAL:
            break
    return reply


_ARGUMENTS: Final = json.loads(Path(__file__).with_name("arguments.json").read_bytes())["$defs"]


def _tool(
    operate: Callable[[Mapping[str, Any], SessionIdentity, AdapterClient], Awaitable[Reply]],
    shown: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
) -> DaemonTool:
    """The tool that has the name of its operation."""
    name = operate.__name__
    schema = {"type": "object", "$ref": f"#/$defs/{name}", "$defs": _ARGUMENTS}
    return DaemonTool(DEFINITIONS[name], schema, operate, shown)


BUILT_IN: Final = (
    _tool(memory_search, shown_rows),
    *map(_tool, (memory_store, memory_get)),
    _tool(memory_list, shown_rows),
    *map(_tool, (memory_modify, memory_forget, secret_list, secret_exec, secret_exec_status)),
)
"""The default tools of a host."""
