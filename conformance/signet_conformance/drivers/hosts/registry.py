"""Which registrations a harness accepts or refuses, by the registry of its face, in the harness's own words.

Each refusal is a row for `installed` of the driver's answer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from signet_conformance.drivers.hosts.hook_settings import schema_error
from signet_conformance.files import parse_file
from signet_conformance.files.json_values import member_of, object_in, parse_value

Row = Mapping[str, Any]

_OPERATIONS = ("session-start", "user-prompt-submit", "session-end", "pre-compaction", "compaction-complete")
_BY_NAME: Sequence[tuple[re.Pattern[str], Sequence[str]]] = [
    (re.compile(r"(?i)(?=.*compact)(?=.*(post|after|complete|end))"), ["compaction-complete"]),
    (re.compile(r"(?i).*compact"), ["pre-compaction"]),
    (re.compile(r"(?i).*(prompt|message|input)"), ["user-prompt-submit"]),
    (re.compile(r"(?i)(?=.*(session|agent|turn))(?=.*(end|stop|close|exit))|stop|exit"), ["session-end"]),
    (re.compile(r"(?i)(?=.*(session|agent))(?=.*(start|begin|open))"), ["session-start"]),
]
"""Patterns of names of events, and the operations that a hook of one most likely calls."""
_WITH_FIELDS = (
    *("memory_store", "memory_search", "memory_get", "memory_modify", "memory_forget", "memory_feedback"),
    *("session_search", "secret_exec", "secret_exec_status", "agent_message_send"),
    *("knowledge_expand", "lcm_expand", "mcp_server_call"),
)
"""Tools of the contract that cannot be used without an argument."""
BARE = "its schema declares no field, so the model cannot know what to pass"
_SERVERS = ("mcpServers", "mcp_servers", "mcp", "servers")
_FOLDERS_DEEP = 3
_MOST_OUTPUT = 40
_MOST_ERROR = 200


def operations_of(event: str, commands: Collection[str] = ()) -> Sequence[str]:
    """The operations that hooks of an event call: those that their commands name, else those that its name suggests."""
    named = [name for name in _OPERATIONS if any(name in command for command in commands)]
    return named or next((operations for pattern, operations in _BY_NAME if pattern.match(event)), [])


def unknown_events(commands: Mapping[str, Collection[str]], face: Mapping[str, Any]) -> Iterator[Row]:
    """A row for each event that the harness does not know; `commands` are the hooks' by event."""
    registry = face.get("registry", {})
    known = registry.get("events") or face["events"]
    calls = {event: operations_of(event, commands[event]) for event in commands}
    for event in (event for event in commands if event not in known):
        elsewhere = next(
            (other for other in commands if other in known and set(calls[other]) & set(calls[event])), None
        )
        words = registry.get("unknown_event")
        yield {
            "file": f"the hook of {event}",
            "accepted": False,
            "event": event,
            "operations": list(calls[event]),
            **({} if words is None else {"words": words.replace("{name}", event)}),
            **({} if elsewhere is None else {"elsewhere": elsewhere}),
        }


def output_objection(event: str, stdout: str, face: Mapping[str, Any]) -> str | None:
    """The harness's complaint about the output of a hook that ended well; None for output that it reads or ignores."""
    form = face.get("registry", {}).get("outputs", {}).get(event)
    output = stdout.strip()
    if form is None or not output:
        return None
    data = parse_value(output)
    if isinstance(data, dict):
        error = schema_error(form["json"], data)
        fault = None if error is None else ": ".join(filter(None, error))[:_MOST_ERROR]
    elif output.startswith(("{", "[")):
        fault = f"output that begins with {output[0]} must be valid JSON, and this is not: {output[:_MOST_OUTPUT]!r}"
    else:
        fault = None if form["text"] != "refused" else f"it expects a JSON object, but gets {output[:_MOST_OUTPUT]!r}"
    return None if fault is None else f"{form['words']} ({fault})"


