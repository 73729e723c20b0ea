"""Which requirement reads which part of an exchange: what their entries say, indexed by operation.

A difference in a part that a requirement reads is contract-relevant; any other is cosmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from signet_conformance.contract import Reading, operation_groups, requirements

VALUE, TEXT, ORDER, PRESENCE = "value", "text", "order", "presence"
EVERY = "*"


@dataclass(frozen=True, slots=True)
class Read:
    """The requirements that read one part, and how: its value, a text's shape, its order or its presence."""

    by_mode: Mapping[str, tuple[str, ...]]

    def requirements(self, *modes: str) -> tuple[str, ...]:
        """The ids that read it in one of these ways, in the catalogue's order; in any way when no mode is named."""
        return tuple(dict.fromkeys(name for mode in modes or self.by_mode for name in self.by_mode.get(mode, ())))

    def __bool__(self) -> bool:
        return bool(self.by_mode)


NOBODY = Read({})


@cache
def read(where: str, operation: str | None, name: str = "") -> Read:
    """The requirements that read part `where` (path, query, header, body, …), member `name`, of an operation."""
    by_mode: dict[str, list[str]] = {}
    for key in ((where, name, operation), (where, name, EVERY)):
        for mode, requirement in _index().get(key, ()):
            by_mode.setdefault(mode, []).append(requirement)
    return Read({mode: tuple(ids) for mode, ids in by_mode.items()}) if by_mode else NOBODY


@cache
def _index() -> Mapping[tuple[str, str, str | None], list[tuple[str, str]]]:
    """(part, member, operation) to (mode, requirement id) of each that reads it."""
    index: dict[tuple[str, str, str | None], list[tuple[str, str]]] = {}
    for requirement in requirements().values():
        for reading in requirement.reads:
            for operation in _operations(reading):
                for name in reading.names:
                    index.setdefault((reading.part, name, operation), []).append((reading.mode, requirement.id))
    return index


def _operations(reading: Reading) -> Iterator[str]:
    for name in reading.operations:
        yield from operation_groups()[name[1:]] if name.startswith("@") else (name,)
