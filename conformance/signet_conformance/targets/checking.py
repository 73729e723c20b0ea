"""Profiles and faces against their schemas: the first breach as one error with file, JSON pointer and value."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import jsonschema_rs

from signet_conformance.contract import document
from signet_conformance.errors import TargetError, printable


def demand(data: Any, schema: str, where: str) -> None:
    """Raise TargetError for the first place at which `data` breaks `schema`, a name in the schemas folder."""
    if (odd := _odd(data)) is not None:
        raise TargetError(odd[1], where=where, remedy=f"write {odd[0]} as a string without control characters")
    problem = min(_validator(schema).iter_errors(data), key=lambda one: -len(one.instance_path), default=None)
    if problem is None:
        return
    message, remedy = _told(problem, document(schema))
    pointer = "".join(f"/{part}" for part in problem.instance_path)
    raise TargetError(f"{pointer or 'the whole'}: {message}", where=where, remedy=remedy)


def _odd(value: Any, pointer: str = "") -> tuple[str, str] | None:
    """The first value that TOML has and JSON has not, or that no command line can hold: where, and what it is."""
    if isinstance(value, Mapping):
        within = ((f"{pointer}/{name}", child) for name, child in value.items())
    elif isinstance(value, list):
        within = ((f"{pointer}/{index}", child) for index, child in enumerate(value))
    elif isinstance(value, str) and "\0" in value:
        return pointer, f"{pointer} holds a null character"
    else:
        plain = value is None or isinstance(value, str | int | float)
        return None if plain else (pointer, f"{pointer} is a {type(value).__name__}")
    return next((odd for where, child in within if (odd := _odd(child, where)) is not None), None)


@cache
def _validator(schema: str) -> Any:
    return jsonschema_rs.validator_for(document(schema))


def _told(problem: Any, schema: Mapping[str, Any]) -> tuple[str, str]:
    """What is wrong, and what to write instead."""
    *path, rule = problem.schema_path
    at = _at(schema, path)
    shown = printable(json.dumps(problem.instance, default=str), 80)
    if rule == "additionalProperties":
        known = sorted(at.get("properties", {}))
        extra = next((name for name in problem.instance if name not in known), "")
        near = difflib.get_close_matches(extra, known, n=2)
        return f"there is no member {printable(extra)!r}", f"did you mean {' or '.join(near) or ', '.join(known)}?"
    if rule == "enum":
        return f"is {shown}", f"one of {', '.join(map(str, at.get('enum', ())))}"
    remedy = f"write what schemas/{'/'.join(str(schema['$id']).split('/')[-2:])}.schema.json describes"
    return printable(problem.message, 200), str(at.get("description") or remedy)


def _at(schema: Mapping[str, Any], path: Sequence[Any]) -> Mapping[str, Any]:
    """The part of a schema that a path leads to; empty when it leads nowhere."""
    found: Any = schema
    for part in path:
        try:
            found = found[part]
        except (KeyError, IndexError, TypeError):
            return {}
    return found if isinstance(found, Mapping) else {}
