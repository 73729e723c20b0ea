"""Mutants are data: schemas/mutants.json names what each breaks, in which scenario, and by which one change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from types import MappingProxyType
from typing import Any

from signet_conformance.contract import catalogue, document
from signet_conformance.errors import UsageError, printable

FILE = "schemas/mutants.json"
CONNECTOR, DAEMON, HARNESS = "connector", "daemon", "harness"
Change = Mapping[str, Any]
"""One change, as schemas/mutants.schema.json describes it; `do` says which kind."""
NOTHING: Change = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Mutant:
    """A reference adapter or an embedded daemon with one change.

    `verdict` is what the requirement it breaks must say. `also` names the requirements that necessarily break with
    it, each with the reason. `situation` is a change of the connector that brings a broken daemon into the
    situation where its breach shows.
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

    @property
    def of_connector(self) -> Change:
        """The change that the connector is launched with."""
        return self.situation if self.side == DAEMON else self.change


@dataclass(frozen=True, slots=True)
class Base:
    """A conforming connector beside the reference: the reference harness, launched with other `arguments`.

    It performs every scripted scenario. Tried in it are the mutants of connectors that break a requirement of `tries`,
    perform a scenario of it or change an operation of it, each an id or a glob; `because` says why those. `leaves` is
    mutant id to the reason why that one makes no sense in it.
    """

    id: str
    title: str
    arguments: tuple[str, ...]
    because: str
    tries: Mapping[str, tuple[str, ...]]
    leaves: Mapping[str, str] = field(default_factory=dict)

    def is_tried_with(self, mutant: Mutant) -> bool:
        """Whether a mutant makes sense in it."""
        if mutant.side != CONNECTOR or mutant.id in self.leaves:
            return False
        given = {"requirements": [mutant.breaks], "scenarios": [mutant.scenario], "operations": _operations(mutant)}
        return any(
            fnmatchcase(name, pattern)
            for kind, names in given.items()
            for name in names
            for pattern in self.tries.get(kind, ())
        )


def _operations(mutant: Mutant) -> Sequence[str]:
    on = mutant.change.get("on", ())
    return [on] if isinstance(on, str) else on


@dataclass(frozen=True, slots=True)
class Mutants:
    """The whole of schemas/mutants.json, with the reasons why some requirements have no mutant.

    `exempt` is requirement id to the reason why no mutant can break it, its entry's `no_mutant`; `tolerated` is
    scenario to the requirements that even the reference breaches there, with the reason; `unreached` is requirement
    id to the reason why neither the reference nor a variant is judged by it.
    """

    mutants: Mapping[str, Mutant]
    bases: Mapping[str, Base]
    scenarios: tuple[Mapping[str, Any], ...]
    exempt: Mapping[str, str]
    tolerated: Mapping[str, Mapping[str, str]]
    unreached: Mapping[str, str]


@cache
def mutants() -> Mutants:
    """The mutants of the kit, by id, in their own order."""
    data = document("mutants.json")
    return Mutants(
        {row["id"]: Mutant(**row) for row in data["mutants"]},
        {row["id"]: Base(**{**row, "arguments": tuple(row["arguments"])}) for row in data["bases"]},
        tuple(data["scenarios"]),
        {name: entry.no_mutant for name, entry in catalogue().items() if entry.no_mutant is not None},
        data["tolerated"],
        data["unreached"],
    )


def mutant(name: str) -> Mutant:
    """The mutant of an id. Raises UsageError for an unknown id."""
    mutant = mutants().mutants.get(name)
    if mutant is None:
        raise UsageError(
            f"there is no mutant {printable(json.dumps(name), 80)}", where="--mutant", remedy="see schemas/mutants.json"
        )
    return mutant
