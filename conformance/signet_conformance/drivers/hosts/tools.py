"""Translates a scenario's tool calls into calls of a connector's tools, and reads their results."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from signet_conformance.drivers.hosts.protocol import Skipped
from signet_conformance.files.json_values import list_in, member_of, parse_object

_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE)

SECRET_EXEC, SECRET_STATUS = "secret_exec", "secret_exec_status"
MOST_POLLS = 20
POLL_S = 0.1


_OPEN_KEYWORDS = ("additionalProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf")
"""Keywords of a schema that may allow members beside its properties."""
_MODIFY, _FORGET = "memory_modify", "memory_forget"
_MAIN_ARGUMENTS: Mapping[str, Sequence[str]] = {
    "memory_store": ("content",),
    "memory_search": ("query",),
    "memory_get": ("id",),
    SECRET_EXEC: ("command",),
    _MODIFY: ("content", "type", "tags", "importance", "pinned"),
    _FORGET: ("id", "ids", "query", "type", "tags", "who", "source_type", "since", "until", "scope"),
}
"""The arguments that a tool is called for: without any of them the call would do nothing."""
_HARNESS_COMMANDS = ("/status", "/help")


def demand_no_own_command(text: object) -> None:
    """Raise Skipped for a command that the harness handles itself, so that it never reaches a connector."""
    if text in _HARNESS_COMMANDS:
        raise Skipped(f"{text} is a command of the harness, which does not pass it on")


Run = Callable[[str, Mapping[str, Any]], tuple[str, bool]]


def use_tool(
    step: Mapping[str, Any],
    schemas: Mapping[str, Any],
    names: Mapping[str, str],
    run: Run,
    hand_over: Callable[[object, Mapping[str, Any]], None],
) -> Mapping[str, Any]:
    """Perform a tool step through `run(name, arguments)`, which returns a text and whether it is an error.

    Scenarios name batches, but most connectors have tools for one memory: a batch becomes several calls, and the
    result is that of the last.
    `schemas` are those of the connector's tools, `names` is the target's own naming; `hand_over` gets the session and
    all arguments before the first call. Raises Skipped when the connector has no such tool.
    """
    answer: Mapping[str, Any] = {}
    calls = tool_calls(step, schemas, names)
    hand_over(step.get("session"), arguments_of(step, calls))
    for name, arguments in calls:
        text, failed = run(name, arguments)
        if name == SECRET_EXEC and not failed and SECRET_STATUS in schemas:
            content = read_content(text)
            job = content.get("jobId", content.get("id"))
            # Without the id of a job there is nothing to poll.
            if isinstance(job, str):
                status = schemas[SECRET_STATUS]
                text, failed = _job_end({"jobId": job, **required_arguments(status, {"jobId": job})}, run)
        answer = {"text": text, "content": read_content(text), "is_error": failed}
    return {**answer, "offered": offered_members(schemas, names)}


def offered_members(schemas: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
    """The members that each tool's schema names, by the name that scenarios have for the tool."""
    scenario_names = {own: name for name, own in names.items()}
    return {scenario_names.get(own, own): [*(_properties(schema) or {})] for own, schema in schemas.items()}


def _job_end(arguments: Mapping[str, Any], run: Run) -> tuple[str, bool]:
    """Poll a job until it has ended, as the tool's description asks of a model."""
    for attempt in range(MOST_POLLS):
        text, failed = run(SECRET_STATUS, arguments)
        if failed or read_content(text).get("status") not in ("queued", "running"):
            break
        time.sleep(POLL_S * (attempt + 1))
    return text, failed


def tool_calls(
    step: Mapping[str, Any], schemas: Mapping[str, Any], names: Mapping[str, str]
) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """The calls of a tool step, as name and arguments: one for each memory. Raises Skipped without such a tool.

    A model fills in what the tool's schema offers, and what it requires.
    """
    wanted = str(step.get("tool"))
    name = names.get(wanted, wanted)
    if name not in schemas:
        raise Skipped(f"the connector has no tool {name}")
    schema = schemas[name]
    given = step.get("arguments")
    calls = _single_calls(given if isinstance(given, dict) else {}, _properties(schema) or {})
    sensible = [each for each in calls if _is_sensible(wanted, each, schema)]
    if not sensible:
        members = ", ".join(_main_arguments(wanted, calls[0]))
        raise Skipped(f"{name} takes none of the arguments that the step is about: {members}")
    return [(name, {**required_arguments(schema, each), **offered_arguments(schema, each)}) for each in sensible]


