"""What requirements read: complete against the operations' schemas, the field checks and the catalogue."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from signet_conformance.contract import document, operation_groups, requirements
from signet_conformance.diff.exchanges import readers_of

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
EVERYWHERE = {
    "SIG-SEC-003": "a secret may stand anywhere: any text of a request",
    "SIG-SEC-004": "reads marks, as those below",
    "SIG-FAIL-004": "reads marks, which are the kit's and are not compared",
    "SIG-LOAD-004": "reads marks, as above",
}


def load(name: str) -> Any:
    """A document of the schemas folder."""
    return json.loads((SCHEMAS / name).read_text("utf-8"))


def members(schema: Any, defs: Mapping[str, Any]) -> Iterator[str]:
    """The members that a schema of an object names, in any branch of it."""
    if not isinstance(schema, dict):
        return
    yield from schema.get("properties", {})
    for word in ("anyOf", "allOf", "oneOf"):
        for branch in schema.get(word, ()):
            yield from members(branch, defs)
    for word in ("then", "if", "else"):
        yield from members(schema.get(word), defs)
    yield from members(defs.get(schema.get("$ref", "").rpartition("/")[2]), defs)


def bodies(schema: Any, defs: Mapping[str, Any]) -> Iterator[str]:
    """The members of the bodies that an answer's schema describes."""
    if not isinstance(schema, dict):
        return
    yield from members(schema.get("properties", {}).get("body"), defs)
    for word in ("anyOf", "allOf", "oneOf"):
        for branch in schema.get(word, ()):
            yield from bodies(branch, defs)
    for word in ("then", "if", "else"):
        yield from bodies(schema.get(word), defs)
    yield from bodies(defs.get(schema.get("$ref", "").rpartition("/")[2]), defs)


def test_every_named_member_is_read_or_listed_as_unread() -> None:
    """Each member that an operation's schemas name is read by a requirement or stands under its unread, never both."""
    for operation, row in document("operations.json")["operations"].items():
        request, response = load(row["request"]), load(row["response"])
        sides = {
            "request": (set(members(request, request.get("$defs", {}))), ("body", "query")),
            "answer": (set(bodies(response, response.get("$defs", {}))), ("answer",)),
        }
        for side, (named, parts) in sides.items():
            listed = set(row.get("unread", {}).get(side, ()))
            seen = {name for name in named if any(readers_of(part, operation, name).by_mode for part in parts)}
            assert listed == named - seen, (
                operation,
                side,
                "see unread in schemas/operations.json, and reads of the entries",
            )


def test_every_requirement_reads_something() -> None:
    """Each requirement on the connector says what it reads, but for those that read everything or marks."""
    silent = [name for name, entry in requirements().items() if not entry.reads]
    assert silent == list(EVERYWHERE), "say under reads of the entry in schemas/requirements what it reads"


def test_a_field_check_is_read_where_it_looks() -> None:
    """Each member that a requirement's field check names is read by that requirement, in each of its operations."""
    for name, entry in requirements().items():
        if (check := entry.check) is None:
            continue
        looked_at: set[str] = set()
        for part in (check.when, check.must, check.should):
            looked_at |= set(members(part, {}))
        for operation in entry.operations:
            for member in looked_at:
                readers = {
                    *readers_of("body", operation, member).requirements(),
                    *readers_of("query", operation, member).requirements(),
                }
                assert name in readers, (name, operation, member)


def test_operations_and_groups_exist() -> None:
    """Every operation that a requirement or a group names is one of the index."""
    known, groups = set(document("operations.json")["operations"]), operation_groups()
    for names in groups.values():
        assert set(names) <= known
    for entry in requirements().values():
        assert {*entry.operations, *(entry.rests_on or ())} <= known, entry.id
        for reading in entry.reads:
            for name in reading.operations:
                assert name == "*" or name in known or name.removeprefix("@") in groups, (entry.id, name)
