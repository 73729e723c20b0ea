"""Facts about JSON pointers, and parts of values."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from signet_conformance.files import json_values
from signet_conformance.files.json_values import ABSENT, escape, fill_in, json_in_utf8, put, take, value_at

NAMES = st.text("ab~/0", max_size=3)
DOCUMENTS = st.recursive(
    st.integers(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
)


def places(value: Any, pointer: str = "") -> list[tuple[str, Any]]:
    """Every place of a document below its top."""
    pointed: list[tuple[str, Any]] = []
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in rows:
        step = f"{pointer}/{escape(str(name))}"
        pointed += [(step, child), *places(child, step)]
    return pointed


@given(DOCUMENTS)
def test_every_place_is_found(document: Any) -> None:
    """A pointer made from a place leads to it."""
    for pointer, value in places(document):
        assert value_at(document, pointer) is value


@given(DOCUMENTS)
def test_what_is_put_is_found(document: Any) -> None:
    """A value put at a place replaces what was there."""
    for pointer, _ in places(document)[:1]:
        put(document, pointer, "new")
        assert value_at(document, pointer) == "new"


@given(DOCUMENTS)
def test_what_is_taken_is_returned(document: Any) -> None:
    """Taking a place returns what it held; an object then lacks it."""
    for pointer, value in places(document)[:1]:
        assert take(document, pointer) is value
        if isinstance(document, dict):
            assert value_at(document, pointer) is ABSENT


def test_a_place_that_is_not_there_is_left_alone() -> None:
    """Nothing is made up on the way to a place, and nothing raises."""
    document: dict[str, Any] = {"list": [1], "text": "x"}
    for pointer in ("/none/deep", "/list/7", "/list/x", "/text/0"):
        assert value_at(document, pointer) is ABSENT
        assert take(document, pointer) is ABSENT
        put(document, pointer, 1)
    assert document == {"list": [1], "text": "x"}


def test_a_part_of_a_value_that_nobody_knows_is_of_the_kind_that_was_asked_for() -> None:
    """What is another kind counts as nothing of it."""
    value = json_values.parse_object(b'{"rows": [{"id": "a"}, 1], "about": {"name": "x"}}')
    assert json_values.member_of(value, "about", "name") == "x"
    assert json_values.member_of(value, "rows", "name") is None
    assert json_values.objects_in(value["rows"]) == [{"id": "a"}]
    assert json_values.objects_in(json_values.member_of(value, "about")) == []
    assert json_values.parse_object("[1]") == json_values.parse_object("{") == {}
    assert (json_values.text_in(1), json_values.only_text(1)) == ("", None)


def test_placeholders_are_filled_in_anywhere() -> None:
    """In names of members too; what is not known stays."""
    assert fill_in({"a{node}": ["{node}", 1], "b": "{home}/x"}, {"node": "/n"}) == {"a/n": ["/n", 1], "b": "{home}/x"}


@given(st.text(st.characters(codec=None)))
def test_any_text_can_be_told_in_utf8(text: str) -> None:
    """Half a surrogate pair is escaped, as JavaScript does; nothing else is."""
    told = json_in_utf8({"said": text}).decode()
    assert json_values.parse_object(told) == {"said": text}
    assert told.isascii() == (text.isascii() or any("\ud800" <= character <= "\udfff" for character in text))
