"""How much of the contract a run exercised: operations, request fields, answer variants, requirements.

The scope is what the target declares, or the twelve rows of the integration surface for a target that
declares nothing. Fields and variants come from the operation schemas of the contract version.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import jsonschema_rs
from msgspec import Struct

from signet_conformance.contract import (
    REFERENCE_DAEMON,
    contract_version_of,
    document,
    request_members,
    requirements,
    version_document,
)
from signet_conformance.engine import JudgedTrace
from signet_conformance.errors import UsageError, printable
from signet_conformance.facts import Call
from signet_conformance.finding import TESTED
from signet_conformance.rules.fields import is_valid


class Dimension(Struct, frozen=True):
    """One dimension: what it could cover and what it did, both sorted."""

    name: str
    exercised: tuple[str, ...]
    missed: tuple[str, ...]

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self.exercised) + len(self.missed)


class Coverage(Struct, frozen=True):
    """The dimensions of one run. `percent` is over all their points together, 0 to 100."""

    parts: tuple[Dimension, ...]

    @property
    def percent(self) -> float:
        """Points exercised of all points; 100 of nothing is 0: a run without a scope covered nothing."""
        total = sum(part.total for part in self.parts)
        return 100.0 * sum(len(part.exercised) for part in self.parts) / total if total else 0.0

    @property
    def words(self) -> str:
        """All of it in one line."""
        parts = ", ".join(f"{len(part.exercised)} of {part.total} {part.name}" for part in self.parts)
        return f"{parts}; {self.percent:.0f} % of the contract"


@cache
def _variants(file: str) -> Mapping[str, Any]:
    """A validator for each named variant of an operation's answer."""
    schema = document(file)
    return {
        name: jsonschema_rs.validator_for(
            {
                "$schema": schema["$schema"],
                "$defs": schema["$defs"],
                "properties": {"body": {"$ref": f"#/$defs/{name}"}},
                "required": ["body"],
            }
        )
        for name in schema.get("$defs", {})
        if _is_variant(schema, name)
    }


def _is_variant(schema: Mapping[str, Any], name: str) -> bool:
    """Whether a definition is an answer of its own, and not a part that others refer to."""
    return json.dumps({"$ref": f"#/$defs/{name}"}) in json.dumps(schema.get("allOf", ()))


class Meter:
    """Collects what traces exercise, one at a time, so that none has to be kept.

    Without `contract`, the version of the first trace's daemon counts.
    """

    def __init__(self, contract: str | None = None) -> None:
        self._contract = contract
        self._declared: set[str] = set()
        self._operations: set[str] = set()
        self._fields: set[str] = set()
        self._variants: set[str] = set()
        self._decided: set[str] = set()

    def add(self, judged: JudgedTrace) -> None:
        """Take one judged trace into account."""
        self._contract = self._contract or contract_version_of(judged.daemon_version)
        files = version_document(self._contract)["operations"]
        self._declared.update(name for name in judged.trace.header.declared.capabilities or () if name in files)
        self._decided.update(name for name, judgement in judged.judgements.items() if judgement.verdict in TESTED)
        for call in judged.recording.calls:
            if call.operation is not None and call.operation in files:
                self._operations.add(call.operation)
                self._fields.update(f"{call.operation}.{name}" for name in (*call.body, *call.query))
                self._variants.update(f"{call.operation}.{name}" for name in _variants_seen(call, files))

    def coverage(self) -> Coverage:
        """Coverage of the traces so far, within what they declare or else the integration surface."""
        contract = self._contract or contract_version_of(REFERENCE_DAEMON)
        version = version_document(contract)
        files = version["operations"]
        rows = document("operations.json")["operations"]
        scope = self._declared or {name for name in files if rows.get(name, {}).get("row")}
        fields = {f"{name}.{field}" for name in scope for field in request_members(contract, name)}
        variants = {f"{name}.{variant}" for name in scope for variant in _variants(files[name]["response"]["file"])}
        return Coverage(
            (
                _part("operations", scope, self._operations),
                _part("fields", fields, self._fields),
                _part("answers", variants, self._variants),
                _part("requirements", set(version["requirements"]) & set(requirements()), self._decided),
            )
        )


def _part(name: str, possible: Iterable[str], seen: set[str]) -> Dimension:
    points = set(possible)
    return Dimension(name, tuple(sorted(points & seen)), tuple(sorted(points - seen)))


def _variants_seen(call: Call, files: Mapping[str, Any]) -> Iterable[str]:
    response = call.exchange.response
    if response is None or call.fault is not None:
        return ()
    body = response.body.value if response.body is not None and response.body.kind in ("json", "text") else None
    answer = {"status": response.status, "body": body}
    validators = _variants(files[str(call.operation)]["response"]["file"])
    error = response.status >= 400
    return [name for name, each in validators.items() if (name == "error") is error and is_valid(each, answer)]


def percentage(given: str, where: str) -> float:
    """A percentage from a command line, 0 to 100. Raises UsageError for anything else."""
    try:
        percent = float(given)
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise UsageError(f"{printable(given, 40)!r} is not a percentage", where=where, remedy=f"such as {where}=60")
    return percent
