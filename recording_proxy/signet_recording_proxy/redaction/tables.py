"""Reads the tables of patterns and words, which are JSON files beside this module.

An expression is a text, or a list of texts that are joined, or an object of alternatives by what they describe.
`{NAME}` in it is replaced by the table's part of that name; a part may name parts above it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeVar

import msgspec

Table = TypeVar("Table")
_PART = re.compile(r"\{([A-Z][A-Z0-9_]*)\}")


class Expression(str):
    """A regular expression that stays text; the type of one to be compiled is `re.Pattern[str]`."""

    __slots__ = ()


class _Parts(msgspec.Struct):
    parts: dict[str, str | list[str]] = {}


def read_table(name: str, table: type[Table], **parts: str) -> Table:
    """The file `name` as a `table`; `parts` are those that are not in the file."""
    raw = Path(__file__).with_name(name).read_bytes()

    def _fill(pieces: str | list[str] | dict[str, str]) -> str:
        text = "|".join(pieces.values()) if isinstance(pieces, dict) else "".join(pieces)
        return _PART.sub(lambda match: parts[match[1]], text)

    def _expression(kind: type, pieces: str | list[str] | dict[str, str]) -> Expression | re.Pattern[str]:
        return Expression(_fill(pieces)) if kind is Expression else re.compile(_fill(pieces))

    for part, pieces in msgspec.json.decode(raw, type=_Parts).parts.items():
        parts[part] = _fill(pieces)
    return msgspec.json.decode(raw, type=table, dec_hook=_expression)