def _is_sensible(wanted: str, given: Mapping[str, Any], schema: Any) -> bool:
    """Whether the tool takes any of the arguments that the call is made for. Without them no model would call it.

    A tool may have another name for the one text that it requires, but not for what it changes.
    """
    offered = offered_arguments(schema, given)
    if "patches" in offered or not _main_arguments(wanted, given) or _main_arguments(wanted, offered):
        return True
    may_be_renamed = "id" in given if wanted == _FORGET else wanted != _MODIFY
    return may_be_renamed and bool(required_arguments(schema, given))


def _main_arguments(wanted: str, arguments: Mapping[str, Any]) -> Sequence[str]:
    return [name for name in _MAIN_ARGUMENTS.get(wanted, ()) if name in arguments]


def arguments_of(step: Mapping[str, Any], calls: Sequence[tuple[str, Mapping[str, Any]]]) -> Mapping[str, Any]:
    """The arguments of all calls of a tool step, in the form of a step's arguments."""
    if len(calls) == 1:
        return calls[0][1]
    each = [arguments for _, arguments in calls]
    if "patches" in step.get("arguments", {}):
        return {"patches": each}
    reason = next((arguments["reason"] for arguments in each if arguments.get("reason")), None)
    return {"ids": [arguments.get("id") for arguments in each], **({} if reason is None else {"reason": reason})}


def offered_arguments(schema: Any, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments that a tool's schema knows, in its form; all of them if it names no members, or accepts any."""
    offered = _properties(schema)
    if offered is None:
        return arguments
    takes_more = any(schema.get(name) for name in _OPEN_KEYWORDS)
    return {
        name: _in_form(value, offered.get(name)) for name, value in arguments.items() if takes_more or name in offered
    }


def _in_form(value: Any, schema: Any) -> Any:
    """A member's value as a model writes it: scenarios separate tags by commas, and a tool may want a list."""
    if isinstance(value, str) and member_of(schema, "type") == "array":
        return [part.strip() for part in value.split(",")]
    return value


def _single_calls(given: Mapping[str, Any], offered: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The arguments of each call: one call for each memory, unless the tool takes several."""
    if isinstance(given.get("patches"), list) and "patches" not in offered:
        return [patch for patch in given["patches"] if isinstance(patch, dict)]
    if isinstance(given.get("ids"), list) and "ids" not in offered:
        return [{"id": memory, "reason": given.get("reason")} for memory in given["ids"]]
    return [given]


def _properties(schema: Any) -> Mapping[str, Any] | None:
    properties = member_of(schema, "properties")
    return properties if isinstance(properties, dict) else None


def read_content(text: str) -> Mapping[str, Any]:
    """A tool's text as an object, with the id of a memory that the text contains."""
    content = parse_object(text)
    if not isinstance(content.get("id"), str) and (match := _UUID.search(text)) is not None:
        content = {**content, "id": match[0]}
    return content


def required_arguments(schema: Any, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Values for members that the tool requires and the scenario does not name: the model would write some."""
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        return {}
    text = next((value for value in arguments.values() if isinstance(value, str) and value), "billing")
    plausible = {"string": text, "array": [text], "number": 1, "integer": 1, "boolean": False, "object": {}}
    missing = {
        name: member_of(schema, "properties", name) for name in schema.get("required", ()) if name not in arguments
    }
    plain = {name: plausible[kind] for name, each in missing.items() if (kind := member_of(each, "type")) in plausible}
    choices = {name: list_in(member_of(each, "enum")) for name, each in missing.items()}
    return {**plain, **{name: values[0] for name, values in choices.items() if values}}
