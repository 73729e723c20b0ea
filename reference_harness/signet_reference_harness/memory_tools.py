"""The built-in tools: five on memory, one on secrets. Each checks what the contract demands, then calls."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from signet_reference_harness.errors import ToolInputError
from signet_reference_harness.messages import ToolDefinition
from signet_reference_harness.reply import FailureClass, Reply
from signet_reference_harness.tools import Tool, ToolContext

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
DEFAULT_JOB_MS: Final = 300_000
SHORTEST_JOB_MS: Final = 1_000
LONGEST_JOB_MS: Final = 1_800_000

BUDGETS: Final = ("small", "medium", "large")

STRING: Final = {"type": "string"}
STRINGS: Final = {"type": "array", "items": {"type": "string"}}
TAGS: Final = {"type": ["string", "array"], "items": {"type": "string"}}
IMPORTANCE: Final = {"type": "number", "minimum": 0, "maximum": 1}


async def memory_search(arguments: Mapping[str, Any], context: ToolContext) -> Reply:
    """Recall rows by `query`, `limit` of them at most; with `aggregate_budget` an aggregate of them too."""
    limit = _integer(arguments, "limit", DEFAULT_RECALL, 1, MOST_RECALLED)
    budget = arguments.get("aggregate_budget")
    if budget is not None and budget not in BUDGETS:
        raise ToolInputError(f"'aggregate_budget' must be one of {', '.join(BUDGETS)}")
    return await context.client.recall(context.session, _text(arguments, "query"), limit, budget)


async def memory_store(arguments: Mapping[str, Any], context: ToolContext) -> Reply:
    """Save `content`, with `tags`, `importance` and `pinned` if given."""
    _check_change(arguments)
    extra = {name: arguments[name] for name in ("tags", "importance", "pinned") if arguments.get(name) is not None}
    return await context.client.remember(context.session, _text(arguments, "content"), extra)


async def memory_get(arguments: Mapping[str, Any], context: ToolContext) -> Reply:
    """Read the row `id`."""
    memory_id = _text(arguments, "id")
    if not MEMORY_ID.fullmatch(memory_id) or memory_id.lower() in RESERVED_IDS:
        raise ToolInputError(f"{memory_id!r} is not a memory id")
    return await context.client.memory(context.session, memory_id)


async def memory_modify(arguments: Mapping[str, Any], context: ToolContext) -> Reply:
    """Change one row (`id`, `reason` and the changes) or several (`patches` of these)."""
    patches = arguments.get("patches")
    if patches is None:
        patches = [arguments]
    if not isinstance(patches, list) or not 1 <= len(patches) <= MOST_PATCHES:
        raise ToolInputError(f"'patches' must be a list of 1 to {MOST_PATCHES} objects")
    return await context.client.modify(context.session, [_patch(patch, arguments) for patch in patches])


async def memory_forget(arguments: Mapping[str, Any], context: ToolContext) -> Reply:
    """Forget the rows `ids` (or one `id`), or those that filters select; `reason` says why.

    A selection by filters, or of more than 25 rows, is previewed first. Up to 25 rows are then forgotten
    by their ids, more under the preview's token. With `mode` "preview" nothing is.
    """
    selection = _selection(arguments)
    mode = arguments.get("mode", "execute")
    if mode not in {"preview", "execute"}:
        raise ToolInputError("'mode' must be 'preview' or 'execute'")
    if mode == "preview":
        return await context.client.forget(context.session, {"mode": "preview", **selection})
    order: dict[str, Any] = {"mode": "execute", "reason": _text(arguments, "reason")}
    if arguments.get("force") is True:
        order["force"] = True
    if len(selection.get("ids", ())) in range(1, MOST_UNCONFIRMED + 1):
        return await context.client.forget(context.session, {**selection, **order})
    preview = await context.client.forget(context.session, {"mode": "preview", **selection})
    ids = _previewed(preview)
    if preview.failure is not None or not ids:
        return preview
    if len(ids) <= MOST_UNCONFIRMED:
        return await context.client.forget(context.session, {"ids": ids, "limit": len(ids), **order})
    token = preview.text("confirmToken")
    if not token:
        return replace(preview, failure=FailureClass.SHAPE, detail="the preview holds no 'confirmToken'")
    return await context.client.forget(context.session, {**selection, **order, "confirm_token": token})


async def secret_exec(arguments: Mapping[str, Any], context: ToolContext) -> Reply:
    """Run `command` with `secrets`, a map of environment variables to names of secrets."""
    command = _text(arguments, "command")
    secrets = arguments.get("secrets")
    if not isinstance(secrets, dict) or not secrets:
        raise ToolInputError("'secrets' must map at least one environment variable to the name of a secret")
    for variable, name in secrets.items():
        if not variable.strip() or not isinstance(name, str) or not name.strip():
            raise ToolInputError("'secrets' must map names of environment variables to names of secrets")
    timeout_ms = _integer(arguments, "timeoutMs", DEFAULT_JOB_MS, SHORTEST_JOB_MS, LONGEST_JOB_MS)
    return await context.client.secret_exec(context.session, command, secrets, timeout_ms)


def _text(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ToolInputError(f"{name!r} must be a string that is not blank")
    return value


def _integer(arguments: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    value = arguments.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ToolInputError(f"{name!r} must be an integer from {least} to {most}")
    return value


def _patch(patch: object, arguments: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(patch, Mapping):
        raise ToolInputError("a patch must be an object")
    _check_change(patch)
    told = {name: patch[name] for name in CHANGES if patch.get(name) is not None}
    if not told:
        raise ToolInputError(f"a patch must change at least one of {', '.join(CHANGES)}")
    reason = patch if "reason" in patch else arguments
    made: dict[str, Any] = {"id": _text(patch, "id"), "reason": _text(reason, "reason"), **told}
    version = patch.get("if_version")
    if version is not None:
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise ToolInputError("'if_version' must be a positive integer")
        made["if_version"] = version
    return made


def _check_change(change: Mapping[str, Any]) -> None:
    for name in ("content", "type"):
        if change.get(name) is not None:
            _text(change, name)
    tags = change.get("tags")
    if tags is not None and not isinstance(tags, str) and not _are_strings(tags):
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
        if not _are_strings(ids) or not 1 <= len(ids) <= MOST_FORGOTTEN or not all(i.strip() for i in ids):
            raise ToolInputError(f"'ids' must be a list of 1 to {MOST_FORGOTTEN} memory ids")
        # A preview shows twenty rows unless it is told how many.
        return {"ids": list(ids), "limit": len(ids)}
    selection: dict[str, Any] = {name: _text(arguments, name) for name in FILTERS if arguments.get(name) is not None}
    if not selection:
        raise ToolInputError(f"name the rows by 'ids' or by one of {', '.join(FILTERS)}")
    return {**selection, "limit": _integer(arguments, "limit", 20, 1, MOST_FORGOTTEN)}


def _previewed(preview: Reply) -> list[str]:
    rows = preview.body.get("candidates")
    if not isinstance(rows, list):
        return []
    return [row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]


def _are_strings(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(item, str) for item in value)


def _schema(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


BUILT_IN: Final = (
    Tool(
        ToolDefinition(
            "memory_search",
            "Recall stored memories by words or meaning.",
            _schema(
                {
                    "query": STRING,
                    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_RECALLED},
                    "aggregate_budget": {"type": "string", "enum": list(BUDGETS)},
                },
                "query",
            ),
        ),
        memory_search,
    ),
    Tool(
        ToolDefinition(
            "memory_store",
            "Store a memory for later sessions.",
            _schema(
                {"content": STRING, "tags": TAGS, "importance": IMPORTANCE, "pinned": {"type": "boolean"}}, "content"
            ),
        ),
        memory_store,
    ),
    Tool(ToolDefinition("memory_get", "Read one memory by its id.", _schema({"id": STRING}, "id")), memory_get),
    Tool(
        ToolDefinition(
            "memory_modify",
            "Change a memory; say why.",
            _schema(
                {
                    "id": STRING,
                    "reason": STRING,
                    "content": STRING,
                    "type": STRING,
                    "tags": TAGS,
                    "importance": IMPORTANCE,
                    "pinned": {"type": "boolean"},
                    "if_version": {"type": "integer", "minimum": 1},
                },
                "id",
                "reason",
            ),
        ),
        memory_modify,
    ),
    Tool(
        ToolDefinition(
            "memory_forget",
            "Forget memories by id or by a query; say why.",
            _schema({"ids": STRINGS, "query": STRING, "reason": STRING}, "reason"),
        ),
        memory_forget,
    ),
    Tool(
        ToolDefinition(
            "secret_exec",
            "Run a command with secrets in its environment; you never see their values.",
            _schema(
                {
                    "command": STRING,
                    "secrets": {"type": "object", "additionalProperties": STRING},
                    "timeoutMs": {"type": "integer", "minimum": SHORTEST_JOB_MS, "maximum": LONGEST_JOB_MS},
                },
                "command",
                "secrets",
            ),
        ),
        secret_exec,
    ),
)
