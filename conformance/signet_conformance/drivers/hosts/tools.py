"""A scenario's tool calls in the terms of a connector, and what its tools give back."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from signet_conformance.drivers.hosts.protocol import Skipped

_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE)

SECRET_EXEC, SECRET_STATUS = "secret_exec", "secret_exec_status"
MOST_POLLS = 20
POLL_S = 0.1


_OWN_COMMANDS = ("/status", "/help")


def keep_back(text: object) -> None:
    """Raise Skipped for a command of the harness itself, which never reaches a connector."""
    if text in _OWN_COMMANDS:
        raise Skipped(f"{text} is a command of the harness, which keeps it back")


def use_tool(
    step: Mapping[str, Any],
    known: Collection[str],
    names: Mapping[str, str],
    run: Callable[[str, Mapping[str, Any]], tuple[str, bool]],
) -> Mapping[str, Any]:
    """Perform a tool step through `run(name, arguments)`, which returns a text and whether it is an error.

    Scenarios speak of batches, most connectors have tools for one memory: several calls are answered by the
    last. `names` is the target's own naming. Raises Skipped when the connector has no such tool.
    """
    answer: Mapping[str, Any] = {}
    for name, arguments in tool_calls(step, known, names):
        text, failed = run(name, arguments)
        if name == SECRET_EXEC and not failed and SECRET_STATUS in known:
            content = read_content(text)
            job = content.get("jobId", content.get("id"))
            # Whoever is told no job has nothing to ask for.
            text, failed = _job_end(job, run) if isinstance(job, str) else (text, failed)
        answer = {"text": text, "content": read_content(text), "is_error": failed}
    return answer


def _job_end(job: str, run: Callable[[str, Mapping[str, Any]], tuple[str, bool]]) -> tuple[str, bool]:
    """Ask for a job until it has ended, as the tool's description tells a model to do."""
    for attempt in range(MOST_POLLS):
        text, failed = run(SECRET_STATUS, {"jobId": job})
        if failed or read_content(text).get("status") not in ("queued", "running"):
            break
        time.sleep(POLL_S * (attempt + 1))
    return text, failed


def tool_calls(
    step: Mapping[str, Any], known: Collection[str], names: Mapping[str, str]
) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """The calls of a tool step, as name and arguments: one for each memory. Raises Skipped without such a tool."""
    wanted = str(step.get("tool"))
    name = names.get(wanted, wanted)
    if name not in known:
        raise Skipped(f"the connector has no tool {name}")
    given = step.get("arguments")
    given = given if isinstance(given, dict) else {}
    if isinstance(given.get("patches"), list):
        return [(name, patch) for patch in given["patches"]]
    if isinstance(given.get("ids"), list):
        return [(name, {"id": memory, "reason": given.get("reason")}) for memory in given["ids"]]
    if wanted == "memory_forget" and "id" not in given:
        raise Skipped(f"{name} forgets one memory at a time")
    return [(name, given)]


def read_content(text: str) -> Mapping[str, Any]:
    """The object that a tool's text is, with the id of a memory where the text tells one."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = None
    content = told if isinstance(told, dict) else {}
    if not isinstance(content.get("id"), str) and (match := _UUID.search(text)) is not None:
        content = {**content, "id": match[0]}
    return content


def required_arguments(schema: Any, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Values for members that the tool requires and the scenario does not name: the model would write some."""
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        return {}
    text = next((value for value in arguments.values() if isinstance(value, str) and value), "billing")
    plausible = {"string": text, "array": [text], "number": 1, "integer": 1, "boolean": False, "object": {}}
    missing = [name for name in schema.get("required", ()) if name not in arguments]
    return {name: plausible[kind] for name in missing if (kind := _kind(schema["properties"].get(name))) in plausible}


def _kind(schema: Any) -> Any:
    return schema.get("type") if isinstance(schema, dict) else None
