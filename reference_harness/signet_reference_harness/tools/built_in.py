"""The built-in tools, which are operations of the daemon: those of memories and secrets of its own MCP endpoint.

Each checks the arguments that the contract demands, then calls. A host may give more than the schemas show: several
ids, patches, filters. The schemas lack the session and its agent (`session_key`, `agent_id`): the harness adds them,
and the contract allows a session one agent only. No value of a secret comes back.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from signet_reference_harness.daemon_client import AdapterClient
from signet_reference_harness.daemon_client.reply import FailureClass, Reply, held_back, suppressed_rows
from signet_reference_harness.errors import ToolInputError
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.tools import DEFINITIONS, DaemonTool, are_strings, integer, text, typed

DEFAULT_RECALL: Final = 10
MOST_RECALLED: Final = 100
MOST_PATCHES: Final = 200
MOST_FORGOTTEN: Final = 200
MOST_UNCONFIRMED: Final = 25
"""Rows that the daemon forgets without being shown a token from a preview."""
CHANGES: Final = ("content", "type", "tags", "importance", "pinned")
FILTERS: Final = ("query", "type", "tags", "who", "source_type", "since", "until", "scope")
MEMORY_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,199}")
RESERVED_IDS: Final = frozenset(
    {"stats", "undefined", "null", "none", "nan", "search", "similar", "timeline", "review-queue", "recall", "jobs"}
)
DEFAULT_LISTED: Final = 100
MOST_LEFT_OUT: Final = 1_000_000
RECALL_FIELDS: Final[Mapping[str, type]] = {
    **dict.fromkeys(("project", "type", "tags", "who", "since", "until", "keyword_query"), str),
    **dict.fromkeys(("pinned", "aggregate", "save_aggregate", "include_recalled"), bool),
    **dict.fromkeys(("importance_min", "min_score", "score_min"), float),
    "time": dict,
}
RECALL_NAMES: Final = {
    "keyword_query": "keywordQuery",
    "save_aggregate": "saveAggregate",
    "include_recalled": "includeRecalled",
}
"""Names of fields on the wire that differ from the tool's."""
TIMES: Final = ("createdAt", "occurredAt", "observedAt", "sourceCreatedAt", "validFrom", "validUntil")
STORE_FIELDS: Final[Mapping[str, type]] = {
    **dict.fromkeys(TIMES, str),
    "transcript": str,
    "structured": dict,
    "hints": list,
}
UNSHOWN_MEMBERS: Final = frozenset({"meta", "method", "query", "stats"})
"""Members of an answer that say how it was made."""
SHOWN_OF_ROWS: Final = (
    *("id", "content", "type", "tags", "project", "created_at", "score", "pinned", "truncated"),
    *("supplementary", "already_recalled"),
)
BUDGETS: Final = ("small", "medium", "large")