def reads_as_context(event: str, stdout: str, face: Mapping[str, Any]) -> bool:
    """Whether the harness looks for context for its model in the output of a hook."""
    form = face.get("registry", {}).get("outputs", {}).get(event)
    plain = not stdout.lstrip().startswith(("{", "["))
    return form is None or (output_objection(event, stdout, face) is None and (form["text"] == "taken" or not plain))


def accept_tools(
    tools: Mapping[str, Any], face: Mapping[str, Any], names: Mapping[str, str]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the tools that the harness accepts, name to schema, and a report on all of them for the kit.

    `names` is the target's own naming of the tools that scenarios use.
    """
    rules = face.get("registry", {}).get("tools", {})
    rows: list[Row] = []
    accepted: dict[str, Any] = {}
    for name, schema in tools.items():
        title = f"the tool {name or 'without a name'}"
        words = _tool_objection(name, schema, rules)
        if words is not None:
            rows.append({"file": title, "accepted": False, "words": words.replace("{name}", name)})
            continue
        accepted[name] = schema
        if _is_bare(schema) and name in (names.get(each, each) for each in _WITH_FIELDS):
            rows.append({"file": title, "accepted": False, "minor": True, "words": BARE})
        for keyword, words in rules.get("refused_keywords", {}).items():
            if fields := _fields_with(keyword, schema):
                fault = words.replace("{fields}", ", ".join(fields))
                rows.append({"file": title, "accepted": False, "minor": True, "words": fault})
    counts = {"tools": len(accepted), "refused": len(tools) - len(accepted)}
    return accepted, {"installed": rows, "registered": [counts]}


def _tool_objection(name: str, schema: Any, rules: Mapping[str, Any]) -> str | None:
    words: str | None = None
    if "pattern" in rules and re.fullmatch(rules["pattern"], name) is None:
        words = rules["ill_formed"]
    elif name in rules.get("reserved", ()):
        words = rules["reserved_words"]
    elif rules.get("schema_form") == "json-schema" and not _is_object_schema(schema):
        words = rules["schema_words"]
    return words


def _is_object_schema(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "object"


def _is_bare(schema: Any) -> bool:
    """Whether a tool has a schema without any field."""
    return isinstance(schema, dict) and schema.get("type") == "object" and not schema.get("properties")


def _fields_with(keyword: str, schema: Any) -> Sequence[str]:
    """The fields of a tool whose schemas contain a keyword, at any depth."""
    fields = object_in(member_of(schema, "properties"))
    return [name for name, each in fields.items() if _has_keyword(keyword, each)]


def _has_keyword(keyword: str, schema: Any) -> bool:
    """Return True if a schema, or one within it, has the keyword; a field of that name does not count."""
    if isinstance(schema, list):
        return any(_has_keyword(keyword, each) for each in schema)
    if not isinstance(schema, dict):
        return False
    tables = (object_in(schema.get(part)) for part in ("properties", "patternProperties", "$defs"))
    parts = [each for table in tables for each in table.values()]
    parts += [schema.get(part) for part in ("items", "additionalProperties", "anyOf", "oneOf", "allOf", "not")]
    return keyword in schema or any(_has_keyword(keyword, each) for each in parts)


def misplaced_servers(home: Path, face: Mapping[str, Any], operations: Sequence[str]) -> Iterator[Row]:
    """A row for each file that names the memory server, but in which the harness does not look for one."""
    where, name = face["mcp"]["file"], face["mcp"]["members"][-1]
    places = sorted(path for depth in range(_FOLDERS_DEEP) for path in home.glob(f"{'*/' * depth}*.[jt]*"))
    for path in places:
        file = str(path.relative_to(home))
        if path.suffix in (".json", ".toml") and file != where and name in _servers_in(path):
            words = f"it reads memory servers only from {where}: {name} is never started"
            yield {"file": file, "accepted": False, "words": words, "operations": list(operations)}


def _servers_in(path: Path) -> Collection[str]:
    try:
        data = parse_file(path)
    except (OSError, ValueError, RecursionError):
        return ()
    return {name for table in _SERVERS for name in object_in(member_of(data, table))}
