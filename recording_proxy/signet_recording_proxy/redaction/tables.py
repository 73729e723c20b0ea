"""Reads the tables of patterns and words, which are JSON files beside this module.

An expression is a text, or a list of texts that are joined. `{NAME}` in it stands for a part that several expressions
have in common.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import msgspec

Table = TypeVar("Table")
_PART = re.compile(r"\{([A-Z_]+)\}")


class Expression(str):
    """A regular expression that stays text; the type of one to be compiled is `re.Pattern[str]`."""

    __slots__ = ()


def read_table(name: str, table: type[Table], parts: Mapping[str, str] = MappingProxyType({})) -> Table:
    """The file `name` as a `table`, with `parts` put into its expressions."""

    def _expression(kind: type, pieces: str | list[str]) -> Expression | re.Pattern[str]:
        text = _PART.sub(lambda match: parts[match[1]], "".join(pieces))
        return Expression(text) if kind is Expression else re.compile(text)

    return msgspec.json.decode(Path(__file__).with_name(name).read_bytes(), type=table, dec_hook=_expression)
