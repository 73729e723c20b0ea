"""The contract is data: requirements, routes, schemas and frozen versions, read from the `schemas` folder.

A contract version is named by the daemon release that introduced it. The requirements in force for a
trace follow from its daemon's own version: a requirement whose `since` is later is gated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from signet_conformance.errors import ContractError, printable

REFERENCE_DAEMON = "0.145.7"
"""The daemon that a trace without `daemon_version` is taken to have met."""

MUST, SHOULD, MAY = "MUST", "SHOULD", "MAY"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One sentence of law. `since` is a daemon version, None for all; `title` is the sentence."""

    id: str
    level: str
    area: str
    title: str
    subject: str
    verdict: str
    operations: tuple[str, ...]
    since: str | None
    source: str
    why: str
    fix: str
    example: tuple[Mapping[str, Any], ...]
    undecided: str | None
    level_from: Mapping[str, str]

    def level_at(self, daemon_version: str) -> str:
        """The level in force at a daemon version: a SHOULD may have become a MUST."""
        level = self.level
        for version, later in sorted(self.level_from.items(), key=lambda item: version_key(item[0])):
            if version_key(version) <= version_key(daemon_version):
                level = later
        return level


@dataclass(frozen=True, slots=True)
class Check:
    """A requirement on the fields of one message, as JSON Schema: subjects by operation and `when`.

    A breach of `must` fails, a breach of `should` warns. With `accepted_when_cut` a cut body that the
    daemon accepted passes, since the daemon refuses a breach.
    """

    operations: tuple[str, ...]
    when: Mapping[str, Any] | None
    must: Mapping[str, Any] | None
    should: Mapping[str, Any] | None
    accepted_when_cut: bool
    expected: str
    before: tuple[str, Check] | None = None

    def at(self, daemon_version: str) -> Check:
        """The check in force at a daemon version."""
        if self.before is not None and version_key(daemon_version) < version_key(self.before[0]):
            return self.before[1]
        return self


@dataclass(frozen=True, slots=True)
class Route:
    """One served route. `path` has `:name` for one segment; `method` may be `*`."""

    method: str
    path: str
    operation: str | None


_VERSION = re.compile(r"(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?")


def version_key(version: str) -> tuple[int, int, int]:
    """A daemon version as comparable numbers; `0.145` is 0.145.0. Raises ContractError for no version."""
    match = _VERSION.match(version.strip().removeprefix("v"))
    if not match:
        raise ContractError(f"{printable(version, 40)!r} is no daemon version", remedy="write it like 0.145.7")
    return int(match[1]), int(match[2] or 0), int(match[3] or 0)


@cache
def schemas_folder() -> Path:
    """The folder of schemas: inside the installed package, or in the source tree of an editable install."""
    package = Path(__file__).parent
    for folder in (package / "_schemas", package.parent.parent / "schemas"):
        if (folder / "requirements.json").is_file():
            return folder
    raise ContractError(
        "the schemas folder is missing",
        where=str(package),
        remedy="install the kit again: pip install --force-reinstall signet-conformance",
    )


@cache
def document(name: str) -> Any:
    """A JSON file of the schemas folder, by its relative name. Raises ContractError when it cannot be read."""
    path = schemas_folder() / name
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as failure:
        raise ContractError(
            f"cannot be read: {failure}",
            where=str(path),
            remedy="install the kit again: pip install --force-reinstall signet-conformance",
        ) from None


@cache
def requirements() -> Mapping[str, Requirement]:
    """The catalogue, by id, in its own order."""
    return {
        row["id"]: Requirement(
            id=row["id"],
            level=row["level"],
            area=row["area"],
            title=row["title"],
            subject=row["subject"],
            verdict=row["verdict"],
            operations=tuple(row["operations"]),
            since=row["since"],
            source=row["source"],
            why=row["why"],
            fix=row["fix"],
            example=tuple(row["example"]),
            undecided=row.get("undecided"),
            level_from=row.get("level_from", {}),
        )
        for row in document("requirements.json")["requirements"]
    }


@cache
def checks() -> Mapping[str, Check]:
    """The field checks, by requirement id."""
    return {name: _check(row) for name, row in document("checks.json")["checks"].items()}


def _check(row: Mapping[str, Any]) -> Check:
    before = row.get("before")
    earlier = None
    if before is not None:
        shared = {name: row[name] for name in ("operations", "when", "accepted_when_cut") if name in row}
        earlier = (before["version"], _check({**shared, **before, "before": None}))
    return Check(
        operations=tuple(row["operations"]),
        when=row.get("when"),
        must=row.get("must"),
        should=row.get("should"),
        accepted_when_cut=row.get("accepted_when_cut", False),
        expected=row["expected"],
        before=earlier,
    )


@cache
def contract_versions() -> tuple[str, ...]:
    """The frozen contract versions, oldest first."""
    return tuple(sorted((path.stem for path in (schemas_folder() / "versions").glob("*.json")), key=version_key))


def version_document(version: str) -> Any:
    """The frozen set of a contract version. Raises ContractError naming the known ones."""
    if version not in contract_versions():
        raise ContractError(
            f"no contract version is called {printable(version, 40)!r}",
            where="--contract",
            remedy=f"one of {', '.join(contract_versions())}",
        )
    return document(f"versions/{version}.json")


def reference_daemon(version: str) -> str:
    """The daemon version that a contract version is judged by."""
    return str(version_document(version)["daemon_versions"]["reference"])


@cache
def contract_version_of(daemon_version: str) -> str:
    """The contract version that a daemon serves: the newest one that is not newer than the daemon."""
    key = version_key(daemon_version)
    older = [v for v in contract_versions() if version_key(v) <= key]
    return older[-1] if older else contract_versions()[0]


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
        self._known: dict[tuple[str, str], Route | None] = {}

    def find(self, method: str, path: str) -> Route | None:
        """The route that serves method and path, a literal one before a pattern; None when none does."""
        try:
            return self._known[method, path]
        except KeyError:
            route = self._find(method, path)
            if len(self._known) < 50_000:
                self._known[method, path] = route
            return route

    def _find(self, method: str, path: str) -> Route | None:
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


@cache
def route_table(version: str = "0.145") -> RouteTable:
    """The routes that the daemons of a contract version serve."""
    return _merged(version)


@cache
def operation_table() -> RouteTable:
    """Every operation of any version: what a request is does not depend on whether a daemon serves it."""
    return _merged(*contract_versions(), complete=False)


@cache
def routes_of(daemon_version: str) -> RouteTable:
    """The routes that a daemon may serve.

    Between two frozen versions nobody wrote down when each route came: such a daemon is given the routes
    of both, and its table counts as incomplete.
    """
    versions = contract_versions()
    version = contract_version_of(daemon_version)
    place = versions.index(version)
    newer = version_key(daemon_version)[:2] > version_key(reference_daemon(version))[:2]
    if newer and place + 1 < len(versions):
        return _merged(version, versions[place + 1])
    return route_table(version) if not newer else _merged(version, complete=False)


def _merged(*versions: str, complete: bool | None = None) -> RouteTable:
    documents = [document(f"routes/{version}.json") for version in versions]
    rows = [Route(row["method"], row["path"], row.get("operation")) for d in documents for row in d["routes"]]
    if complete is None:
        complete = len(documents) == 1 and documents[0].get("complete") is True
    return RouteTable(tuple(rows), complete=complete)


@cache
def contract_set(version: str = "0.145") -> tuple[str, ...]:
    """The path patterns that make up the contract; `/**` at the end means 'and below'."""
    return tuple(document(f"routes/{version}.json")["contract_set"])
