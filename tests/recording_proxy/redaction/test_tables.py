"""The tables of patterns and words are as their schemas describe them."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from signet_conformance.contract import document
from signet_recording_proxy.redaction import tables

FOLDER = Path(tables.__file__).parent
TABLES = (
    *("arguments.json", "no_secrets.json", "secret_kinds.json", "secret_names.json"),
    *("statements.json", "text_patterns.json"),
)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_satisfies_its_schema(name: str) -> None:
    schema = document(f"redaction/{name.replace('_', '-').removesuffix('.json')}.schema.json")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads((FOLDER / name).read_bytes()))
