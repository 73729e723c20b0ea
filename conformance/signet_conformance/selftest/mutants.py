"""The changes of the self-test as data: mutants and bases of schemas/mutants.json, variants of schemas/variants.json.

A mutant breaks one requirement. A variant is odd and conforms. A base is a second conforming connector.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from types import MappingProxyType
from typing import Any

from msgspec import convert

from signet_conformance.contract import catalogue, document
from signet_conformance.errors import UsageError, printable

FILE = "schemas/mutants.json"
VARIANTS_FILE = "schemas/variants.json"
CONNECTOR, DAEMON, HARNESS = "connector", "daemon", "harness"
Change = Mapping[str, Any]
"""One change, as in schemas/mutants.schema.json; `do` is its kind."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A reference adapter or an embedded daemon with one change.

    `verdict` is the verdict of the requirement that it `breaks`. `also` maps the id of each other requirement that it
    breaks to the reason. `situation` is a change of the connector that makes the breach of a daemon show. `face` names
    the shipped face whose host is played around the connector; None if no host is played.
    """

    id: str
    title: str
    side: str
    breaks: str
    verdict: str
    scenario: str
    change: Change
    contract: str = "0.145"
    also: Mapping[str, str] = field(default_factory=dict)
    situation: Change = field(default_factory=dict)
    face: str | None = None

    @property
    def of_connector(self) -> Change:
        """The change of the connector in its trial."""
        return self.situation if self.side == DAEMON else self.change


@dataclass(frozen=True, slots=True)
class Base:
    """A conforming connector beside the reference: the reference harness, launched with other `arguments`.

    It performs every scripted scenario. A mutant of a connector is tried in it if it breaks a requirement, performs a
    scenario or changes an operation that `tries` names, by id or glob; `because` says why those. `leaves` maps the ids
    of mutants that make no sense in it to the reason.
    """

    id: str
    title: str
    arguments: tuple[str, ...]
    because: str
    tries: Mapping[str, tuple[str, ...]]
    leaves: Mapping[str, str] = field(default_factory=dict)

    def is_tried_with(self, mutant: Mutant) -> bool:
        """Return True if a mutant is tried in it."""
        if mutant.side != CONNECTOR or mutant.id in self.leaves:
            return False
        operations = names_in(mutant.change.get("on", []))
        given = {"requirements": [mutant.breaks], "scenarios": [mutant.scenario], "operations": operations}
        return any(
            fnmatchcase(name, pattern)
            for kind, names in given.items()
            for name in names
            for pattern in self.tries.get(kind, ())
        )


def names_in(value: str | list[str]) -> list[str]:
    """The names in a member of a change, which may be one or several."""
    return [value] if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Mutants:
    """The content of schemas/mutants.json, with the reasons why some requirements have no mutant.

    `exempt` maps requirement ids to the reason why no mutant can break them, from their entries. `tolerated` maps
    scenarios to the requirements that even the reference breaks in them, with the reason. `unreached` maps requirement
    ids to the reason why neither the reference nor a variant is judged by them.
    """

    mutants: Mapping[str, Mutant]
    bases: Mapping[str, Base]
    scenarios: tuple[Mapping[str, Any], ...]
    exempt: Mapping[str, str]
    tolerated: Mapping[str, Mapping[str, str]]
    unreached: Mapping[str, str]


@cache
def mutants() -> Mutants:
    """Return the mutants of the kit by id, in the order of the file."""
    data = document("mutants.json")
    return Mutants(
        {row["id"]: Mutant(**row) for row in data["mutants"]},
        {base.id: base for base in convert(data["bases"], tuple[Base, ...])},
        tuple(data["scenarios"]),
        {name: entry.no_mutant for name, entry in catalogue().items() if entry.no_mutant is not None},
        data["tolerated"],
        data["unreached"],
    )


def mutant(name: str) -> Mutant:
    """Return the mutant of an id. Raises UsageError for an unknown id."""
    # Each of hundreds of connector processes needs one mutant, and must not load the others or the catalogue.
    for row in document("mutants.json")["mutants"]:
        if row["id"] == name:
            return Mutant(**row)
    raise _unknown("mutant", name, FILE)


def _unknown(kind: str, name: str, file: str) -> UsageError:
    shown = printable(json.dumps(name), 80)
    return UsageError(f"there is no {kind} {shown}", where=f"--{kind}", remedy=f"see {file}")


@dataclass(frozen=True, slots=True)
class Variant:
    """A reference adapter or an embedded daemon that is odd and conforms.

    `because` says in a sentence why it conforms; `rows` are the requirements that must judge it. `allowed` maps the ids
    of requirements that may warn to the reason. Variants of one `group` change one connector together.
    """

    id: str
    title: str
    because: str
    rows: tuple[str, ...]
    scenario: str
    changes: tuple[Change, ...]
    side: str = CONNECTOR
    contract: str = "0.145"
    allowed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Variants:
    """The content of schemas/variants.json; `scenarios` are those of variants alone."""

    variants: Mapping[str, Variant]
    scenarios: tuple[Mapping[str, Any], ...]


@cache
def variants() -> Variants:
    """Return the variants of the kit by id, in the order of the file."""
    data = document("variants.json")
    rows = convert(data["variants"], tuple[Variant, ...])
    return Variants({variant.id: variant for variant in rows}, tuple(data["scenarios"]))


def variant(name: str) -> Variant:
    """Return the variant of an id. Raises UsageError for an unknown id."""
    known = variants().variants.get(name)
    if known is None:
        raise _unknown("variant", name, VARIANTS_FILE)
    return known


def grouped(wanted: Sequence[Variant]) -> Sequence[tuple[Variant, ...]]:
    """Group the variants that are performed together; one without a group is alone."""
    groups: dict[tuple[str, ...], list[Variant]] = {}
    for variant in wanted:
        name = (variant.group or variant.id, variant.scenario, variant.contract, variant.side)
        groups.setdefault(name, []).append(variant)
    return [tuple(group) for group in groups.values()]
