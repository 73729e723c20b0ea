"""The pictures of the documentation show what the program says now, and each is shown somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.tools import tool

ROOT = Path(__file__).parents[2]
pictures = tool("pictures")


@pytest.fixture(scope="module")
def work() -> Iterator[Path]:
    with pictures.prepared() as folder:
        yield folder


@pytest.mark.parametrize("picture", pictures.PICTURES, ids=lambda picture: picture.name)
def test_a_picture_shows_what_the_program_says(picture: Any, work: Path) -> None:
    taken = pictures.FOLDER.joinpath(f"{picture.name}.txt").read_text("utf-8")
    assert picture.text(work) == taken, "the picture is old; try: nox -s pictures"


def test_each_picture_is_shown_and_small() -> None:
    shown = {
        (page.parent / name).resolve()
        for page in ROOT.glob("docs/**/*.md")
        for name in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text("utf-8"))
    }
    taken = {pictures.FOLDER / f"{picture.name}{picture.suffix}" for picture in pictures.PICTURES}
    assert shown == taken
    assert {path for path in taken if path.stat().st_size > 150_000} == set()


def test_a_picture_asks_no_other_host() -> None:
    assert "url(" not in (pictures.FOLDER / "terminal.svg").read_text("utf-8").replace("url(#", "")


def test_the_failure_in_the_readme_is_that_of_the_picture() -> None:
    block = next(block for block in (ROOT / "README.md").read_text("utf-8").split("```\n") if block.startswith("FAIL"))
    assert block in (pictures.FOLDER / "terminal.txt").read_text("utf-8")
