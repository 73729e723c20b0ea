"""Arguments of built-in tools: their JSON Schemas for the model, and checks that raise ToolInputError."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from signet_reference_harness.errors import ToolInputError

SPOKEN: Final = {str: "a string that is not blank", bool: "true or false", float: "a number", dict: "an object"}
STRING: Final = {"type": "string"}
NUMBER: Final = {"type": "number"}
BOOLEAN: Final = {"type": "boolean"}
STRINGS: Final = {"type": "array", "items": STRING}


def object_schema(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    """The JSON Schema of an object with these properties."""
    return {"type": "object", "properties": dict(properties), **({"required": list(required)} if required else {})}


def describe(description: str, **schema: Any) -> dict[str, Any]:
    """A schema, by default that of a string, with its description."""
    return {**(schema or STRING), "description": description}


def text(arguments: Mapping[str, Any], name: str) -> str:
    """The string at `name`, which may not be blank."""
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ToolInputError(f"{name!r} must be a string that is not blank")
    return value


def integer(arguments: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    """The integer at `name`, or `default` where it is left out."""
    value = arguments.get(name, default)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ToolInputError(f"{name!r} must be an integer from {least} to {most}")
    return value


def typed(arguments: Mapping[str, Any], fields: Mapping[str, type]) -> dict[str, Any]:
    """Those of the `fields` that are given, each of its type; a list is one of strings. None counts as absent."""
    given = {name: arguments[name] for name in fields if arguments.get(name) is not None}
    for name, value in given.items():
        wanted = fields[name]
        if wanted is list:
            if not isinstance(value, list) or not are_strings(value):
                raise ToolInputError(f"{name!r} must be a list of strings")
        elif wanted is str:
            text(given, name)
        elif wanted is float:
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise ToolInputError(f"{name!r} must be a number")
        elif not isinstance(value, wanted):
            raise ToolInputError(f"{name!r} must be {SPOKEN[wanted]}")
    return given


def are_strings(value: object) -> bool:
    """Whether `value` is a sequence of strings."""
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(item, str) for item in value)
