"""The requirement catalogue: complete, well-formed, and the same as the law it was taken from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from signet_conformance import contract
from signet_conformance.contract import catalogue as known, read_area
from signet_conformance.errors import ContractError
from tests.support.evidence import LAW

LATER = {"SIG-START-004": "exception B", "SIG-END-003": "transcript B"}
AREAS = {
    "HTTP": "transport", "HEALTH": "health", "START": "start", "PROMPT": "prompt", "END": "end", "CKPT": "checkpoint",
    "CMP": "compaction", "REC": "recall", "REM": "remember", "MEM": "memory", "SEC": "secrets", "AGENT": "identity",
    "SESS": "session", "FAIL": "robustness", "NOTE": "notifications", "COV": "coverage", "LOAD": "loading",
    "DAEMON": "daemon", "MODEL": "model",
}  # fmt: skip


@pytest.fixture(scope="module")
def areas(folder: Path) -> dict[str, dict[str, Any]]:
    """The files of requirements, by name, in the order of their areas."""
    files = {file.stem: json.loads(file.read_text("utf-8")) for file in (folder / "requirements").glob("*.json")}
    return dict(sorted(files.items(), key=lambda file: int(file[1]["place"])))


@pytest.fixture(scope="module")
def catalogue(areas: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The requirements on the connector, in their order."""
    return [entry for area in areas.values() if area["side"] == "connector" for entry in area["requirements"]]


@pytest.fixture(scope="module")
def law() -> dict[str, dict[str, str]]:
    """The rows of the law, by requirement id, in their order."""
    return {row["id"]: row for row in json.loads(LAW.read_text("utf-8"))}


def test_the_catalogue_satisfies_its_schema(schema: Any, areas: dict[str, dict[str, Any]]) -> None:
    """Every file of requirements is what the schema describes."""
    for name, area in areas.items():
        schema("requirements.schema.json").demand(area, f"requirements/{name}.json")


def test_a_file_is_named_like_the_ids_in_it(areas: dict[str, dict[str, Any]]) -> None:
    """The middle part of an id tells the area, and within an area the numbers rise."""
    assert {name: area["area"] for name, area in areas.items()} == AREAS
    assert [area["place"] for area in areas.values()] == list(range(1, len(areas) + 1))
    for name, area in areas.items():
        ids = [entry["id"] for entry in area["requirements"]]
        assert ids == sorted(set(ids))
        assert all(i.startswith(f"SIG-{name}-") for i in ids)


def test_the_kit_reads_what_the_files_say(areas: dict[str, dict[str, Any]]) -> None:
    """Sentence, area and side of each requirement are those of its entry and its file, in their order."""
    assert [(r.id, r.title, r.area, r.side) for r in known().values()] == [
        (entry["id"], entry["title"], area["area"], area["side"])
        for area in areas.values()
        for entry in area["requirements"]
    ]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"fixx": "x"}, "SIG-NOTE-001: Object contains unknown field `fixx`"),
        ({"why": None}, "SIG-NOTE-001: Expected `str`, got `null` - at `$.requirements[0].why`"),
        ({"level": "must"}, "SIG-NOTE-001: Invalid enum value 'must'"),
        ({"id": "SIG-HTTP-001"}, "SIG-HTTP-001 does not belong in this file: its ids are SIG-NOTE-001 and so on"),
        ({"check": {"must": {}}}, "SIG-NOTE-001: Object missing required field `expected`"),
    ],
)
def test_an_entry_that_is_off_is_named(folder: Path, tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    """The complaint about an entry names the file, the id, the member and what describes an entry."""
    area = json.loads((folder / "requirements" / "NOTE.json").read_text("utf-8"))
    area["requirements"][0] |= change
    file = tmp_path / "NOTE.json"
    file.write_text(json.dumps(area), "utf-8")
    with pytest.raises(ContractError) as raised:
        read_area(file)
    assert complaint in raised.value.message
    assert raised.value.where == str(file)
    assert "requirements.schema.json" in str(raised.value.remedy)


def test_an_id_that_stands_twice_and_a_torn_file_are_named(folder: Path, tmp_path: Path) -> None:
    """So are an id that two entries have, and a file that is not JSON."""
    area = json.loads((folder / "requirements" / "NOTE.json").read_text("utf-8"))
    file = tmp_path / "NOTE.json"
    file.write_text(json.dumps({**area, "requirements": area["requirements"] * 2}), "utf-8")
    with pytest.raises(ContractError, match="SIG-NOTE-001 is in it twice"):
        read_area(file)
    file.write_text("{", "utf-8")
    with pytest.raises(ContractError, match="cannot be read"):
        read_area(file)


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
    assert unserved == {"SIG-HTTP-003", "SIG-AGENT-007", "SIG-NOTE-001"}  # one is about it, two need a later daemon


def test_every_requirement_of_the_law_is_there_in_its_order(
    areas: dict[str, dict[str, Any]], catalogue: list[dict[str, Any]], law: dict[str, Any]
) -> None:
    """No id of the law is missing, none is added, and within an area the order is the law's."""
    assert len(law) >= 90
    order = list(areas)
    listed = [r["id"] for r in catalogue]
    stray = sorted(set(listed) ^ set(law))
    assert not stray, f"{stray[0]} stands in schemas/requirements or in tests/evidence/law.json, and not in the other"
    assert listed == sorted(law, key=lambda name: order.index(name.split("-")[1]))


def test_level_wording_and_since_are_those_of_the_law(catalogue: list[dict[str, Any]], law: dict[str, Any]) -> None:
    """Level, sentence and first version of each requirement agree with the law."""
    for requirement in (entry for entry in catalogue if entry["id"] in law):
        name = requirement["id"]
        level, since = law[name]["level"], law[name]["since"]
        assert requirement["title"] == law[name]["sentence"], name
        assert level.startswith(requirement["level"]), name
        assert ("level_from" in requirement) == (level != requirement["level"]), name
        if name in LATER:
            assert (since, requirement["since"], "since_note" in requirement) == (LATER[name], None, True), name
        else:
            assert requirement["since"] == ({"B": "0.123.15", "": None}.get(since, since)), name


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("operations.json", {}, "missing required field `groups`"),
        ("routes/0.145.json", [], "Expected `object`, got `array`"),
        ("routes/0.145.json", {"contract_set": [], "routes": [{"method": "GET"}]}, r"`path` - at `\$.routes\[0\]`"),
        ("versions/0.145.json", {"daemon_versions": {"reference": "0.145.7"}}, r"`from` - at `\$.daemon_versions`"),
    ],
)
def test_a_file_of_another_shape_is_named_with_the_place(
    name: str, value: object, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a broken installation, and no defect of the kit."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(value))
    monkeypatch.setattr(contract, "schemas_folder", lambda: tmp_path)
    with pytest.raises(ContractError, match=told) as raised:
        contract.document.__wrapped__(name)
    assert raised.value.where == str(file)
    assert "install the kit again" in str(raised.value.remedy)
