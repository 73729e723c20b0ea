"""Values of a trace as a report may show them: bounded, and harmless for a terminal and a JSON reader."""

from __future__ import annotations

import json
import os
from math import isfinite
from pathlib import Path
from typing import Any

from msgspec import UNSET, Struct

from signet_conformance.errors import printable
from signet_conformance.files.json_values import names_in
from signet_conformance.finding import Finding
from signet_conformance.trace import Body, Exchange

MAX_TEXT = 400
MAX_ITEMS = 20
MAX_DEPTH = 6
_LARGEST_INTEGER = 10**300

_ABSENT = object()


def shorten(value: Any, depth: int = MAX_DEPTH) -> Any:
    """`value` as a JSON value of bounded size; a note takes the place of what was left out.

    Numbers that JSON does not have (not a number, infinite) become text.
    """
    match value:
        case None | bool():
            return value
        case str():
            return value if len(value) <= MAX_TEXT else f"{value[:MAX_TEXT]}… ({len(value)} characters)"
        case int():
            return value if abs(value) < _LARGEST_INTEGER else f"an integer of {value.bit_length()} bits"
        case float():
            return value if isfinite(value) else str(value)
        case dict():
            return _shortened_object(value, depth)
        case list() | tuple():
            if depth == 0:
                return f"a list of {len(value)} items"
            items = [shorten(item, depth - 1) for item in value[:MAX_ITEMS]]
            return [*items, f"… {len(value) - MAX_ITEMS} more"] if len(value) > MAX_ITEMS else items
        case _:
            return shorten(str(value), depth)


def finite(value: Any) -> Any:
    """`value` at its whole length; numbers that JSON does not have become text."""
    match value:
        case float():
            return value if isfinite(value) else str(value)
        case dict():
            return {name: finite(each) for name, each in value.items()}
        case list():
            return [*map(finite, value)]
        case _:
            return value


def _shortened_object(value: dict[Any, Any], depth: int) -> Any:
    if depth == 0:
        return f"an object of {len(value)} members"
    members = list(value.items())
    result = {shorten(str(name)): shorten(item, depth - 1) for name, item in members[:MAX_ITEMS]}
    if len(members) > MAX_ITEMS:
        result["…"] = f"{len(members) - MAX_ITEMS} more"
    return result


def as_text(value: Any, limit: int) -> str:
    """`value` as one printable line of JSON of at most about `limit` characters."""
    return printable(json.dumps(shorten(value), ensure_ascii=False), limit)


def cell(value: object, limit: int = 120) -> str:
    """A name as a table may show it: printable, and no formula for a spreadsheet that it is pasted into."""
    shown = printable(value, limit)
    return f"'{shown}" if shown.startswith(("=", "+", "-", "@")) else shown


def shown_path(path: str) -> str:
    """A path as its reader knows it: from the current folder where it lies below that."""
    file, here = Path(os.path.normpath(path)), Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)


def received_text(finding: Finding, exchange: Exchange | None, limit: int = 300) -> str:
    """The received value of a finding as one printable line: a JSON value, or `nothing: the member is absent`.

    A finding holds None both for null and for an absent member; the exchange's line says which.
    """
    if finding.received is not None:
        return as_text(finding.received, limit)
    if exchange is None or not finding.pointer:
        return ""
    member = _at(exchange, finding.pointer)
    return "nothing: the member is absent" if member is _ABSENT else as_text(member, limit)


def is_absent(pointer: str, exchange: Exchange) -> bool:
    """Whether the line of an exchange has no member at a pointer; null is one."""
    return _at(exchange, pointer) is _ABSENT


def _at(exchange: Exchange, pointer: str) -> Any:
    value: Any = exchange
    for name in names_in(pointer):
        if isinstance(value, Struct) and name in value.__struct_fields__:
            value = getattr(value, name)
        elif isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list | tuple) and name.isdecimal() and name.isascii() and int(name[:9]) < len(value):
            value = value[int(name[:9])]
        else:
            return _ABSENT
    if isinstance(value, Body):
        shown = {str(value.kind): value.value, "media_type": value.media_type, "size": value.size}
        return {name: part for name, part in shown.items() if part is not None}
    return _ABSENT if value is UNSET else value
