"""The facts that pages repeat are those of the kit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from signet_conformance.contract import contract_versions, document, version_document
from signet_conformance.finding import FOLDING_ORDER
from signet_conformance.github_action.github import VERDICT_WORDS
from signet_conformance.github_action.inputs import FIELDS
from signet_conformance.rules import rule_for

ROOT = Path(__file__).parents[2]


def text(page: str) -> str:
    """A page."""
    return (ROOT / page).read_text("utf-8")


def rows(page: str) -> list[list[str]]:
    """The cells of a page's table rows, code spans bare."""
    lines = re.findall(r"^\| (.*) \|$", text(page), re.MULTILINE)
    return [[cell.strip().replace("`", "") for cell in line.split(" | ")] for line in lines]


def test_the_contract_versions_are_listed() -> None:
    """Each frozen version has its row: first daemon, reference daemon, confidence."""
    listed = {row[0]: row[1:] for row in rows("docs/contract-versions.md")}
    for version in contract_versions():
        frozen = version_document(version)
        daemons = frozen["daemon_versions"]
        assert listed[version][:2] == [daemons["from"], daemons["reference"]]
        assert listed[version][2].startswith(frozen["confidence"])


@pytest.mark.parametrize("page", ["docs/lane.md", "ci/action/README.md"])
def test_every_input_of_the_lane_is_told(page: str) -> None:
    """Both pages about the lane name each input, its default and each verdict."""
    told = text(page)
    for field in FIELDS:
        assert f"`{field.name}`" in told
        assert not field.default or f"`{field.default}`" in told
    for verdict in FOLDING_ORDER:
        assert f"`{verdict.value.lower()}`" in told


def test_every_exit_status_of_the_lane_is_told() -> None:
    """The page has status and word of each outcome."""
    listed = {row[0]: row[1] for row in rows("docs/lane.md") if row[0].isdigit()}
    assert listed == {str(status): word for status, word in VERDICT_WORDS.items()}


def test_the_trace_format_names_what_the_schema_names() -> None:
    """Every member of a header, a declaration and an exchange, and every kind of error, is told."""
    told = text("docs/trace-format.md")
    defs = document("trace/signet-trace-1.schema.json")["$defs"]
    members = {name for part in ("header", "declared", "exchange") for name in defs[part]["properties"]}
    kinds = defs["exchange"]["properties"]["error"]["properties"]["kind"]["enum"]
    assert [name for name in (*members, *kinds) if f"`{name}`" not in told] == []


def test_every_capability_has_its_place() -> None:
    """The page about connectors lists each operation of the contract, beside what its path begins with."""
    operations = document("operations.json")["operations"]
    listed = {row[0]: row[1].split(", ") for row in rows("docs/add-a-connector.md") if row[0].startswith("/api/")}
    listed["elsewhere"] = next(row[1].split(", ") for row in rows("docs/add-a-connector.md") if row[0] == "elsewhere")
    assert sorted(name for names in listed.values() for name in names) == sorted(operations)
    for place, names in listed.items():
        for name in names:
            begins = [each for each in listed if operations[name]["path"].startswith(each)]
            assert begins == ([] if place == "elsewhere" else [place])


def test_every_declaration_is_told() -> None:
    """The page about connectors has a row for each thing that a connector declares, and its choices."""
    told = {row[0]: row[1] for row in rows("docs/add-a-connector.md")}
    declared = document("target/signet-target-1.schema.json")["$defs"]["TargetDeclarations"]["properties"]
    assert [name for name in declared if name not in told] == []
    assert [choice for choice in declared["bypass"]["enum"] if choice not in told["bypass"]] == []


def test_the_decorator_of_own_rules_has_the_name_that_is_told() -> None:
    """The page about rules names it with its module."""
    assert f"`{rule_for.__module__}.{rule_for.__name__}`" in text("docs/add-a-rule.md")