async def memory_search(arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """Recall rows by `query`, `limit` of them at most; with `aggregate_budget` an aggregate of them too.

    Rows below `score_min` are left out of the reply; those without a score are not.
    """
    limit = integer(arguments, "limit", DEFAULT_RECALL, 1, MOST_RECALLED)
    budget = arguments.get("aggregate_budget")
    if budget is not None and budget not in BUDGETS:
        raise ToolInputError(f"'aggregate_budget' must be one of {', '.join(BUDGETS)}")
    told = typed(arguments, RECALL_FIELDS)
    importance = told.pop("importance_min", told.pop("min_score", None))
    extra = {
        RECALL_NAMES.get(name, name): value
        for name, value in told.items()
        if name != "score_min" and (value is not False or name == "save_aggregate")
    }
    if importance is not None:
        extra["importance_min"] = importance
    reply = await client.recall(session, text(arguments, "query"), limit, budget, extra)
    least = told.get("score_min")
    rows = reply.body.get("results")
    if least is None or not isinstance(rows, list):
        return reply
    kept = [row for row in rows if not _is_below(row, least)]
    return replace(reply, body={**reply.body, "results": kept})


def shown_rows(body: Mapping[str, Any]) -> dict[str, Any]:
    """Show rows that were recalled or listed to the model, without details of how they were found.

    The daemon leaves out rows that it has shown in this session. Their number is said, or the model would believe that
    no other exists.
    """
    kept = {name: value for name, value in body.items() if name not in UNSHOWN_MEMBERS and value is not None}
    for name in ("results", "memories"):
        if isinstance(kept.get(name), list):
            kept[name] = [_shown_row(row) for row in kept[name]]
    count = suppressed_rows(body)
    if count > 0:
        rows, them = ("1 row that fits was", "it") if count == 1 else (f"{count} rows that fit were", "them")
        kept["note"] = f"{rows} shown above; include_recalled shows {them} again"
    return kept


def _shown_row(row: object) -> object:
    if not isinstance(row, Mapping):
        return row
    return {name: row[name] for name in SHOWN_OF_ROWS if row.get(name) not in (None, False, "")}


def _is_below(row: object, least: float) -> bool:
    score = row.get("score") if isinstance(row, dict) else None
    return isinstance(score, (int, float)) and score < least


async def memory_store(arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """Save `content`, with `type`, `tags`, `importance`, `pinned` and the other fields of a memory if given."""
    _check_change(arguments)
    extra = {name: arguments[name] for name in CHANGES[1:] if arguments.get(name) is not None}
    extra |= typed(arguments, STORE_FIELDS)
    if not all(hint.strip() for hint in extra.get("hints", ())):
        raise ToolInputError("'hints' must hold no blank text")
    for name in TIMES:
        if name in extra:
            _check_time(name, extra[name])
    return await client.remember(session, text(arguments, "content"), extra)


async def memory_get(arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """Read the row `id`."""
    memory_id = text(arguments, "id")
    if not MEMORY_ID.fullmatch(memory_id) or memory_id.lower() in RESERVED_IDS:
        raise ToolInputError(f"{memory_id!r} is not a memory id")
    return await client.memory(session, memory_id)


async def memory_list(arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """The agent's rows, newest first: `limit` of them from `offset` on, of one `type` if given."""
    query = {
        "limit": integer(arguments, "limit", DEFAULT_LISTED, 1, MOST_RECALLED),
        "offset": integer(arguments, "offset", 0, 0, MOST_LEFT_OUT),
        **typed(arguments, {"type": str}),
    }
    return await client.memories(session, {name: str(value) for name, value in query.items()})


async def memory_modify(arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """Change one row (`id`, `reason` and the changes) or several (`patches` of these)."""
    patches = arguments.get("patches")
    if patches is None:
        patches = [arguments]
    if not isinstance(patches, list) or not 1 <= len(patches) <= MOST_PATCHES:
        raise ToolInputError(f"'patches' must be a list of 1 to {MOST_PATCHES} objects")
    return await client.modify(session, [_patch(patch, arguments) for patch in patches])


async def memory_forget(arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """Forget the rows `ids` (or one `id`), or those that filters select; `reason` says why.

    A selection by filters, or of more than 25 rows, is previewed first. Up to 25 rows are then forgotten
    by their ids, more under the preview's token. With `mode` "preview" nothing is.
    """
    selection = _selection(arguments)
    mode = arguments.get("mode", "execute")
    if mode not in {"preview", "execute"}:
        raise ToolInputError("'mode' must be 'preview' or 'execute'")
    if mode == "preview":
        return await client.forget(session, {"mode": "preview", **selection})
    order: dict[str, Any] = {"mode": "execute", "reason": text(arguments, "reason")}
    if arguments.get("force") is True:
        order["force"] = True
    if len(selection.get("ids", ())) in range(1, MOST_UNCONFIRMED + 1):
        return await client.forget(session, {**selection, **order})
    preview = await client.forget(session, {"mode": "preview", **selection})
    ids = _previewed(preview)
    if preview.failure is not None or not ids:
        return preview
    if len(ids) <= MOST_UNCONFIRMED:
        return await client.forget(session, {"ids": ids, "limit": len(ids), **order})
    token = preview.text("confirmToken")
    if not token:
        return replace(preview, failure=FailureClass.SHAPE, detail="the preview holds no 'confirmToken'")
    return await client.forget(session, {**selection, **order, "confirm_token": token})


def _patch(patch: object, arguments: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(patch, Mapping):
        raise ToolInputError("a patch must be an object")
    _check_change(patch)
    told = {name: patch[name] for name in CHANGES if patch.get(name) is not None}
    if not told:
        raise ToolInputError(f"a patch must change at least one of {', '.join(CHANGES)}")
    reason = patch if "reason" in patch else arguments
    made: dict[str, Any] = {"id": text(patch, "id"), "reason": text(reason, "reason"), **told}
    version = patch.get("if_version")
    if version is not None:
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise ToolInputError("'if_version' must be a positive integer")
        made["if_version"] = version
    return made


def _check_change(change: Mapping[str, Any]) -> None:
    for name in ("content", "type"):
        if change.get(name) is not None:
            text(change, name)
    tags = change.get("tags")
    if tags is not None and not isinstance(tags, str) and not are_strings(tags):
        raise ToolInputError("'tags' must be a string or a list of strings")
    importance = change.get("importance")
    is_number = isinstance(importance, (int, float)) and not isinstance(importance, bool)
    if importance is not None and not (is_number and 0 <= importance <= 1):
        raise ToolInputError("'importance' must be a number from 0 to 1")
    if change.get("pinned") is not None and not isinstance(change["pinned"], bool):
        raise ToolInputError("'pinned' must be true or false")


def _selection(arguments: Mapping[str, Any]) -> dict[str, Any]:
    ids = arguments.get("ids")
    if ids is None and arguments.get("id") is not None:
        ids = [arguments["id"]]
    if ids is not None:
        if not are_strings(ids) or not 1 <= len(ids) <= MOST_FORGOTTEN or not all(i.strip() for i in ids):
            raise ToolInputError(f"'ids' must be a list of 1 to {MOST_FORGOTTEN} memory ids")
        # A preview shows twenty rows unless the request has a limit.
        return {"ids": list(ids), "limit": len(ids)}
    selection: dict[str, Any] = {name: text(arguments, name) for name in FILTERS if arguments.get(name) is not None}
    if not selection:
        raise ToolInputError(f"name the rows by 'ids' or by one of {', '.join(FILTERS)}")
    return {**selection, "limit": integer(arguments, "limit", 20, 1, MOST_FORGOTTEN)}


def _previewed(preview: Reply) -> list[str]:
    rows = preview.body.get("candidates")
    if not isinstance(rows, list):
        return []
    return [row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]


def _check_time(name: str, value: str) -> None:
    try:
        datetime.fromisoformat(value)
    except ValueError as error:
        raise ToolInputError(f"{name!r} must be an ISO 8601 time, such as 2026-11-22T16:00:00Z") from error


TERMINAL: Final = frozenset({"completed", "failed"})
ACCEPTED: Final = 202
CLIENT_ERRORS: Final = range(400, 500)
ASKS_AGAIN: Final = frozenset({408, 425, 429})
FIRST_PAUSE_S: Final = 0.12
LONGEST_PAUSE_S: Final = 1.0
GROWTH: Final = 1.5
JOB_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
DEFAULT_JOB_MS: Final = 300_000
SHORTEST_JOB_MS: Final = 1_000
LONGEST_JOB_MS: Final = 1_800_000
JOB_GRACE_S: Final = 5.0
"""How long a job is looked at beyond its own time limit."""


async def secret_list(_arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """The names of the secrets."""
    return await client.secret_names(session)


async def secret_exec(arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """Run `command` with `secrets`, a map of environment variables to names of secrets, and wait for its end.

    It may take `timeoutSeconds`; a host may give `timeoutMs` in its place.
    """
    command = text(arguments, "command")
    secrets = arguments.get("secrets")
    if not isinstance(secrets, dict) or not secrets:
        raise ToolInputError("'secrets' must map at least one environment variable to the name of a secret")
    for variable, name in secrets.items():
        if not variable.strip() or not isinstance(name, str) or not name.strip():
            raise ToolInputError("'secrets' must map names of environment variables to names of secrets")
    if arguments.get("timeoutSeconds") is not None:
        timeout_ms = integer(arguments, "timeoutSeconds", 0, 1, LONGEST_JOB_MS // 1000) * 1000
    else:
        timeout_ms = integer(arguments, "timeoutMs", DEFAULT_JOB_MS, SHORTEST_JOB_MS, LONGEST_JOB_MS)
    started = await client.start_secret_command(session, command, secrets, timeout_ms)
    return await _follow(client, session, started, timeout_ms / 1000 + JOB_GRACE_S)


async def secret_exec_status(arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """How the job `jobId` stands."""
    job = text(arguments, "jobId")
    if not JOB_ID.fullmatch(job):
        raise ToolInputError(f"{job!r} is not the id of a job")
    return await client.secret_job(session, job)


async def _follow(client: AdapterClient, session: SessionIdentity, started: Reply, patience_s: float) -> Reply:
    """Ask for the job that `started` names until it has ended, for `patience_s` seconds. Return the last reply."""
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
        reply = await client.secret_job(session, job)
        forbidden = reply.status in CLIENT_ERRORS and reply.status not in ASKS_AGAIN
        if forbidden or reply.text("status") in TERMINAL:
            break
    return reply


BUILT_IN: Final = (
    DaemonTool(DEFINITIONS["memory_search"], memory_search, shown_rows),
    DaemonTool(DEFINITIONS["memory_store"], memory_store),
    DaemonTool(DEFINITIONS["memory_get"], memory_get),
    DaemonTool(DEFINITIONS["memory_list"], memory_list, shown_rows),
    DaemonTool(DEFINITIONS["memory_modify"], memory_modify),
    DaemonTool(DEFINITIONS["memory_forget"], memory_forget),
    DaemonTool(DEFINITIONS["secret_list"], secret_list),
    DaemonTool(DEFINITIONS["secret_exec"], secret_exec),
    DaemonTool(DEFINITIONS["secret_exec_status"], secret_exec_status),
)
"""The tools of a host that names no others."""
