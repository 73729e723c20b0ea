"""JSON values as the daemon reads and writes them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from signet_conformance.daemon.js import (
    UnreadableJsonError,
    flag,
    parse_json,
    positive_integer,
    truthy,
    write_json,
)

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "Unexpected EOF"),
        ("hello", 'Unexpected identifier "hello"'),
        ('{"a": "', "Unterminated string"),
        ("\x1f", "Unrecognized token '\x1f'"),
        ('{"a":1}x', "Unable to parse JSON string"),
        ("{'a':1}", "Single quotes (') are not allowed in JSON"),
        ('{"a":1,}', "Property name must be a string literal"),
        ("[1,]", "Unexpected comma at the end of array expression"),
        ("NaN", 'Unexpected identifier "NaN"'),
        ('"\\x"', "Invalid escape character x"),
    ],
)
def test_complaints(text: str, complaint: str) -> None:
    """What is no JSON is refused in the words of the daemon's parser."""
    with pytest.raises(UnreadableJsonError, match="JSON Parse error: ") as raised:
        parse_json(text.encode())
    assert str(raised.value) == f"JSON Parse error: {complaint}"


def _as_double(digits: str) -> float:
    """An integer with the precision that the daemon's language has."""
    return int(digits) if len(digits) < 16 else float(digits)


@given(st.text().filter(lambda text: "\\u" not in text))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes the parser fail in another way, and it reads exactly what is JSON."""
    try:
        expected = json.loads(text.removeprefix("\ufeff"), parse_constant=lambda _: 1 / 0, parse_int=_as_double)
    except (ValueError, ZeroDivisionError):
        with pytest.raises(UnreadableJsonError):
            parse_json(text.encode("utf-8", "replace"))
    else:
        assert parse_json(text.encode("utf-8", "replace")) == expected


@given(PLAIN)
def test_written_json_reads_back(value: Any) -> None:
    """What is written reads back as the same value."""
    assert json.loads(write_json(value)) == value


@pytest.mark.parametrize("data", [b'\xef\xbb\xbf{"a":1}', b'{"a":0,"a":1}', b' {"a":1}\n'])
def test_lenient_reading(data: bytes) -> None:
    """A byte order mark, duplicate keys and blanks are accepted."""
    assert parse_json(data) == {"a": 1}


def test_bad_bytes_and_surrogates_are_replaced() -> None:
    """Bytes that are no UTF-8, and lone surrogates, become replacement characters."""
    assert parse_json(b'{"a":"\xff\\ud800"}') == {"a": "\ufffd\ufffd"}


def test_deep_nesting_is_no_crash() -> None:
    """A hundred thousand brackets are refused like other unreadable bodies."""
    with pytest.raises(UnreadableJsonError):
        parse_json(b"[" * 100_000)


@pytest.mark.parametrize(
    ("value", "given"), [(None, False), (0, False), ("", False), ([], True), ({}, True), ("0", True)]
)
def test_truth(value: Any, given: bool) -> None:
    """Empty lists and objects count as given; zero and the empty string do not."""
    assert truthy(value) is given


@pytest.mark.parametrize(
    ("value", "number"), [(3, 3), ("3", 3), ("3 rows", 3), (0, None), (1.5, None), (True, None), ("x", None)]
)
def test_positive_integers(value: Any, number: int | None) -> None:
    """A version or limit is an integer above zero, also as text."""
    assert positive_integer(value) == number


@pytest.mark.parametrize(
    ("value", "read"), [(True, True), ("FALSE", False), (1, True), (2, None), ("yes", None), (None, None)]
)
def test_flags(value: Any, read: bool | None) -> None:
    """True, 1 and their texts are true; other values are no flag."""
    assert flag(value) is read
