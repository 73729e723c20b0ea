"""The contract is data: requirements, schemas and frozen versions, read from the `schemas` folder.

A contract version is named by the daemon release that introduced it. The requirements in force for a trace follow from
its daemon's own version: a requirement whose `since` is later does not apply. The module `routes` reads the routes that
each version serves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import msgspec
from msgspec import UNSET, Struct, UnsetType

from signet_conformance.errors import ContractError, pip_install, printable


def _reinstall() -> str:
    return f"install the kit again: {pip_install()} --force-reinstall"


@cache
def schemas_folder() -> Path:
    """The folder of schemas: inside the installed package, or in the source tree of an editable install."""
    package = Path(__file__).parent.parent
    for folder in (package / "_schemas", package.parent.parent / "schemas"):
        if (folder / "operations.json").is_file():
            return folder
    raise ContractError("the schemas folder is missing", where=str(package), remedy=_reinstall())


@cache
def document(name: str) -> Any:
    """A JSON file of the schemas folder, by its relative name. Raises ContractError when it cannot be read.

    A file whose members are not those that the kit needs cannot be read either.
    """
    path = schemas_folder() / name
    try:
        value = json.loads(path.read_bytes())
        msgspec.convert(value, _SHAPES.get(name.partition("/")[0], Any))
    except (OSError, ValueError, msgspec.ValidationError) as failure:
        raise ContractError(f"cannot be read: {failure}", where=str(path), remedy=_reinstall()) from None
    return value


class _Row(TypedDict):
    method: str
    path: str
    operation: NotRequired[str | None]
    since: NotRequired[str]


class _Routes(TypedDict):
    routes: list[_Row]
    contract_set: list[str]


_Span = TypedDict("_Span", {"from": str, "reference": str})


class _Version(TypedDict):
    daemon_versions: _Span
    confidence: str
    operations: dict[str, dict[str, Any]]
    changes: list[dict[str, Any]]


class _Index(TypedDict):
    groups: dict[str, list[str]]
    operations: dict[str, dict[str, Any]]


_SHAPES: Mapping[str, object] = {"routes": _Routes, "versions": _Version, "operations.json": _Index}
"""The members that every command needs, of files and of folders of files; the schemas beside them say the rest."""


REFERENCE_DAEMON = "0.145.7"
"""The daemon version that is assumed for a trace without `daemon_version`."""

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


@cache
def request_members(version: str, operation: str) -> tuple[str, ...]:
    """The members that a request of an operation may have, by name; empty where the version lacks the operation."""
    files = version_document(version)["operations"].get(operation)
    return () if files is None else tuple(document(files["request"]["file"]).get("properties", ()))


def spelling(name: str) -> str:
    """Normalise the spelling of a member's name: `agent_id`, `agent-id` and `agentId` become one."""
    return name.replace("_", "").replace("-", "").lower()


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
_REMEDY = "fix the entry as schemas/requirements.schema.json describes it; of an installed kit, "


class OlderWording(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `must`, `should` and `expected` of a check for daemons older than `version`."""

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


class Breach(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind of breach: what a finding says of it. The places in its texts are filled by the rule that finds it.

    `received` is what was found instead of what was expected; without it, the member at `pointer`. `fold` is the code
    by which the finding is recognised from run to run; None for the name that the entry gives the breach.
    """

    verdict: Literal["FAIL", "WARN"]
    message: str
    pointer: str = ""
    expected: str = ""
    received: str | bool | UnsetType | None = UNSET
    fold: str | None = None


class Requirement(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One sentence of law. `since` is a daemon version, None for all; `title` is the sentence.

    `rests_on` names the operations whose answers its verdict is drawn from, none of them for the answers that a
    finding names itself; None when it rests on no answer. `settled_by` says what decides an INCONCLUSIVE.
    `unread` are the hooks that may excuse a breach if they were not recorded whole. `compares_steps` says that it
    compares a request with what earlier steps said, `broken_by_repeats` that a hook which is sent twice breaks it.
    `forbids_anywhere` says that a breach harms in whatever request it stands, as the leak of a secret does.
    `rule` is the module and function below `rules` that judges it, None where its `check` does. `breaches` are the
    kinds of breach that it finds.
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
    breaches: dict[str, Breach] = {}
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
    return tuple(sorted((read_area(file) for file in files), key=lambda area: area.place))


def read_area(file: Path) -> Area:
    """The requirements of one file. Raises ContractError naming the entry and the wrong member."""
    try:
        area = _DECODER.decode(file.read_bytes())
    except (OSError, msgspec.DecodeError) as failure:
        raise ContractError(_complaint(file, failure), where=str(file), remedy=_REMEDY + _reinstall()) from None
    ids = [requirement.id for requirement in area.requirements]
    for number, name in enumerate(ids):
        of_area = _ID.fullmatch(name)
        if of_area is None or of_area["area"] != file.stem:
            problem = f"{printable(name, 60)} does not belong in this file: its ids are SIG-{file.stem}-001 and so on"
        elif name in ids[:number]:
            problem = f"{name} is in it twice"
        else:
            continue
        raise ContractError(problem, where=str(file), remedy=_REMEDY + _reinstall())
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


@cache
def operation_groups() -> Mapping[str, Sequence[str]]:
    """Operations that requirements speak of together, by the name of the group."""
    groups: Mapping[str, Sequence[str]] = document("operations.json")["groups"]
    return groups
