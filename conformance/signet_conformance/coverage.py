"""How much of the contract a run exercised: operations, request fields, answer variants, requirements.

The scope is what the target declares, or the twelve rows of the integration surface for a target that
declares nothing. Fields and variants come from the operation schemas of the contract version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jsonschema_rs

from signet_conformance.contract import contract_version_of, document, requirements, version_document
from signet_conformance.engine import Judged
from signet_conformance.facts import Call, Recording
from signet_conformance.finding import Verdict

_DECIDED = frozenset({Verdict.PASS, Verdict.FAIL, Verdict.WARN})


@dataclass(frozen=True, slots=True)
class Part:
    """One dimension: what it could cover and what it did, both sorted."""

    name: str
    exercised: tuple[str, ...]
    missed: tuple[str, ...]

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self.exercised) + len(self.missed)


@dataclass(frozen=True, slots=True)
class Coverage:
    """The dimensions of one run. `percent` is over all their points together, 0 to 100."""

    parts: tuple[Part, ...]

    @property
    def percent(self) -> float:
        """Points exercised of all points; 100 of nothing is 0: a run without a scope covered nothing."""
        total = sum(part.total for part in self.parts)
        return 100.0 * sum(len(part.exercised) for part in self.parts) / total if total else 0.0


@cache
def _variants(file: str) -> Mapping[str, Any]:
    """A decider for each named variant of an operation's answer."""
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
    reference = {"$ref": f"#/$defs/{name}"}
    pending: list[Any] = list(schema.get("allOf", ()))
    while pending:
        node = pending.pop()
        if node == reference:
            return True
        if isinstance(node, dict):
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
    return False


def scope_of(judged: Sequence[Judged], version: str) -> tuple[str, ...]:
    """The operations a run is measured against, sorted."""
    known = version_document(version)["operations"]
    declared = {name for one in judged for name in one.trace.header.declared.capabilities or () if name in known}
    if declared:
        return tuple(sorted(declared))
    rows = document("operations.json")["operations"]
    return tuple(sorted(name for name in known if rows.get(name, {}).get("row")))


def coverage(judged: Sequence[Judged], contract: str | None = None) -> Coverage:
    """What the traces of a run exercised. Without `contract`, the version of the first trace's daemon holds."""
    version = contract or contract_version_of(judged[0].daemon_version if judged else "0.145")
    files = version_document(version)["operations"]
    scope = scope_of(judged, version)
    calls = [call for one in judged for call in Recording(one.trace).calls if call.operation in scope]
    fields: set[str] = set()
    variants: set[str] = set()
    for call in calls:
        fields.update(f"{call.operation}.{name}" for name in (*call.body, *call.query))
        variants.update(f"{call.operation}.{name}" for name in _variants_seen(call, files))
    all_fields = {
        f"{name}.{field}" for name in scope for field in document(files[name]["request"]["file"]).get("properties", {})
    }
    all_variants = {f"{name}.{variant}" for name in scope for variant in _variants(files[name]["response"]["file"])}
    decided = {name for one in judged for name, judgement in one.judgements.items() if judgement.verdict in _DECIDED}
    in_force = set(version_document(version)["requirements"]) & set(requirements())
    return Coverage(
        (
            _part("operations", scope, {str(call.operation) for call in calls}),
            _part("fields", all_fields, fields),
            _part("answers", all_variants, variants),
            _part("requirements", in_force, decided),
        )
    )


def _part(name: str, possible: Iterable[str], seen: set[str]) -> Part:
    points = set(possible)
    return Part(name, tuple(sorted(points & seen)), tuple(sorted(points - seen)))


def _variants_seen(call: Call, files: Mapping[str, Any]) -> Iterable[str]:
    response = call.exchange.response
    if response is None or call.fault is not None:
        return ()
    body = response.body.value if response.body is not None and response.body.kind in ("json", "text") else None
    answer = {"status": response.status, "body": body}
    deciders = _variants(files[str(call.operation)]["response"]["file"])
    error = response.status >= 400
    return [name for name, decider in deciders.items() if (name == "error") is error and decider.is_valid(answer)]


def coverage_lines(found: Coverage, *, missed: bool = False) -> list[str]:
    """The coverage for people: a line each dimension, the missed points below it when asked for."""
    lines = []
    for part in found.parts:
        lines.append(f"{part.name:<13}{len(part.exercised):>4} of {part.total}")
        if missed:
            lines += [f"    not seen: {point}" for point in part.missed]
    lines.append(f"{'contract':<13}{found.percent:>6.1f} %")
    return lines
