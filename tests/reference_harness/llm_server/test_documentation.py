"""The page on scripted models: its scripts are valid, and it names every member of a script."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from signet_reference_harness.documents import parse_document
from signet_reference_harness.llm_server import ROUTES
from signet_reference_harness.llm_server.script import (
    Condition,
    ErrorAnswer,
    Script,
    ScriptedFault,
    ScriptedTurn,
    ScriptedUsage,
)

PAGE = Path(__file__).resolve().parents[3] / "docs" / "harness" / "scripted-models.md"
TEXT = PAGE.read_text("utf-8")


@pytest.mark.parametrize("block", re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL))
def test_a_script_of_the_page_is_read(block: str) -> None:
    """Each JSON block is a whole script."""
    script = parse_document(Script, block.encode(), PAGE.name)
    assert script.turns


@pytest.mark.parametrize("model", [Script, ScriptedTurn, ScriptedUsage, ErrorAnswer, ScriptedFault, Condition])
def test_the_page_names_every_member(model: type[Script]) -> None:
    """No member is documented only in the schema."""
    lacking = [name for name in model.model_fields if not re.search(rf"[`\"]{name}\b", TEXT)]
    assert lacking == []


def test_the_page_names_every_path_of_the_server_s_own() -> None:
    """Each path for reading requests and adding turns is named with its method."""
    routes = [f"{method} {path}" for path, methods in ROUTES.items() for method in methods]
    assert [route for route in routes if not re.search(rf"`{route}\b", TEXT)] == []
