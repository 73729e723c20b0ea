"""The tables of patterns and words are as their schemas describe them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from signet_conformance.contract import document
from signet_recording_proxy.redaction import tables
from signet_recording_proxy.redaction.arguments import TABLE
from signet_recording_proxy.redaction.secret_patterns import BLOCKS, ISSUED, TEXT_PATTERNS

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


def test_expressions_of_tables_are_sound() -> None:
    """They are compiled when they are first needed: a mistake in one would be found by a line of a recording."""
    shapes = [shape.expression for shape in (*ISSUED, *TEXT_PATTERNS, *BLOCKS)]
    commands = [expression for row in TABLE for expression in (row.expression, row.preceded_by, row.at_stem)]
    assert all(expression.compiled.pattern for expression in (*shapes, *filter(None, commands)))


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        *((word, True) for word in ("key", "keys", "keybase", "p.w", "token", "clé")),
        *((other, False) for other in ("ke", "keyb", "keybases", "pxw", "tokens", "")),
    ],
)
def test_expression_is_for_these_words_alone(text: str, is_one: bool) -> None:
    expression = tables.any_of(["token", "keys", "key", "keybase", "p.w", "clé"])
    assert (re.fullmatch(expression, text) is not None) == is_one


def test_letters_of_an_expression_may_stand_apart() -> None:
    """What is given for between them may be between any two letters, and not around them."""
    expression = tables.any_of(["key", "keys", "pw"], "[_-]*")
    assert all(re.fullmatch(expression, text) for text in ("key", "k_e--y", "ke_ys", "key_s", "p-w"))
    assert not any(re.fullmatch(expression, text) for text in ("_key", "key_", "keys-", "k.ey"))
