"""The routes of the contract: which operation a method and path are, and whether a daemon serves them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache
from math import inf

from msgspec import Struct

from signet_conformance.contract import contract_version_of, contract_versions, document, reference_daemon, version_key

_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_RESERVED = frozenset(b";/?:@&=+$,#%")


def served_path(path: str) -> str:
    """A path as the daemon matches it: unescaped, except for reserved characters and bytes that are not UTF-8."""
    return _ESCAPES.sub(_unescaped, path) if "%" in path else path


def _unescaped(match: re.Match[str]) -> str:
    escapes = match[0]
    try:
        # A reserved character keeps its escape: unescaped, it would change the structure of the path.
        return "".join(
            f"%{ord(character):02X}" if ord(character) in _RESERVED else character
            for character in bytes.fromhex(escapes.replace("%", "")).decode()
        )
    except UnicodeDecodeError:
        return escapes


class Route(Struct, frozen=True):
    """One served route. `path` has `:name` for one segment; `method` may be `*`.

    `since` is the first daemon of its contract that is known to serve it; None: all of them do.
    """

    method: str
    path: str
    operation: str | None
    since: str | None = None


class RouteTable:
    """Which operation a method and path are, and whether the daemon serves them at all."""

    def __init__(self, routes: tuple[Route, ...], *, complete: bool = True) -> None:
        self.complete = complete
        self._literal: dict[tuple[str, str], Route] = {}
        self._patterns: dict[int, list[tuple[str, tuple[str, ...], Route]]] = {}
        for route in routes:
            if ":" in route.path:
                parts = tuple(route.path.split("/"))
                self._patterns.setdefault(len(parts), []).append((route.method, parts, route))
            else:
                self._literal[route.method, route.path] = route
        self.operations = frozenset(route.operation for route in routes if route.operation is not None)
        self._routes = routes
        self._known = lru_cache(maxsize=4096)(self._find)

    def find(self, method: str, path: str) -> Route | None:
        """The route that serves method and path, a literal one before a pattern; None when none does."""
        return self._known(method, path)

    def _find(self, method: str, path: str) -> Route | None:
        path = served_path(path)
        # A real daemon answers HEAD wherever it serves GET, and a CORS preflight wherever it serves anything.
        methods = {"HEAD": ("HEAD", "GET", "*"), "OPTIONS": ("OPTIONS", "POST", "GET", "PATCH", "DELETE", "PUT", "*")}
        wanted = methods.get(method, (method, "*"))
        for candidate in wanted:
            if (route := self._literal.get((candidate, path))) is not None:
                return route
        segments = path.split("/")
        for served, parts, route in self._patterns.get(len(segments), ()):
            if served in wanted and all(
                part == segment or (part.startswith(":") and segment)
                for part, segment in zip(parts, segments, strict=True)
            ):
                return route
        return None

    def lacks(self, method: str, path: str) -> bool:
        """Whether the daemon certainly does not serve method and path, even if its table is incomplete.

        This holds for routes that only the reference version serves, since each of them was probed; for a slash after a
        route; and for other methods of hooks and memory tools. All releases that could be run answer 404 to them.
        """
        if self.find(method, path) is not None:
            return False
        if self.complete or route_table().find(method, path) is not None:
            return True
        path = served_path(path)
        bare = path.rstrip("/")
        if bare != path:
            return self.find(method, bare) is not None
        return path.startswith(_POSTED) and ("POST", path) in self._literal

    def nearest(self, method: str, path: str) -> Route | None:
        """The route that a misspelt method or path probably means; None when no route is close."""
        segments = path.strip("/").split("/")
        distances = ((_distance(route, method, segments), route) for route in self._routes)
        distance, nearest = min(distances, key=lambda pair: pair[0], default=(inf, None))
        return nearest if distance <= _FARTHEST else None


_POSTED = ("/api/hooks/", "/api/memory/")
_OTHER_METHOD, _PARAMETER, _MISSPELT, _FARTHEST = 0.5, 0.3, 0.3, 0.6
"""Distances: of another method, of a parameter, the most of a misspelt segment, the most of a whole route."""


def _distance(route: Route, method: str, segments: Sequence[str]) -> float:
    parts = route.path.strip("/").split("/")
    if len(parts) != len(segments):
        return inf
    distance = 0.0 if route.method in (method, "*") else _OTHER_METHOD
    for part, segment in zip(parts, segments, strict=True):
        if part.startswith(":"):
            distance += _PARAMETER
        elif part != segment:
            misspelt = 1 - SequenceMatcher(None, part, segment).ratio()
            distance += misspelt if misspelt <= _MISSPELT else inf
        if distance > _FARTHEST:
            return inf
    return distance


@cache
def route_table(version: str = "0.145") -> RouteTable:
    """The routes that the daemons of a contract version serve."""
    return _merge(version)


@cache
def operation_table() -> RouteTable:
    """Every operation of any version: what a request is does not depend on whether a daemon serves it."""
    return _merge(*contract_versions(), complete=False)


@cache
def routes_of(daemon_version: str) -> RouteTable:
    """The routes that a daemon may serve.

    Between two frozen versions it is not known when each route was added: such a daemon gets the routes of both, and
    its table counts as incomplete.
    """
    versions = contract_versions()
    version = contract_version_of(daemon_version)
    place = versions.index(version)
    newer = version_key(daemon_version)[:2] > version_key(reference_daemon(version))[:2]
    if newer and place + 1 < len(versions):
        return _merge(version, versions[place + 1])
    return route_table(version) if not newer else _merge(version, complete=False)


def _merge(*versions: str, complete: bool | None = None) -> RouteTable:
    documents = [document(f"routes/{version}.json") for version in versions]
    rows = [
        Route(row["method"], row["path"], row.get("operation"), row.get("since"))
        for each in documents
        for row in each["routes"]
    ]
    if complete is None:
        complete = len(documents) == 1 and documents[0].get("complete") is True
    return RouteTable(tuple(rows), complete=complete)


@cache
def contract_set(version: str) -> tuple[str, ...]:
    """The path patterns that make up the contract; `/**` at the end means 'and below'."""
    return tuple(document(f"routes/{version}.json")["contract_set"])
