"""The contract is data: requirements, routes, schemas and frozen versions, read from the `schemas` folder.

A contract version is named by the daemon release that introduced it. The requirements in force for a
trace follow from its daemon's own version: a requirement whose `since` is later is gated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache
from math import inf
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from signet_conformance.errors import ContractError, printable

REINSTALL = "install the kit again: pip install --force-reinstall signet-conformance"


@cache
def schemas_folder() -> Path:
    """The folder of schemas: inside the installed package, or in the source tree of an editable install."""
    package = Path(__file__).parent.parent
    for folder in (package / "_schemas", package.parent.parent / "schemas"):
        if (folder / "operations.json").is_file():
            return folder
    raise ContractError("the schemas folder is missing", where=str(package), remedy=REINSTALL)


@cache
def document(name: str) -> Any:
    """A JSON file of the schemas folder, by its relative name. Raises ContractError when it cannot be read."""
    path = schemas_folder() / name
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as failure:
        raise ContractError(f"cannot be read: {failure}", where=str(path), remedy=REINSTALL) from None


REFERENCE_DAEMON = "0.145.7"
"""The daemon that a trace without `daemon_version` is taken to have met."""

_VERSION = re.compile(r"(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?")


@lru_cache(maxsize=1000)
def version_key(version: str) -> tuple[int, int, int]:
    """A daemon version as comparable numbers; `0.145` is 0.145.0. Raises ContractError for anything else."""
    match = _VERSION.match(version.strip().removeprefix("v"))
    if not match:
        raise ContractError(f"{printable(version, 40)!r} is not a daemon version", remedy="write it like 0.145.7")
    return int(match[1]), int(match[2] or 0), int(match[3] or 0)


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


def _first_daemon(version: str) -> str:
    return str(version_document(version)["daemon_versions"]["from"])


def reference_daemon(version: str) -> str:
    """The daemon version that a contract version is judged by."""
    return str(version_document(version)["daemon_versions"]["reference"])


@cache
def contract_version_of(daemon_version: str) -> str:
    """The contract version that a daemon serves: the newest one that is not newer than the daemon."""
    key = version_key(daemon_version)
    older = [version for version in contract_versions() if version_key(_first_daemon(version)) <= key]
    return older[-1] if older else contract_versions()[0]


MUST, SHOULD, MAY = "MUST", "SHOULD", "MAY"
Level = Literal["MUST", "SHOULD", "MAY"]
Scope = Literal["exchange", "session", "recording"]
"""How far a rule looks: at one exchange after the other, at one session after the other, or at the whole recording."""
Needs = Literal["trace", "process", "run"]
"""How much has to be seen: any trace, one from the start of the connector's process, or all traces of a run."""
Side = Literal["connector", "daemon", "harness"]
FORMAT = "signet-requirements/2"
_REMEDY = f"fix the entry as schemas/requirements.schema.json describes it; of an installed kit, {REINSTALL}"


