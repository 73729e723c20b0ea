"""The page on the architecture says what import-linter checks."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_layers_of_the_page_are_those_of_the_contract() -> None:
    """The table of layers on ARCHITECTURE.md is the list in pyproject.toml, in its order."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(entry["layers"] for entry in contracts if entry.get("containers") == ["signet_conformance"])
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition("| layer, highest first |")[2].partition("\n## ")[0]
    rows = [re.findall(r"`(\w+)`", line) for line in page.splitlines() if "`" in line]
    assert rows == [layer.split(" | ") for layer in layers]
