"""Secrets that running text names."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from signet_recording_proxy.redaction.named_values import (
    FORM,
    MEMBERS,
    MULTIPART,
    PARAMETERS,
    PATH,
    QUERY_REST,
)


def taken(_secret: str) -> str:
    """A token that stands for any secret."""
    return "<>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see /cb?token=a/b+c=&x=1", "see /cb?token=<>&x=1"),
        ("?a=1&apiToken=abc#x", "?a=1&apiToken=<>#x"),
        ("?next=/cb?token=abc", "?next=/cb?token=<>"),
        ("?token=a?b", "?token=<>"),
        ("/cb#access_token=abc&x=1", "/cb#access_token=<>&x=1"),
        ("?user[password]=abc def", "?user[password]=<> def"),
        ("?limit=5&sessionKey=s-1&confirm_token=abcdefgh", "?limit=5&sessionKey=s-1&confirm_token=abcdefgh"),
        ("password=abc", "password=abc"),
    ],
)
def test_a_query_in_text(text: str, expected: str) -> None:
    """A question mark or an ampersand begins a field; without one, text is no query."""
    assert PARAMETERS.replace(text, taken) == expected


def test_a_form() -> None:
    """Its first field counts, and names may be encoded."""
    sent = "password=a%20b&x=1&%74oken=abcdefgh&user%5Bpwd%5D=hunter22&q=token"
    assert FORM.replace(sent, taken) == "password=<>&x=1&%74oken=<>&user%5Bpwd%5D=<>&q=token"


def test_a_form_of_several_parts() -> None:
    """The value of a part stands after its headers and an empty line."""
    sent = (
        '--B\r\nContent-Disposition: form-data; name="password"\r\nContent-Type: text/plain\r\n\r\nabc\r\n'
        '--B\r\nContent-Disposition: form-data; name="content"; filename="token"\r\n\r\nabc\r\n--B--'
    )
    assert MULTIPART.replace(sent, taken) == sent.replace("\r\n\r\nabc", "\r\n\r\n<>", 1)


@pytest.mark.parametrize("line_end", ["\r\n", "\n"])
@pytest.mark.parametrize(
    "name",
    ["name=password", "name='password'", 'filename="x"; name="password"', 'name = "password"', "name*=UTF-8''password"],
)
def test_the_ways_to_name_a_part(name: str, line_end: str) -> None:
    """With and without quotes, after other parameters, extended; lines may end as on Unix."""
    sent = line_end.join(("--B", f"Content-Disposition: form-data; {name}", "", "two words", "--B--"))
    assert MULTIPART.replace(sent, taken) == sent.replace("two words", "<>")
    other = sent.replace("password", "content")
    assert MULTIPART.replace(other, taken) == other


def test_semicolons() -> None:
    """They separate fields in the value of a query's field, and parameters in a path."""
    assert QUERY_REST.replace("1;token=a/b;c=2", taken) == "1;token=<>;c=2"
    assert PATH.replace("/x;token=abc/y;v=1#key=a", taken) == "/x;token=<>/y;v=1#key=<>"


@given(st.text(min_size=1, max_size=20).filter(str.strip), st.integers(0, 4), st.booleans())
def test_a_password_in_json_in_a_string(secret: str, depth: int, spaced: bool) -> None:
    """Up to four strings deep, with quotes and backslashes in it, it is taken out whole; the rest stays."""
    document: object = {"a": 1, "password": "x" + secret, "b": '"'}
    expected: object = {"a": 1, "password": "<>", "b": '"'}
    separators = (", ", ": ") if spaced else (",", ":")
    for _ in range(depth + 1):
        document, expected = (
            json.dumps(document, separators=separators),
            json.dumps(expected, separators=separators),
        )
    assert MEMBERS.replace(str(document), taken) == expected


def test_what_only_follows_a_harmless_name_is_searched_on() -> None:
    """A value that is not a secret may hold a secret of its own."""
    assert MEMBERS.replace('{"token":"a \\"password\\":\\"abc\\""}', taken) == '{"token":"a \\"password\\":\\"<>\\""}'


def test_a_secret_is_taken_out_once() -> None:
    """What a secret holds is part of it, though it be named like another."""
    assert MEMBERS.replace('"password":"\\"token\\":\\"abcdefgh\\"", "a":1', taken) == '"password":"<>", "a":1'
