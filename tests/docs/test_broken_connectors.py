"""The page of ten broken connectors: each is of the kill matrix, and what a reader sees is short and begins with it."""

from __future__ import annotations

import pytest

from tests.support.tools import tool

made = tool("broken_connectors")


def test_page_is_what_the_program_writes() -> None:
    """Nothing on it was written by hand, and none of the ten is missing."""
    text = made.PAGE.read_text("utf-8")
    outputs = made.outputs_on(text)
    assert tuple(outputs) == made.BROKEN, "try: python ci/tools/broken_connectors.py"
    assert made.page(outputs) == text, "try: python ci/tools/broken_connectors.py"


@pytest.mark.parametrize("name", made.BROKEN)
def test_first_block_says_what_is_broken(name: str) -> None:
    """An output is read in one go, and its first block names the requirement that the connector was made to break."""
    lines = made.outputs_on(made.PAGE.read_text("utf-8"))[name]
    assert list(made.complaints(name, lines)) == []


def test_output_that_is_too_long_or_begins_otherwise_is_refused() -> None:
    """A line that is wider than the terminal takes several."""
    wide = ["x" * (made.WIDTH + 1)]
    assert made.lines_in_terminal(wide) == 2
    assert [*made.complaints("never-ends", ["WARN SIG-END-005", *[""] * 59])] == []
    told = [*made.complaints("never-ends", ["WARN SIG-END-004", *[""] * 58, *wide])]
    assert told == [
        "never-ends: 61 lines at 80 columns, of at most 60",
        "never-ends: its first block does not name SIG-END-005",
    ]
