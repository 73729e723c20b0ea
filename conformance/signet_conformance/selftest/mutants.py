"""Mutants are data: schemas/mutants.json names what each breaks, in which scenario, and by which one change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
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
class Mutants:
    """The whole of schemas/mutants.json, with the reasons why some requirements have no mutant.

    `exempt` is requirement id to the reason why no mutant can break it, its entry's `no_mutant`; `tolerated` is
    scenario to the requirements that even the reference breaches there, with the reason; `unreached` is requirement
    id to the reason why neither the reference nor a variant is judged by it.
    """

    mutants: Mapping[str, Mutant]
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
