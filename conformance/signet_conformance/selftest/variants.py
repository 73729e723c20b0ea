"""Variants are data: schemas/variants.json holds odd but conforming connectors, and why each conforms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

from signet_conformance.contract import document
from signet_conformance.errors import UsageError, printable
from signet_conformance.selftest.mutants import CONNECTOR, Change

FILE = "schemas/variants.json"


@dataclass(frozen=True, slots=True)
class Variant:
    """A reference adapter or an embedded daemon that is odd and conforms.

    `because` says in a sentence why it conforms, and `rows` names the requirements which must have judged it.
    `allowed` is requirement id to the reason why it is in breach all the same: a WARN that the law asks for.
    Variants of one `group` change one connector together, for they do not touch each other.
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
    """The whole of schemas/variants.json; `scenarios` are those that only variants need."""

    variants: Mapping[str, Variant]
    scenarios: tuple[Mapping[str, Any], ...]


@cache
def variants() -> Variants:
    """The variants of the kit, by id, in their own order."""
    data = document("variants.json")
    rows = ({**row, "rows": tuple(row["rows"]), "changes": tuple(row["changes"])} for row in data["variants"])
    return Variants({row["id"]: Variant(**row) for row in rows}, tuple(data["scenarios"]))


def variant(name: str) -> Variant:
    """The variant of an id. Raises UsageError for an unknown id."""
    known = variants().variants.get(name)
    if known is None:
        unknown = printable(json.dumps(name), 80)
        raise UsageError(f"there is no variant {unknown}", where="--variant", remedy=f"see {FILE}")
    return known


def grouped(wanted: Sequence[Variant]) -> Sequence[tuple[Variant, ...]]:
    """The variants that are performed together, in their own order; one without a group stands alone."""
    groups: dict[tuple[str, ...], list[Variant]] = {}
    for variant in wanted:
        alone = variant.group is None
        name = (variant.id,) if alone else (str(variant.group), variant.scenario, variant.contract, variant.side)
        groups.setdefault(name, []).append(variant)
    return [tuple(group) for group in groups.values()]
