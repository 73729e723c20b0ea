"""Compares two exchanges part by part, and names the requirements that read each part that differs.

A difference in a part that a requirement reads is contract-relevant; any other is cosmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

from msgspec import Struct

from signet_conformance.contract import Reading, operation_groups, requirements
from signet_conformance.diff.difference import Difference, DifferenceKind, SideValue
from signet_conformance.diff.volatile import Links, VolatileClasses
from signet_conformance.facts import Call
from signet_conformance.files.json_values import ABSENT, escape
from signet_conformance.trace import Body

_NAMED_BY_ANSWER = frozenset({"id", "memoryId", "jobId"})
"""Members of an answer whose values later requests refer to."""

_EMPTY: Mapping[str, Any] = {}


class ExchangePair(Struct, frozen=True):
    """Two aligned exchanges of a matched pair of sessions. Comparing a pair adds to `links`, in order."""

    session: int
    volatile: VolatileClasses
    links: Links
    first: Call
    second: Call

    def differences(self) -> Iterator[Difference]:
        """Yield the differences; times are not compared."""
        yield from self._path()
        ours, theirs = (call.exchange.request for call in (self.first, self.second))
        yield from self._named_values("query", "query parameter", _by_name(ours.query), _by_name(theirs.query))
        if ours.headers != theirs.headers:
            headers = (self._read_headers(request.headers) for request in (ours, theirs))
            yield from self._named_values("header", "request header", *headers)
        yield from self._body("body", "request")
        yield from self._outcome()
        if self.first.exchange.response is not None and self.second.exchange.response is not None:
            yield from self._body("answer", "response")

    def _readers(self, part: str, name: str = "") -> ReadingRequirements:
        return readers_of(part, self.first.operation, name)

    def _changed(self, member: str, place: DifferingPlace, requirements: tuple[str, ...], note: str = "") -> Difference:
        first = SideValue(self.first.seq, place.first_pointer, place.first)
        second = SideValue(self.second.seq, place.second_pointer, place.second)
        return Difference(
            DifferenceKind.CHANGED, self.session, name_of(self.first), member, first, second, requirements, note
        )

    def _path(self) -> Iterator[Difference]:
        parts, others = self.first.path.split("/"), self.second.path.split("/")
        same = len(parts) == len(others)
        for part, other in zip(parts, others, strict=False):
            # No short circuit: each part has to be linked to its counterpart.
            same = self.links.same(part, other, strict=True) and same
        if not same or self.first.method != self.second.method:
            place = DifferingPlace("/request/path", "/request/path", self.first.path, self.second.path)
            yield self._changed("path", place, self._readers("path").requirements())

    def _read_headers(self, pairs: Sequence[Sequence[str]]) -> dict[str, tuple[int, str]]:
        headers = _by_name(pairs, lower=True)
        for name in [name for name in headers if self.volatile.header(name)]:
            del headers[name]
        if "authorization" in headers:
            # The scheme is the connector's choice, the token the installation's.
            place, value = headers["authorization"]
            headers["authorization"] = place, value.split(" ", 1)[0]
        return headers

    def _named_values(
        self, part: str, words: str, ours: Mapping[str, tuple[int, str]], theirs: Mapping[str, tuple[int, str]]
    ) -> Iterator[Difference]:
        folder = "/request/headers" if part == "header" else "/request/query"
        for name in dict.fromkeys((*ours, *theirs)):
            place, value = ours.get(name, (None, ABSENT))
            other_place, other = theirs.get(name, (None, ABSENT))
            readers = self._readers(part, name)
            if isinstance(value, str) and isinstance(other, str):
                if self.links.same(value, other, strict=VALUE in readers.by_mode):
                    continue
                requirements = readers.requirements(VALUE, *([TEXT] if blank(value) != blank(other) else []))
            else:
                requirements = readers.requirements()
            here, there = (f"{folder}/{at}/1" if at is not None else "" for at in (place, other_place))
            yield self._changed(f"{words} {name}", DifferingPlace(here, there, value, other), requirements)

    def _outcome(self) -> Iterator[Difference]:
        first, second = self.first, self.second
        statuses = first.status, second.status
        note = "one side was not answered" if None in statuses else ""
        yield from self._compare("status", "/response/status", *statuses, self._readers("status"), note)
        failed = self._readers("outcome", "error")
        yield from self._compare("error", "/error/kind", first.exchange.error, second.exchange.error, failed)
        yield from self._compare("fault", "/fault", _fault(first), _fault(second), self._readers("outcome", "fault"))

    def _compare(
        self, member: str, pointer: str, ours: Any, theirs: Any, readers: ReadingRequirements, note: str = ""
    ) -> Iterator[Difference]:
        if ours != theirs:
            yield self._changed(member, DifferingPlace(pointer, pointer, ours, theirs), readers.requirements(), note)

    def _body(self, part: str, side: str) -> Iterator[Difference]:
        body, other = body_of(self.first, side), body_of(self.second, side)
        if body is None and other is None:
            return
        ours, theirs = _object(body), _object(other)
        words = "request body" if part == "body" else "answer"
        if ours is not None and theirs is not None:
            pointers = (_folder(side, body), _folder(side, other))
            for name in dict.fromkeys((*ours, *theirs)):
                at = f"{pointers[0]}/{escape(name)}", f"{pointers[1]}/{escape(name)}"
                yield from self._member(part, words, name, ours.get(name, ABSENT), theirs.get(name, ABSENT), at)
            return
        value, counterpart = _body_value(body), _body_value(other)
        structure = Structure(self.volatile, self.links)
        if next(structure.places("", value, counterpart, ("", ""), strict=False), None) is not None:
            changed = json_type(value) != json_type(counterpart)
            changed = changed or (part == "body" and blank(value) != blank(counterpart))
            requirements = self._readers(part).requirements() if changed else ()
            place = DifferingPlace(f"/{side}/body", f"/{side}/body", value, counterpart)
            yield self._changed(words, place, requirements)

    def _member(
        self, part: str, words: str, name: str, value: Any, other: Any, at: tuple[str, str]
    ) -> Iterator[Difference]:
        readers = self._readers(part, name)
        whole = DifferingPlace(*at, value, other)
        if value is ABSENT or other is ABSENT:
            yield self._changed(f"{words} /{name}", whole, readers.requirements())
            return
        strict = VALUE in readers.by_mode or (part == "answer" and name in _NAMED_BY_ANSWER)
        structure = Structure(self.volatile, self.links)
        places = list(islice(structure.places(name, value, other, ("", ""), strict), MAX_PLACES + 1))
        if not places:
            return
        requirements = _readers_of_change(readers, value, other)
        if len(places) > MAX_PLACES:
            yield self._changed(f"{words} /{name}", whole, requirements, f"in more than {MAX_PLACES} places")
            return
        for place in places:
            pointers = at[0] + place.first_pointer, at[1] + place.second_pointer
            inner = DifferingPlace(*pointers, place.first, place.second)
            yield self._changed(f"{words} /{name}{place.first_pointer}", inner, requirements, _why(place))


def name_of(call: Call) -> str:
    """A call in words: method and path."""
    return f"{call.method} {call.path}"


def _why(place: DifferingPlace) -> str:
    """Why two equal values count as different; empty if they are not equal."""
    if isinstance(place.first, str) and isinstance(place.second, str) and place.first == place.second:
        return "before, this value corresponded to another value"
    return ""


def _readers_of_change(readers: ReadingRequirements, value: Any, other: Any) -> tuple[str, ...]:
    reshaped = json_type(value) != json_type(other) or blank(value) != blank(other)
    return readers.requirements(VALUE, *([TEXT] if reshaped else []))


def _by_name(pairs: Sequence[Sequence[str]], *, lower: bool = False) -> dict[str, tuple[int, str]]:
    by_name: dict[str, tuple[int, str]] = {}
    for index, (name, value) in enumerate(pairs):
        key = name.lower() if lower else name
        by_name[key] = (by_name[key][0], f"{by_name[key][1]}, {value}") if key in by_name else (index, value)
    return by_name


def _fault(call: Call) -> Mapping[str, Any] | None:
    fault = call.exchange.fault
    return None if fault is None else {name: value for name, value in fault.items() if not name.endswith("_s")}


def body_of(call: Call, side: str) -> Body | None:
    """The body of its request or response."""
    if side == "request":
        return call.exchange.request.body
    return call.exchange.response.body if call.exchange.response is not None else None


def _object(body: Body | None) -> Mapping[str, Any] | None:
    return _EMPTY if body is None else body.object


def _folder(side: str, body: Body | None) -> str:
    # An object that was recorded as text has no members in the line, only its text.
    return f"/{side}/body/json" if body is None or body.kind == "json" else f"/{side}/body/text"


def _body_value(body: Body | None) -> Any:
    return ABSENT if body is None else body.value


MAX_PLACES = 50
"""A member of a body with more differing places than this is listed once, as a whole."""


class DifferingPlace(Struct, frozen=True):
    """Pointer and value on both sides; ABSENT where one side has no value."""

    first_pointer: str
    second_pointer: str
    first: Any
    second: Any


def blank(value: Any) -> bool:
    """Whether a value is empty: absent, null, or a text of white space."""
    return value is ABSENT or value is None or (isinstance(value, str) and not value.strip())


def json_type(value: Any) -> str:
    """The JSON type of a value; "absent" for ABSENT."""
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

    def __init__(self, volatile: VolatileClasses, links: Links) -> None:
        self._volatile = volatile
        self._links = links

    def places(self, name: str, first: Any, second: Any, at: tuple[str, str], strict: bool) -> Iterator[DifferingPlace]:
        """Yield the places, below the pointers `at`, in which two values of member `name` differ."""
        kind = json_type(first)
        if kind != json_type(second):
            yield DifferingPlace(*at, first, second)
        elif kind == "object":
            yield from self._objects(first, second, at, strict)
        elif kind == "array":
            yield from self._arrays(name, first, second, at, strict)
        elif not self._same(name, first, second, strict):
            yield DifferingPlace(*at, first, second)

    def _same(self, name: str, first: Any, second: Any, strict: bool) -> bool:
        if isinstance(first, str):
            return self._links.same(first, second, strict=strict)
        if first == second:
            return True
        return json_type(first) == "number" and self._volatile.number(name, first, second)

    def _objects(
        self, first: Mapping[str, Any], second: Mapping[str, Any], at: tuple[str, str], strict: bool
    ) -> Iterator[DifferingPlace]:
        renamed = self._renamed(first, second, strict)
        for name, value in first.items():
            other = name if name in second else renamed.get(name)
            pointers = (f"{at[0]}/{escape(name)}", f"{at[1]}/{escape(other or name)}")
            if other is None:
                yield DifferingPlace(*pointers, value, ABSENT)
            else:
                yield from self.places(name, value, second[other], pointers, strict)
        matched = set(renamed.values())
        for name, value in second.items():
            if name not in first and name not in matched:
                yield DifferingPlace(f"{at[0]}/{escape(name)}", f"{at[1]}/{escape(name)}", ABSENT, value)

    def _renamed(self, first: Mapping[str, Any], second: Mapping[str, Any], strict: bool) -> dict[str, str]:
        """Match members whose names are volatile, such as memory ids in a map from id to score."""
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
    ) -> Iterator[DifferingPlace]:
        for index in range(max(len(first), len(second))):
            pointers = (f"{at[0]}/{index}", f"{at[1]}/{index}")
            if index >= len(second):
                yield DifferingPlace(*pointers, first[index], ABSENT)
            elif index >= len(first):
                yield DifferingPlace(*pointers, ABSENT, second[index])
            else:
                yield from self.places(name, first[index], second[index], pointers, strict)


VALUE, TEXT, ORDER, PRESENCE = "value", "text", "order", "presence"
EVERY = "*"


class ReadingRequirements(Struct, frozen=True):
    """The requirements that read one part, and how: its value, a text's shape, its order or its presence."""

    by_mode: Mapping[str, tuple[str, ...]]

    def requirements(self, *modes: str) -> tuple[str, ...]:
        """The ids that read it in one of these ways, in the catalogue's order; in any way when no mode is named."""
        return tuple(dict.fromkeys(name for mode in modes or self.by_mode for name in self.by_mode.get(mode, ())))


@cache
def readers_of(where: str, operation: str | None, name: str = "") -> ReadingRequirements:
    """The requirements that read part `where` (path, query, header, body, …), member `name`, of an operation."""
    by_mode: dict[str, list[str]] = {}
    for key in ((where, name, operation), (where, name, EVERY)):
        for mode, requirement in _index().get(key, ()):
            by_mode.setdefault(mode, []).append(requirement)
    return ReadingRequirements({mode: tuple(ids) for mode, ids in by_mode.items()})


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
