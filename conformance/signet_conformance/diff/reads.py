"""Which requirement reads which part of an exchange: `schemas/reads.json`, indexed by operation.

A part that a requirement reads makes a difference contract-relevant; what nobody reads is cosmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from signet_conformance.contract import document

VALUE, TEXT, ORDER, PRESENCE = "value", "text", "order", "presence"
EVERY = "*"


@dataclass(frozen=True, slots=True)
class Read:
    """The requirements that read one part, and how: its value, a text's shape, its order or its presence."""

    by_mode: Mapping[str, tuple[str, ...]]

    def requirements(self, *modes: str) -> tuple[str, ...]:
        """The ids that read it in one of these ways, the most telling first; in any way when none is named."""
        return tuple(dict.fromkeys(name for mode in modes or self.by_mode for name in self.by_mode.get(mode, ())))

    def __bool__(self) -> bool:
        return bool(self.by_mode)


NOBODY = Read({})


@cache
def read(where: str, operation: str | None, name: str = "") -> Read:
    """Who reads part `where` (exchange, path, query, header, body, answer, …), member `name`, of an operation."""
    found: dict[str, list[str]] = {}
    for key in ((where, name, operation), (where, name, EVERY)):
        for mode, ids in _index().get(key, ()):
            found.setdefault(mode, []).extend(ids)
    return Read({mode: tuple(ids) for mode, ids in found.items()}) if found else NOBODY


@cache
def _index() -> Mapping[tuple[str, str, str | None], list[tuple[str, tuple[str, ...]]]]:
    data = document("reads.json")
    index: dict[tuple[str, str, str | None], list[tuple[str, tuple[str, ...]]]] = {}
    for row in data["reads"]:
        for operation in _operations(row, data["groups"]):
            for name in row.get("names", [""]):
                index.setdefault((row["in"], name, operation), []).append((row["as"], tuple(row["requirements"])))
    return index


def _operations(row: Mapping[str, Any], groups: Mapping[str, list[str]]) -> Iterator[str]:
    for name in row["operations"]:
        yield from groups[name[1:]] if name.startswith("@") else (name,)
