"""What of a hostile value reaches a terminal: one line, nothing that acts, not too much of it."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, strategies as st

from signet_conformance.errors import SignetConformanceError, printable

ANY_TEXT = st.text(st.characters(exclude_categories=()))
WIDEST_ESCAPE = len("\\U0010ffff")


@given(text=ANY_TEXT)
def test_the_outcome_is_one_harmless_line(text: str) -> None:
    """Nothing in it is a control character, a line break, a bidirectional mark or half a character."""
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1
    shown.encode()


@given(text=ANY_TEXT, limit=st.integers(1, 300))
def test_the_outcome_is_bounded(text: str, limit: int) -> None:
    """At most `limit` characters of the value are shown, each in its widest escape; a cut one says so."""
    shown = printable(text, limit)
    assert len(shown) <= limit * WIDEST_ESCAPE
    if len(text) > limit:
        assert shown.endswith("…")


@given(text=st.text(st.characters(categories=("L", "N", "P", "S"))), limit=st.integers(1, 300))
def test_ordinary_text_is_shown_as_it_is(text: str, limit: int) -> None:
    """Text that a terminal shows harmlessly is not changed, only cut."""
    assert printable(text, limit) == (text if len(text) <= limit else f"{text[: limit - 1]}…")


@given(value=st.none() | st.integers() | st.binary() | st.lists(st.text()))
def test_any_value_can_be_shown(value: object) -> None:
    """What is no text is shown as its text."""
    assert printable(value).isprintable()


def test_terminal_escapes_are_spelt_out() -> None:
    """An escape sequence is shown, not obeyed."""
    assert printable("\x1b[31mred\nx\u202e\ud800") == "\\x1b[31mred\\nx\\u202e\\ud800"


def test_an_error_shows_place_and_remedy() -> None:
    """The place stands first, the remedy last, each only where it is known."""
    assert str(SignetConformanceError("is torn", where="a.jsonl:3", remedy="record again")) == (
        "a.jsonl:3: is torn\ntry: record again"
    )
    assert str(SignetConformanceError("is torn")) == "is torn"


def test_the_place_of_an_error_is_escaped() -> None:
    """Whoever raises it may give a path as it is, and whoever shows it needs not escape it."""
    failure = SignetConformanceError("is torn", where=Path("\x1b[2J\u202e.jsonl"))
    assert failure.headline == "\\x1b[2J\\u202e.jsonl: is torn"
