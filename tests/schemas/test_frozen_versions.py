"""The frozen contract versions: nothing in them changes without its hash."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from signet_conformance.contract import contract_version_of, requirements
from tests.support.evidence import LAW
from tests.support.tools import tool

VERSIONS = ("0.58", "0.109", "0.145", "0.205", "0.237")
FREEZE = Path(__file__).resolve().parents[2] / "ci" / "tools" / "freeze_schemas.py"


@pytest.fixture(scope="module")
def freeze() -> ModuleType:
    """The script that freezes versions, as a module."""
    return tool("freeze_schemas")


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    """A copy of the folder that a test may change."""
    return Path(shutil.copytree(folder, tmp_path / "schemas", ignore=shutil.ignore_patterns("examples")))


def key(version: str) -> tuple[int, ...]:
    """A version as numbers that compare."""
    return tuple(int(part) for part in (*version.split("."), "0")[:3])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_satisfies_the_schema(schema: Any, load: Any, version: str) -> None:
    """Every frozen version is what the schema of versions describes, and is named like its file."""
    frozen = load(f"versions/{version}.json")
    schema("versions.schema.json").demand(frozen, version)
    assert frozen["version"] == version


@pytest.mark.parametrize(
    ("daemon", "version"),
    [
        ("0.57.9", "0.58"),
        ("0.123.14", "0.109"),
        ("0.123.15", "0.145"),
        ("0.144.9", "0.145"),
        ("0.236.9", "0.205"),
        ("0.237.5", "0.237"),
    ],
)
def test_a_daemon_is_judged_by_the_newest_version_that_it_reached(daemon: str, version: str) -> None:
    assert contract_version_of(daemon) == version


def test_hashes_are_those_of_the_files(freeze: ModuleType) -> None:
    """No schema and no route table was edited without freezing it again."""
    assert freeze.main(["--check"]) == 0, "try: python ci/tools/freeze_schemas.py"


@pytest.mark.parametrize("version", VERSIONS)
def test_requirements_of_a_version_follow_from_its_daemon(load: Any, version: str) -> None:
    """In force is what began with the reference daemon or before; the rest of the catalogue is unscored."""
    frozen = load(f"versions/{version}.json")
    reference = key(frozen["daemon_versions"]["reference"])
    in_force = [r.id for r in requirements().values() if r.since is None or key(r.since) <= reference]
    assert frozen["requirements"] == in_force, "try: python ci/tools/freeze_schemas.py"
    assert frozen["unscored"] == [name for name in requirements() if name not in in_force]


@pytest.mark.parametrize("version", VERSIONS)
def test_operations_of_a_version_follow_from_the_index(load: Any, version: str) -> None:
    """A version has the operations that the index gives its reference daemon."""
    frozen = load(f"versions/{version}.json")
    reference = key(frozen["daemon_versions"]["reference"])
    index = load("operations.json")["operations"]
    living = [
        name
        for name, o in index.items()
        if (o["since"] is None or key(o["since"]) <= reference) and (o["until"] is None or key(o["until"]) > reference)
    ]
    assert list(frozen["operations"]) == living


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_added_fields_are_in_the_new_schemas_and_not_in_the_old(load: Any, version: str) -> None:
    """A field that a version's changes call added or removed is known on one side of the change only."""
    new = load(f"versions/{version}.json")
    old = load(f"versions/{new['changes_from']}.json")

    def fields(frozen: Any, operation: str, side: str) -> set[str]:
        document = load(frozen["operations"][operation][side]["file"])
        if side == "request":
            return set(document.get("properties", ()))
        variants = (variant for name, variant in document["$defs"].items() if name != "error")
        return {field for variant in variants for field in variant.get("properties", ())}

    for change in new["changes"]:
        operation = change["operation"]
        if change["change"] == "changed":
            continue
        with_it, without = (new, old) if change["change"] == "added" else (old, new)
        if change["field"] is None:
            assert operation in with_it["operations"]
            assert operation not in without["operations"]
        else:
            side, _, field = change["field"].partition(".")
            assert field in fields(with_it, operation, side), change
            assert field not in fields(without, operation, side), change


def test_a_silent_edit_is_found(freeze: ModuleType, copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One changed byte in a schema fails the check, which names the file and the command that freezes it."""
    schema = copied / "operations" / "session-end" / "request.schema.json"
    schema.write_bytes(schema.read_bytes() + b"\n")
    assert freeze.main(["--check"], copied) == 1
    printed = capsys.readouterr()
    assert "0.145.json: operations/session-end/request.schema.json differs" in printed.out
    assert "python ci/tools/freeze_schemas.py" in printed.err


def test_freezing_again_settles_an_edit(freeze: ModuleType, copied: Path) -> None:
    """After freezing, the check passes and only the hashes of the edited file have changed."""
    schema = copied / "routes" / "0.58.json"
    schema.write_bytes(schema.read_bytes() + b"\n")
    before = json.loads((copied / "versions" / "0.58.json").read_text("utf-8"))
    assert freeze.main([], copied) == 0
    assert freeze.main(["--check"], copied) == 0
    after = json.loads((copied / "versions" / "0.58.json").read_text("utf-8"))
    assert {member for member in after if after[member] != before[member]} == {"routes_sha256"}


def test_a_requirement_that_no_version_names_is_found(
    freeze: ModuleType, copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An entry that was added fails the check by name, and freezing puts it into versions and law."""
    file = copied / "requirements" / "NOTE.json"
    area = json.loads(file.read_text("utf-8"))
    area["requirements"].append({**area["requirements"][0], "id": "SIG-NOTE-002", "since": "0.123.15"})
    file.write_text(json.dumps(area), "utf-8")
    law = copied.parent / "tests" / "evidence" / "law.json"
    law.parent.mkdir(parents=True)
    law.write_bytes(LAW.read_bytes())
    assert freeze.main(["--check"], copied) == 1
    printed = capsys.readouterr()
    assert "law.json: SIG-NOTE-002 has no row" in printed.out
    assert "0.145.json: requirements differs from what schemas/requirements says: SIG-NOTE-002" in printed.out
    assert "0.58.json: unscored differs from what schemas/requirements says: SIG-NOTE-002" in printed.out
    assert freeze.main([], copied) == 0
    assert freeze.main(["--check"], copied) == 0
    frozen = json.loads((copied / "versions" / "0.145.json").read_text("utf-8"))
    assert "SIG-NOTE-002" in frozen["requirements"]
    assert "SIG-NOTE-001" in frozen["unscored"]
    ids, known = ([row["id"] for row in json.loads(path.read_text("utf-8"))] for path in (law, LAW))
    assert ids == [each for name in known for each in ([name, "SIG-NOTE-002"] if name == "SIG-NOTE-001" else [name])]


def test_a_missing_file_is_named(freeze: ModuleType, copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A version that names a file which is gone says so in one line, without a traceback."""
    (copied / "routes" / "0.58.json").unlink()
    assert freeze.main(["--check"], copied) == 2
    assert "0.58.json is missing" in capsys.readouterr().err
