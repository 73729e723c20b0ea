"""Two JSON values compared structurally: every place where they differ, as pointer and value on both sides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from signet_conformance.diff.difference import ABSENT
from signet_conformance.diff.links import Links
from signet_conformance.diff.volatile import Volatile
from signet_conformance.files.json_values import escape

MAX_PLACES = 50
"""Most differing places that are listed for one member of a body; a member with more of them differs as a whole."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place that differs: pointer and value on both sides, ABSENT where a side has none."""

    first_pointer: str
    second_pointer: str
    first: Any
    second: Any


def blank(value: Any) -> bool:
    """Whether a value is empty: absent, null, or a text of white space."""
    return value is ABSENT or value is None or (isinstance(value, str) and not value.strip())


def json_type(value: Any) -> str:
    """The JSON type of a value, a number of either kind being one."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case Mapping():
            return "object"
        case _:
            return "absent"


class Structure:
    """Compares values by the volatile classes and the links of a session."""

    def __init__(self, volatile: Volatile, links: Links) -> None:
        self._volatile = volatile
        self._links = links

    def places(self, name: str, first: Any, second: Any, pointer: str, *, strict: bool) -> Iterator[Place]:
        """The places under `pointer` in which two values of member `name` differ, in order."""
        yield from self._places(name, first, second, (pointer, pointer), strict)

    def _places(self, name: str, first: Any, second: Any, at: tuple[str, str], strict: bool) -> Iterator[Place]:
        kind = json_type(first)
        if kind != json_type(second):
            yield Place(*at, first, second)
        elif kind == "object":
            yield from self._objects(first, second, at, strict)
        elif kind == "array":
            yield from self._arrays(name, first, second, at, strict)
        elif not self._same(name, first, second, strict):
            yield Place(*at, first, second)

    def _same(self, name: str, first: Any, second: Any, strict: bool) -> bool:
        if isinstance(first, str):
            return self._links.same(first, second, strict=strict)
        if first == second:
            return True
        return json_type(first) == "number" and self._volatile.number(name, first, second)

    def _objects(
        self, first: Mapping[str, Any], second: Mapping[str, Any], at: tuple[str, str], strict: bool
    ) -> Iterator[Place]:
        renamed = self._renamed(first, second, strict)
        for name, value in first.items():
            other = name if name in second else renamed.get(name)
            pointers = (f"{at[0]}/{escape(name)}", f"{at[1]}/{escape(other or name)}")
            if other is None:
                yield Place(*pointers, value, ABSENT)
            else:
                yield from self._places(name, value, second[other], pointers, strict)
        met = set(renamed.values())
        for name, value in second.items():
            if name not in first and name not in met:
                yield Place(f"{at[0]}/{escape(name)}", f"{at[1]}/{escape(name)}", ABSENT, value)

    def _renamed(self, first: Mapping[str, Any], second: Mapping[str, Any], strict: bool) -> dict[str, str]:
        """Members whose names are volatile themselves, such as a map from memory id to score."""
        if first.keys() == second.keys():
            return {}
        others = [name for name in second if name not in first]
        renamed: dict[str, str] = {}
        for name in first:
            if name not in second:
                other = next((other for other in others if self._links.same(name, other, strict=strict)), None)
                if other is not None:
                    renamed[name] = other
                    others.remove(other)
            if len(renamed) >= MAX_PLACES:
                break
        return renamed

    def _arrays(
        self, name: str, first: list[Any], second: list[Any], at: tuple[str, str], strict: bool
    ) -> Iterator[Place]:
        for index in range(max(len(first), len(second))):
            pointers = (f"{at[0]}/{index}", f"{at[1]}/{index}")
            if index >= len(second):
                yield Place(*pointers, first[index], ABSENT)
            elif index >= len(first):
                yield Place(*pointers, ABSENT, second[index])
            else:
                yield from self._places(name, first[index], second[index], pointers, strict)
