"""Facts about lines for a terminal."""

from __future__ import annotations

import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st

from signet_conformance.reports.layout import labelled, paragraph, shell_command

NAMES = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1, max_size=12)


@settings(deadline=None, max_examples=40)
@given(st.lists(NAMES, min_size=1, max_size=3))
def test_a_command_reaches_a_shell_as_it_was_meant(words: list[str]) -> None:
    """Any words survive quoting, and the quoted line holds nothing that a terminal obeys."""
    line = shell_command(words)
    printed = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True)  # noqa: S607  any bash
    assert printed.stdout.decode() == "".join(f"{word}\0" for word in words)
    assert line.isprintable()


def test_a_label_stands_beside_wrapped_text() -> None:
    """Later lines of the text are indented below the first."""
    assert labelled("why", "one two three four", 24, False) == ["  why       one two", "            three four"]


def test_a_word_that_is_too_long_is_broken() -> None:
    """No line is wider than asked, even without a space."""
    assert paragraph("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]


def test_an_empty_paragraph_is_one_line() -> None:
    """Nothing to say keeps its place."""
    assert paragraph("", 40, "  ") == ["  "]
