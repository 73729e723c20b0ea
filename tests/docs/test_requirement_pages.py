"""Facts about the pages that are made from the catalogue."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.contract import sentences
from tests.support.tools import tool

ROOT = Path(__file__).parents[2]
PLAIN_MEMBERS = ("title", "subject", "why", "fix", "source")


pages = tool("requirement_pages")


def entry(name: str) -> dict[str, Any]:
    """The catalogue's entry of a requirement."""
    return next(requirement for requirement in pages.catalogue() if requirement["id"] == name)


def test_the_index_is_current() -> None:
    """What is committed is what schemas/ says."""
    assert pages.INDEX.read_text("utf-8") == pages.index(), "try: python ci/tools/requirement_pages.py"


def test_the_list_of_variants_is_current() -> None:
    """The list of variants counts and lists what schemas/ holds."""
    assert pages.VARIANTS.read_text("utf-8") == pages.variant_list(), "try: python ci/tools/requirement_pages.py"


@pytest.mark.parametrize("page", pages.PYTEST_RUNS, ids=lambda page: page.name)
def test_the_items_of_a_shown_run_are_counted(page: Path) -> None:
    """A page that shows a run of pytest has an item for each requirement."""
    assert page.read_text("utf-8") == pages.with_items(page), "try: python ci/tools/requirement_pages.py"


@cache
def page_of(name: str) -> str:
    """The page of a requirement."""
    return str(pages.page(entry(name)))


def test_a_page_tells_the_whole_requirement() -> None:
    """Sentence, level, verdict, why, remedy, example and proof stand on every page."""
    headings = ("## Verdict", "## Why it matters", "## What to change", "## Proven by", "## In a terminal")
    lacking = {}
    for requirement in pages.catalogue():
        name = requirement["id"]
        parts = [pages._plain(requirement[member]) for member in PLAIN_MEMBERS]
        parts += [f"- {pages._plain(sentence)}" for sentence in sentences(requirement["verdict"])]
        parts += [f"| level | {requirement['level']}", f"signet-conformance explain {name}", *headings]
        if "example" in requirement:
            parts.append(json.dumps(requirement["example"], indent=2, ensure_ascii=False))
        if absent := [part for part in parts if part not in page_of(name)]:
            lacking[name] = absent
    assert lacking == {}


def test_a_page_names_its_mutants() -> None:
    """What proves the rule stands on the page."""
    for mutant in json.loads((ROOT / "schemas" / "mutants.json").read_text("utf-8"))["mutants"]:
        assert f"- `{mutant['id']}`: the {mutant['side']} " in page_of(mutant["breaks"])


def test_a_page_says_since_when_and_in_which_versions() -> None:
    """A later requirement names its first daemon and the contracts in which it is in force."""
    page = pages.page(entry("SIG-AGENT-002"))
    assert "| since | daemon 0.123.15 |" in page
    assert "| in force | in contract 0.145, 0.205, 0.237 |" in page


def test_the_catalogues_text_is_no_markup() -> None:
    """An angle bracket, a star or a bar of a sentence stays what it is."""
    assert "Bearer &lt;token&gt;" in pages.page(entry("SIG-HTTP-009"))
    assert pages._plain("a|b *c* <d> [e] `f` _g_") == r"a\|b \*c\* &lt;d&gt; \[e\] \`f\` \_g\_"


def test_every_area_has_a_heading() -> None:
    """No requirement is left out of the index."""
    listed = [entry["id"] for area in pages.areas() if area["heading"] for entry in area["requirements"]]
    assert sorted(listed) == sorted(requirement["id"] for requirement in pages.catalogue())
