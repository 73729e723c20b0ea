"""Reads the tables of patterns and words, which are JSON files beside this module.

An expression is a text, or a list of texts that are joined, or an object of alternatives by what they describe.
`{NAME}` in it is replaced by the table's part of that name; a part may name parts above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

Table = TypeVar("Table")
_PART = re.compile(r"\{([A-Z][A-Z0-9_]*)\}")


class Expression(str):
    """A regular expression as text."""

    __slots__ = ()

    @property
    def compiled(self) -> re.Pattern[str]:
        """The pattern, compiled when first needed: most never are, and all would take half of the start-up."""
        return _compile(self)


_compile = cache(re.compile)


class _Parts(msgspec.Struct):
    parts: dict[str, str | list[str]] = {}


def read_table(name: str, table: type[Table], **parts: str) -> Table:
    """Read the file `name` as a `table`; `parts` are further parts, which the file does not define."""
    raw = Path(__file__).with_name(name).read_bytes()

    def _fill(pieces: str | list[str] | dict[str, str]) -> str:
        text = "|".join(pieces.values()) if isinstance(pieces, dict) else "".join(pieces)
        return _PART.sub(lambda match: parts[match[1]], text)

    def _expression(_kind: type, pieces: str | list[str] | dict[str, str]) -> Expression:
        return Expression(_fill(pieces))

    for part, pieces in msgspec.json.decode(raw, type=_Parts).parts.items():
        parts[part] = _fill(pieces)
    return msgspec.json.decode(raw, type=table, dec_hook=_expression)


def any_of(words: Iterable[str], between: str = "") -> str:
    """An expression for any of these words, with `between` between their letters.

    It is a tree, in which common beginnings occur once, since matchers try each of its branches at every place.
    """
    tree: dict[str, Any] = {}
    for word in sorted(words):
        branch = tree
        for letter in word:
            branch = branch.setdefault(letter, {})
        branch[_END] = {}
    return _branches(tree, between)


_END = ""


def _branches(tree: dict[str, Any], between: str) -> str:
    branches = [re.escape(letter) + _rest(branch, between) for letter, branch in tree.items() if letter != _END]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


def _rest(branch: dict[str, Any], between: str) -> str:
    if branch.keys() == {_END}:
        return ""
    rest = between + _branches(branch, between)
    return f"(?:{rest})?" if _END in branch else rest
