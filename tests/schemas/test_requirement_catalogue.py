"""The requirement catalogue: complete, well-formed, and the same as the law it was taken from."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.support.evidence import LAW

LATER = {"SIG-START-004": "exception B", "SIG-END-003": "transcript B"}
AREAS = {
    "HTTP": "transport", "HEALTH": "health", "START": "start", "PROMPT": "prompt", "END": "end", "CKPT": "checkpoint",
    "CMP": "compaction", "REC": "recall", "REM": "remember", "MEM": "memory", "SEC": "secrets", "AGENT": "identity",
    "SESS": "session", "FAIL": "robustness", "NOTE": "notifications", "COV": "coverage",
}  # fmt: skip


@pytest.fixture(scope="module")
def catalogue(load: Any) -> list[dict[str, Any]]:
    """The requirements, in their order."""
    return load("requirements.json")["requirements"]  # type: ignore[no-any-return]  # JSON


@pytest.fixture(scope="module")
def law() -> dict[str, dict[str, str]]:
    """The rows of the law, by requirement id, in their order."""
    return {row["id"]: row for row in json.loads(LAW.read_text("utf-8"))}


def test_the_catalogue_satisfies_its_schema(schema: Any, load: Any) -> None:
    """The catalogue is what its own schema describes."""
    schema("requirements.schema.json").demand(load("requirements.json"), "requirements.json")


def test_ids_are_unique_and_name_their_area(catalogue: list[dict[str, Any]]) -> None:
    """No id stands twice, and its middle part tells the area."""
    ids = [requirement["id"] for requirement in catalogue]
    assert len(ids) == len(set(ids))
    assert {r["id"]: r["area"] for r in catalogue} == {i: AREAS[i.split("-")[1]] for i in ids}


def test_operations_are_known(catalogue: list[dict[str, Any]], load: Any) -> None:
    """A requirement speaks only of operations that the index lists."""
    known = set(load("operations.json")["operations"])
    assert {o for r in catalogue for o in r["operations"]} <= known


def test_texts_for_readers_are_whole_sentences(catalogue: list[dict[str, Any]]) -> None:
    """Why and fix are written for people: they end like a sentence and hold no markup."""
    for requirement in catalogue:
        for member in ("why", "fix"):
            assert re.fullmatch(r"[^\x60]{20,}[.]", requirement[member]), (requirement["id"], member)


def test_examples_call_served_routes(catalogue: list[dict[str, Any]], find_operation: Any) -> None:
    """An example breaches its own requirement, not the route table by accident."""
    unserved = set()
    for requirement in catalogue:
        for step in requirement["example"]:
            if "request" in step:
                try:
                    find_operation(step["request"]["method"], step["request"]["path"])
                except KeyError:
                    unserved.add(requirement["id"])
    assert unserved == {"SIG-HTTP-003", "SIG-NOTE-001"}  # one is about it, one needs a later daemon


def test_every_requirement_of_the_law_is_there_in_its_order(
    catalogue: list[dict[str, Any]], law: dict[str, Any]
) -> None:
    """No id of the law is missing, none is added, and the order is the law's."""
    assert len(law) >= 84
    assert [r["id"] for r in catalogue] == list(law)


def test_level_wording_and_since_are_those_of_the_law(catalogue: list[dict[str, Any]], law: dict[str, Any]) -> None:
    """Level, sentence and first version of each requirement agree with the law."""
    for requirement in catalogue:
        name = requirement["id"]
        level, since = law[name]["level"], law[name]["since"]
        assert requirement["title"] == law[name]["sentence"], name
        assert level.startswith(requirement["level"]), name
        assert ("level_from" in requirement) == (level != requirement["level"]), name
        if name in LATER:
            assert (since, requirement["since"], "since_note" in requirement) == (LATER[name], None, True), name
        else:
            assert requirement["since"] == ({"B": "0.145", "": None}.get(since, since)), name
