"""The built-in tools on memory, as the daemon's own MCP endpoint lists them.

Each checks the arguments that the contract demands, then calls. A host may give more than the schemas show: several
ids, patches, filters. The schemas lack the session and its agent (`session_key`, `agent_id`): the harness adds them,
and the contract allows a session one agent only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from signet_reference_harness.daemon_client import AdapterClient
from signet_reference_harness.daemon_client.reply import FailureClass, Reply
from signet_reference_harness.errors import ToolInputError
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.messages import ToolDefinition
from signet_reference_harness.tools import (
    BOOLEAN,
    NUMBER,
    STRING,
    STRINGS,
    DaemonTool,
    are_strings,
    describe,
    integer,
    object_schema,
    text,
    typed,
)

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

    The daemon leaves out rows that it has shown in this session. Their number is said, or the model would take it that
    there are none.
    """
    kept = {name: value for name, value in body.items() if name not in UNSHOWN_MEMBERS and value is not None}
    for name in ("results", "memories"):
        if isinstance(kept.get(name), list):
            kept[name] = [_shown_row(row) for row in kept[name]]
    meta = body.get("meta")
    dedupe = meta.get("dedupe") if isinstance(meta, Mapping) else None
    count = dedupe.get("suppressed") if isinstance(dedupe, Mapping) else None
    if isinstance(count, int) and count > 0:
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


FACETS: Final = ("captured", "session", "source", "observed", "occurred", "valid")
_RELATION: Final = object_schema(
    {**dict.fromkeys(("source", "sourceType", "relationship", "target", "targetType"), STRING), "confidence": NUMBER},
    "source",
    "relationship",
    "target",
)
_ATTRIBUTE: Final = object_schema(
    {
        "groupKey": describe("Where in the aspect it belongs"),
        "claimKey": describe("A key that all versions of one claim share, so that a newer one replaces the older"),
        "content": STRING,
        "confidence": NUMBER,
        "importance": NUMBER,
    },
    "content",
)
_ASPECTS: Final = {
    "anyOf": [
        object_schema(
            {
                **dict.fromkeys(("entityName", "entityType", "aspect"), STRING),
                "attributes": {"type": "array", "items": _ATTRIBUTE},
            },
            "entityName",
            "aspect",
            "attributes",
        ),
        object_schema(
            {
                **dict.fromkeys(("entity", "aspect", "value", "groupKey", "claimKey"), STRING),
                "confidence": NUMBER,
                "importance": NUMBER,
            },
            "entity",
            "aspect",
            "value",
        ),
    ]
}

MEMORY_TOOLS: Final = (
    DaemonTool(
        ToolDefinition(
            "memory_search",
            "Recall stored memories by words or meaning.",
            object_schema(
                {
                    "query": describe("What to look for"),
                    "limit": describe("Most rows, 1 to 100 (default 10)", **NUMBER),
                    "project": describe("Only of this project"),
                    "type": describe("Only of this type"),
                    "tags": describe("Only with these tags, separated by commas"),
                    "who": describe("Only by this author"),
                    "since": describe("Only made after this day"),
                    "until": describe("Only made before this day"),
                    "time": object_schema(
                        {
                            "start": STRING,
                            "end": STRING,
                            "facets": {"type": "array", "items": {"type": "string", "enum": list(FACETS)}},
                            "mode": {"type": "string", "enum": ["auto", "timeline", "filter"]},
                        }
                    ),
                    "keyword_query": describe("Words to look for in the place of the query's"),
                    "pinned": describe("Only pinned ones", **BOOLEAN),
                    "importance_min": describe("Least importance", **NUMBER),
                    "min_score": describe("An older name of importance_min", **NUMBER),
                    "score_min": describe("Least score of a row", **NUMBER),
                    "aggregate": describe("Put one answer made of the rows beside them", **BOOLEAN),
                    "aggregate_budget": {"type": "string", "enum": list(BUDGETS)},
                    "save_aggregate": describe("Keep that answer as a memory", **BOOLEAN),
                    "include_recalled": describe("Show rows again that this session was shown before", **BOOLEAN),
                },
                "query",
            ),
        ),
        memory_search,
        shown_rows,
    ),
    DaemonTool(
        ToolDefinition(
            "memory_store",
            "Store a memory for later sessions.",
            object_schema(
                {
                    "content": describe("The memory, in one or a few sentences"),
                    "type": describe("What kind of memory it is"),
                    "importance": describe("0 to 1", **NUMBER),
                    "tags": describe("Separated by commas"),
                    "pinned": BOOLEAN,
                    "hints": describe(
                        "Questions that this memory answers", type="array", items={**STRING, "minLength": 1}, minItems=1
                    ),
                    **dict.fromkeys(TIMES, describe("An ISO 8601 time")),
                    "transcript": describe("The conversation it comes from"),
                    "structured": object_schema(
                        {
                            "entities": {"type": "array", "items": _RELATION},
                            "aspects": {"type": "array", "items": _ASPECTS},
                            "hints": STRINGS,
                        }
                    ),
                },
                "content",
                "hints",
            ),
        ),
        memory_store,
    ),
    DaemonTool(
        ToolDefinition("memory_get", "Read one memory by its id.", object_schema({"id": STRING}, "id")), memory_get
    ),
    DaemonTool(
        ToolDefinition(
            "memory_list",
            "List memories, newest first.",
            object_schema(
                {
                    "limit": describe("Most rows (default 100)", **NUMBER),
                    "offset": describe("Rows to leave out", **NUMBER),
                    "type": describe("Only of this type"),
                }
            ),
        ),
        memory_list,
        shown_rows,
    ),
    DaemonTool(
        ToolDefinition(
            "memory_modify",
            "Change a memory; say why.",
            object_schema(
                {
                    "id": STRING,
                    "content": STRING,
                    "type": STRING,
                    "importance": describe("0 to 1", **NUMBER),
                    "tags": describe("Separated by commas"),
                    "pinned": BOOLEAN,
                    "reason": describe("Why it is changed"),
                },
                "id",
                "reason",
            ),
        ),
        memory_modify,
    ),
    DaemonTool(
        ToolDefinition(
            "memory_forget",
            "Forget a memory by its id; say why.",
            object_schema({"id": STRING, "reason": describe("Why it is forgotten")}, "id", "reason"),
        ),
        memory_forget,
    ),
)
