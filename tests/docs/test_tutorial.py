"""The tutorials, executed word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.walked_page import ROOT, Page

KIT = Page(ROOT / "docs" / "tutorial.md")
HARNESS = Page(ROOT / "docs" / "harness" / "tutorial.md", until="## With a model of your own")


@pytest.mark.parametrize("page", [KIT, HARNESS], ids=["kit", "harness"])
def test_every_step_says_what_the_page_shows(page: Page, tmp_path: Path) -> None:
    """Every line that the page shows beneath a block of commands is said, in that order, numbers aside."""
    page.check(tmp_path)


@pytest.mark.parametrize(("page", "what"), [(KIT, "$KIT"), (HARNESS, "$KIT[harness]")], ids=["kit", "harness"])
def test_the_installation_is_the_readmes(page: Page, what: str) -> None:
    """The one block that is not executed makes an environment and installs the clone into it."""
    assert page.installation == [
        'export KIT="$HOME/signet-conformance"',
        "python3 -m venv .venv",
        ". .venv/bin/activate",
        f'pip install --quiet "{what}"',
    ]
