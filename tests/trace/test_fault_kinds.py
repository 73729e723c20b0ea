"""The table of faults agrees with the trace's schema, and with what draws from it."""

from __future__ import annotations

from signet_conformance.contract import document
from signet_conformance.scenarios import strategies
from signet_conformance.trace.fault_kinds import FAULT_KINDS, RESTART, fault_page


def test_the_schema_of_the_trace_names_every_kind() -> None:
    """A trace may hold the recorder's kinds and the kit's restart, and no other."""
    schema = "trace/signet-trace-1.schema.json"
    exchange = document(schema)["$defs"]["exchange"]
    named = set(exchange["properties"]["fault"]["properties"]["kind"]["enum"])
    assert named == {*FAULT_KINDS, RESTART}, f"say it in schemas/{schema}"


def test_a_kind_knows_what_it_needs() -> None:
    """What must be given is among what may be given."""
    assert all(set(kind.needs) <= set(kind.parameters) for kind in FAULT_KINDS.values())


def test_statuses_are_drawn_as_often_as_the_kind() -> None:
    """The statuses of generated sessions share what the table gives to all of them."""
    assert sum(strategies._STATUSES.values()) == FAULT_KINDS["status"].share


def test_the_page_names_every_kind_with_its_parameters() -> None:
    """Who asks for the recorder's help sees all of them."""
    lines = fault_page().splitlines()
    for kind, line in zip(FAULT_KINDS.values(), lines, strict=True):
        assert kind.name in line
        assert all(parameter in line for parameter in kind.parameters)
