"""The index of operations and the schemas it names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
ALL = sorted(str(path.relative_to(SCHEMAS)) for path in SCHEMAS.rglob("*.schema.json"))
PARITY = (
    "session-start", "user-prompt-submit", "session-end", "pre-compaction", "compaction-complete", "memory-recall",
    "hooks-remember", "memory-get", "memory-modify", "memory-forget", "secrets-exec", "health",
)  # fmt: skip


def test_every_schema_is_valid_and_stands_alone(load: Any) -> None:
    """A schema satisfies the 2020-12 metaschema, says what it is, and refers to nothing outside its file."""
    ids = set()
    for name in ALL:
        document = load(name)
        Draft202012Validator.check_schema(document)
        assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema", name
        assert document["title"], name
        assert document["description"], name
        assert '"$ref": "http' not in json.dumps(document), name
        ids.add(document["$id"])
    assert len(ids) == len(ALL)


def test_ids_follow_from_file_names(load: Any) -> None:
    """The $id of an operation's schema is made of contract version, operation and side."""
    for name in ALL:
        if name.startswith("operations/"):
            operation, *version, file = name.removeprefix("operations/").split("/")
            side = file.removesuffix(".schema.json")
            identifier = load(name)["$id"].removeprefix("https://schemas.signet-conformance.invalid/").split("/")
            assert identifier[1:] == [operation, side], name
            assert identifier[0] == version[0] if version else identifier[0] in ("0.145", "0.205"), name


def test_the_index_satisfies_its_schema(schema: Any, load: Any) -> None:
    """The index of operations is what its own schema describes."""
    schema("operations.schema.json").demand(load("operations.json"), "operations.json")


def test_the_rows_of_full_parity_are_the_first_twelve(load: Any) -> None:
    """The twelve rows of the integration surface are numbered in its order, and only they are."""
    rows = {name: o["row"] for name, o in load("operations.json")["operations"].items() if o["row"] is not None}
    assert rows == {name: number for number, name in enumerate(PARITY, 1)}


def test_every_schema_file_is_named_by_the_index_or_a_version(load: Any) -> None:
    """No schema lies about that nothing refers to, and nothing refers to a missing file."""
    named = {o[side] for o in load("operations.json")["operations"].values() for side in ("request", "response")}
    for version in ("0.58", "0.109", "0.145", "0.205", "0.237"):
        named |= {side["file"] for o in load(f"versions/{version}.json")["operations"].values() for side in o.values()}
    assert {name for name in ALL if name.startswith("operations/")} == named


@pytest.mark.parametrize("side", ["request", "response"])
def test_unknown_fields_are_admitted(schema: Any, load: Any, folder: Path, side: str) -> None:
    """A field that the contract does not know never makes a message invalid: daemons and connectors grow."""
    tried = set()
    for name, operation in load("operations.json")["operations"].items():
        for path in (folder / "examples" / name / side).glob("valid-*.json"):
            document = json.loads(path.read_text("utf-8"))["document"]
            target = document if side == "request" else document["body"]
            if isinstance(target, dict):
                target["fieldOfALaterRelease"] = {"x": 1}
                schema(operation[side]).demand(document, str(path.name))
                tried.add(name)
    assert {"session-start", "user-prompt-submit", "memory-recall"} <= tried


@pytest.mark.parametrize(
    "name", ["session-start", "user-prompt-submit", "session-end", "pre-compaction", "compaction-complete"]
)
def test_optional_texts_of_a_hook_may_be_empty(schema: Any, name: str) -> None:
    """Command hooks send an empty string for what they do not know."""
    request = schema(f"operations/{name}/request.schema.json")
    document = {"harness": "claude-code", "userMessage": "hello", "summary": "s"}
    for field, rule in request.document["properties"].items():
        if field not in document and "string" in rule.get("type", ()) and field != "capturedAt":
            document[field] = ""
    request.demand(document, name)