class OlderWording(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What took the place of a check's `must`, `should` and `expected` for daemons older than `version`."""

    version: str
    expected: str
    must: dict[str, Any] | None = None
    should: dict[str, Any] | None = None


class Check(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A requirement on the fields of one request, as JSON Schema; only requests that meet `when` are subject to it.

    A breach of `must` fails, a breach of `should` warns. With `accepted_when_cut` a cut body that the
    daemon accepted passes, since the daemon refuses a breach.
    """

    expected: str
    when: dict[str, Any] | None = None
    must: dict[str, Any] | None = None
    should: dict[str, Any] | None = None
    accepted_when_cut: bool = False
    before: OlderWording | None = None

    def at(self, daemon_version: str) -> Check:
        """The check in force at a daemon version."""
        before = self.before
        if before is None or version_key(daemon_version) >= version_key(before.version):
            return self
        return msgspec.structs.replace(
            self, expected=before.expected, must=before.must, should=before.should, before=None
        )


class Reading(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Members that a requirement reads: `names` of a part of exchanges, in operations, groups (`@name`) or all (`*`).

    The parts and modes are those of `schemas/requirements.schema.json`.
    """

    part: str = msgspec.field(name="in")
    mode: str = msgspec.field(name="as")
    operations: tuple[str, ...]
    names: tuple[str, ...] = ("",)


def sentences(text: str) -> list[str]:
    """Split a text of a requirement into its sentences, each of which can be a line or an item of a list."""
    return re.split(r'(?<=\.) (?=[A-Z("])', text) if text else []


class UnreadHooks(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hooks that may keep a breach from being one, and where they stand among the exchanges that its finding names.

    Those of `later` stand after the last of these, as an end that may still come.
    """

    operations: frozenset[str] = frozenset()
    since_first: bool = False
    until_last: bool = False
    later: frozenset[str] = frozenset()


class Requirement(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One sentence of law. `since` is a daemon version, None for all; `title` is the sentence.

    `rests_on` names the operations whose answers its verdict is drawn from, none of them for the answers that a
    finding names itself; None when it rests on no answer. `settled_by` says what decides an INCONCLUSIVE.
    `unread` are the hooks that may excuse a breach if they were not recorded whole. `compares_steps` says that it
    compares a request with what earlier steps said, `broken_by_repeats` that a hook which is sent twice breaks it.
    `forbids_anywhere` says that a breach harms in whatever request it stands, as the leak of a secret does.
    `rule` is the module and function below `rules` that judges it, None where its `check` does.
    `no_mutant` is the reason why no mutant can break it. `area` and `side` are those of its file.
    """

    id: str
    level: Level
    title: str
    subject: str
    verdict: str
    operations: tuple[str, ...]
    since: str | None
    source: str
    why: str
    fix: str
    undecided: str | None
    area: str = ""
    side: Side = "connector"
    rule: str | None = None
    scope: Scope = "recording"
    needs: Needs = "trace"
    decides: Literal["trace", "marks"] = "trace"
    level_from: dict[str, Level] = {}
    since_note: str | None = None
    check: Check | None = None
    reads: tuple[Reading, ...] = ()
    rests_on: frozenset[str] | None = None
    settled_by: str | None = None
    unread: UnreadHooks | None = None
    compares_steps: bool = False
    broken_by_repeats: bool = False
    forbids_anywhere: bool = False
    no_mutant: str | None = None
    example: tuple[dict[str, Any], ...] = ()
    example_context: dict[str, Any] | None = None

    def level_at(self, daemon_version: str) -> str:
        """The level in force at a daemon version: a SHOULD may have become a MUST."""
        level: str = self.level
        for version, later in sorted(self.level_from.items(), key=lambda item: version_key(item[0])):
            if version_key(version) <= version_key(daemon_version):
                level = later
        return level


class Area(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of requirements: those whose ids share a middle part. `place` orders the areas, 1 first."""

    format: Literal["signet-requirements/2"]
    area: str
    heading: str
    place: int
    side: Side
    requirements: tuple[Requirement, ...]


_DECODER = msgspec.json.Decoder(Area)
_ID = re.compile(r"SIG-(?P<area>.+)-\d{3}")


@cache
def areas() -> tuple[Area, ...]:
    """The areas in their order. Raises ContractError naming the file, the entry and the wrong member."""
    files = sorted((schemas_folder() / "requirements").glob("*.json"))
    if not files:
        raise ContractError("holds no requirements", where=str(schemas_folder() / "requirements"), remedy=REINSTALL)
    return tuple(sorted((read_area(file) for file in files), key=lambda area: area.place))


def read_area(file: Path) -> Area:
    """The requirements of one file. Raises ContractError naming the entry and the wrong member."""
    try:
        area = _DECODER.decode(file.read_bytes())
    except (OSError, msgspec.DecodeError) as failure:
        raise ContractError(_complaint(file, failure), where=str(file), remedy=_REMEDY) from None
    ids = [requirement.id for requirement in area.requirements]
    for number, name in enumerate(ids):
        of_area = _ID.fullmatch(name)
        if of_area is None or of_area["area"] != file.stem:
            problem = f"{printable(name, 60)} does not belong in this file: its ids are SIG-{file.stem}-001 and so on"
        elif name in ids[:number]:
            problem = f"{name} is in it twice"
        else:
            continue
        raise ContractError(problem, where=str(file), remedy=_REMEDY)
    return area


def _complaint(file: Path, failure: Exception) -> str:
    """The problem, with the id of the entry that has it."""
    text = str(failure)
    entry = re.search(r"\$\.requirements\[(\d+)\]", text)
    if entry is None:
        return f"cannot be read: {text}"
    raw = msgspec.json.decode(file.read_bytes())["requirements"][int(entry[1])]
    name = raw.get("id") if isinstance(raw, dict) else None
    return f"{printable(name or f'entry {int(entry[1]) + 1}', 60)}: {printable(text, 300)}"


def _of(side: Side) -> Iterator[tuple[str, Requirement]]:
    for area in areas():
        if area.side == side:
            for requirement in area.requirements:
                yield requirement.id, msgspec.structs.replace(requirement, area=area.area, side=side)


@cache
def requirements() -> Mapping[str, Requirement]:
    """The requirements on the connector, by id: area by area, by number."""
    return dict(_of("connector"))


@cache
def daemon_requirements() -> Mapping[str, Requirement]:
    """The requirements on the daemon's answers, by id, in the same order."""
    return dict(_of("daemon"))


@cache
def harness_requirements() -> Mapping[str, Requirement]:
    """The requirements on the harness, judged by what reached its model, by id, in the same order."""
    return dict(_of("harness"))


@cache
def catalogue() -> Mapping[str, Requirement]:
    """The requirements of all sides, by id: the connector's, the daemon's, the harness's."""
    return {**requirements(), **daemon_requirements(), **harness_requirements()}


@cache
def catalogue_place(requirement: str) -> int:
    """Its number in the catalogue's order; the requirements that users added come last."""
    names = [*catalogue()]
    return names.index(requirement) if requirement in names else len(names)


@cache
def entries() -> Mapping[str, Mapping[str, Any]]:
    """The entries of :func:`catalogue` as the files hold them, each with its area."""
    documents = (document(f"requirements/{file.name}") for file in (schemas_folder() / "requirements").glob("*.json"))
    raw = {entry["id"]: {"area": area["area"], **entry} for area in documents for entry in area["requirements"]}
    return {name: raw[name] for name in catalogue()}


_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_RESERVED = frozenset(b";/?:@&=+$,#%")


def served_path(path: str) -> str:
    """A path as the daemon matches it: unescaped, except for reserved characters and bytes that are not UTF-8."""
    return _ESCAPES.sub(_unescaped, path) if "%" in path else path


def _unescaped(match: re.Match[str]) -> str:
    escapes = match[0]
    try:
        # A reserved character keeps its escape: it would change what the path is made of.
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
        self._known: dict[tuple[str, str], Route | None] = {}

    def find(self, method: str, path: str) -> Route | None:
        """The route that serves method and path, a literal one before a pattern; None when none does."""
        try:
            return self._known[method, path]
        except KeyError:
            route = self._find(method, served_path(path))
            if len(self._known) < 4096:
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

    def lacks(self, method: str, path: str) -> bool:
        """Whether the daemon surely does not serve method and path, though its table may be incomplete.

        That is what the reference version serves and this one does not, for each of those routes was asked for; a
        slash behind a route; and another method of a hook or a memory tool. All releases that could be run answer 404.
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

    Between two frozen versions nobody wrote down when each route came: such a daemon is given the routes
    of both, and its table counts as incomplete.
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


@cache
def operation_groups() -> Mapping[str, Sequence[str]]:
    """Operations that requirements speak of together, by the name of the group."""
    groups: Mapping[str, Sequence[str]] = document("operations.json")["groups"]
    return groups
