"""The tools that a host has when it names no others: what the daemon's own MCP endpoint lists of memories and secrets.

Names and schemas are those of that endpoint. What names the session and its agent (`session_key`, `agent_id`) is left
out, since the harness says it itself, and the contract allows a session one agent only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from signet_reference_harness.messages import ToolDefinition
from signet_reference_harness.tools import DaemonTool
from signet_reference_harness.tools.memory import (
    BUDGETS,
    TIMES,
    memory_forget,
    memory_get,
    memory_list,
    memory_modify,
    memory_search,
    memory_store,
)
from signet_reference_harness.tools.secrets import (
    LONGEST_JOB_MS,
    secret_exec,
    secret_exec_status,
    secret_list,
)


def _schema(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), **({"required": list(required)} if required else {})}


def _said(description: str, **schema: Any) -> dict[str, Any]:
    return {**(schema or STRING), "description": description}


STRING: Final = {"type": "string"}
NUMBER: Final = {"type": "number"}
BOOLEAN: Final = {"type": "boolean"}
STRINGS: Final = {"type": "array", "items": STRING}
FACETS: Final = ("captured", "session", "source", "observed", "occurred", "valid")
_RELATION: Final = _schema(
    {
        **dict.fromkeys(("source", "sourceType", "relationship", "target", "targetType"), STRING),
        "confidence": NUMBER,
    },
    "source",
    "relationship",
    "target",
)
_ATTRIBUTE: Final = _schema(
    {
        "groupKey": _said("Where in the aspect it belongs"),
        "claimKey": _said("The same for each version of one claim, so that a newer one takes its place"),
        "content": STRING,
        "confidence": NUMBER,
        "importance": NUMBER,
    },
    "content",
)
_ASPECTS: Final = {
    "anyOf": [
        _schema(
            {
                **dict.fromkeys(("entityName", "entityType", "aspect"), STRING),
                "attributes": {"type": "array", "items": _ATTRIBUTE},
            },
            "entityName",
            "aspect",
            "attributes",
        ),
        _schema(
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
            _schema(
                {
                    "query": _said("What to look for"),
                    "limit": _said("Most rows, 1 to 100 (default 10)", **NUMBER),
                    "project": _said("Only of this project"),
                    "type": _said("Only of this type"),
                    "tags": _said("Only with these tags, separated by commas"),
                    "who": _said("Only by this author"),
                    "since": _said("Only made after this day"),
                    "until": _said("Only made before this day"),
                    "time": _schema(
                        {
                            "start": STRING,
                            "end": STRING,
                            "facets": {"type": "array", "items": {"type": "string", "enum": list(FACETS)}},
                            "mode": {"type": "string", "enum": ["auto", "timeline", "filter"]},
                        }
                    ),
                    "keyword_query": _said("Words to look for in the place of the query's"),
                    "pinned": _said("Only pinned ones", **BOOLEAN),
                    "importance_min": _said("Least importance", **NUMBER),
                    "min_score": _said("An older name of importance_min", **NUMBER),
                    "score_min": _said("Least score of a row", **NUMBER),
                    "aggregate": _said("Put one answer made of the rows beside them", **BOOLEAN),
                    "aggregate_budget": {"type": "string", "enum": list(BUDGETS)},
                    "save_aggregate": _said("Keep that answer as a memory", **BOOLEAN),
                    "include_recalled": _said("Show rows again that this session was shown before", **BOOLEAN),
                },
                "query",
            ),
        ),
        memory_search,
    ),
    DaemonTool(
        ToolDefinition(
            "memory_store",
            "Store a memory for later sessions.",
            _schema(
                {
                    "content": _said("The memory, in one or a few sentences"),
                    "type": _said("What kind of memory it is"),
                    "importance": _said("0 to 1", **NUMBER),
                    "tags": _said("Separated by commas"),
                    "pinned": BOOLEAN,
                    "hints": _said(
                        "Questions that this memory answers", type="array", items={**STRING, "minLength": 1}, minItems=1
                    ),
                    **dict.fromkeys(TIMES, _said("An ISO 8601 time")),
                    "transcript": _said("The conversation it comes from"),
                    "structured": _schema(
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
    DaemonTool(ToolDefinition("memory_get", "Read one memory by its id.", _schema({"id": STRING}, "id")), memory_get),
    DaemonTool(
        ToolDefinition(
            "memory_list",
            "List memories, newest first.",
            _schema(
                {
                    "limit": _said("Most rows (default 100)", **NUMBER),
                    "offset": _said("Rows to leave out", **NUMBER),
                    "type": _said("Only of this type"),
                }
            ),
        ),
        memory_list,
    ),
    DaemonTool(
        ToolDefinition(
            "memory_modify",
            "Change a memory; say why.",
            _schema(
                {
                    "id": STRING,
                    "content": STRING,
                    "type": STRING,
                    "importance": _said("0 to 1", **NUMBER),
                    "tags": _said("Separated by commas"),
                    "pinned": BOOLEAN,
                    "reason": _said("Why it is changed"),
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
            _schema({"id": STRING, "reason": _said("Why it is forgotten")}, "id", "reason"),
        ),
        memory_forget,
    ),
)

SECRET_TOOLS: Final = (
    DaemonTool(
        ToolDefinition("secret_list", "List the names of secrets.", {"type": "object", "properties": {}}), secret_list
    ),
    DaemonTool(
        ToolDefinition(
            "secret_exec",
            "Run a command with secrets in its environment; you never see their values.",
            {
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "The command line"},
                    "secrets": {
                        "type": "object",
                        "properties": {},
                        "additionalProperties": {"type": "string"},
                        "description": "Names of environment variables to names of secrets",
                    },
                    "timeoutSeconds": {
                        "type": "integer",
                        "exclusiveMinimum": 0,
                        "maximum": LONGEST_JOB_MS // 1000,
                        "description": "How long it may run (default 300)",
                    },
                },
                "required": ["command", "secrets"],
            },
        ),
        secret_exec,
    ),
    DaemonTool(
        ToolDefinition(
            "secret_exec_status",
            "See how a command that secret_exec started stands, by the id of its job.",
            {"type": "object", "properties": {"jobId": {"type": "string", "minLength": 1}}, "required": ["jobId"]},
        ),
        secret_exec_status,
    ),
)

BUILT_IN: Final = (*MEMORY_TOOLS, *SECRET_TOOLS)
