"""The turns of a transcript: two shapes have some, any other has none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from signet_conformance.facts import plain
from signet_conformance.rules.transcripts import quoted_turns, turns


def _lines(*entries: Any) -> str:
    return "\n".join(json.dumps(entry) for entry in entries)


SHAPES: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "speakers": ("User: one\nAssistant: eins", [("user", "one"), ("assistant", "eins")]),
    "human is a user": ("Human: one", [("user", "one")]),
    "any case": ("USER: one\nassistant: eins", [("user", "one"), ("assistant", "eins")]),
    "lines up to the next speaker": ("User: one\n more\n\nHuman: two", [("user", "one\n more"), ("user", "two")]),
    "lines of a later speaker": (
        "User: one\nAssistant: eins\nzwei\nUser: two", [("user", "one"), ("assistant", "eins\nzwei"), ("user", "two")],
    ),
    "text before the first speaker": ("Session of Friday\nUser: one", [("user", "one")]),
    "a brace before the first speaker": ("{session of Friday}\nUser: one", [("user", "one")]),
    "a speaker inside a line": ("User: one User: two", [("user", "one User: two")]),
    "an indented speaker": ("User: one\n  Assistant: eins", [("user", "one\n  Assistant: eins")]),
    "another speaker": ("User: one\nTool: ls", [("user", "one")]),
    "an empty turn": ("User:\nAssistant: eins", [("user", ""), ("assistant", "eins")]),
    "no speaker": ("we spoke of deploys", []),
    "JSON lines": (
        _lines({"role": "user", "content": " one "}, {"role": "assistant", "content": "eins"}),
        [("user", "one"), ("assistant", "eins")],
    ),
    "inside message": (_lines({"type": "x", "message": {"role": "user", "content": "one"}}), [("user", "one")]),
    "a list of parts": (
        _lines({"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "image"}, {"text": "two"}]}),
        [("user", "one\ntwo")],
    ),
    "other roles": (_lines({"role": "system", "content": "x"}, {"role": "user", "content": "one"}), [("user", "one")]),
    "a role beside message": (
        _lines({"role": "x", "message": {"role": "user", "content": "one"}}), [("user", "one")],
    ),
    "a message without content": (_lines({"message": {"role": "user"}}), []),
    "a blank line between two": (
        "\n\n".join(json.dumps({"role": "user", "content": text}) for text in ("one", "two")),
        [("user", "one"), ("user", "two")],
    ),
    "blank lines": (_lines({"role": "user", "content": "one"}) + "\n\n \n", [("user", "one")]),
    "one line of another shape": (_lines({"role": "user", "content": "one"}, {"type": "summary"}), []),
    "one line that is no object": (_lines({"role": "user", "content": "one"}, [1]), []),
    "one torn line": (_lines({"role": "user", "content": "one"}) + '\n{"role":"us', []),
    "role without content": (_lines({"role": "user"}), []),
    "a JSON list": (json.dumps([{"role": "user", "content": "one"}]), []),
    "empty": ("", []),
    "blank": (" \n", []),
    "null": (None, []),
    "a list": ([{"role": "user", "content": "one"}], []),
    "deep": ('{"a":' * 100_000, []),
}  # fmt: skip


PIECES = ["User:", "Assistant: ", "{", "}", "\n", '{"role":1,"content":[1]}', '{"message":{"role":"user","content":1}}']


@pytest.mark.parametrize("name", SHAPES)
def test_the_turns_of_a_shape(name: str) -> None:
    """Lines of role and content, or lines that a speaker opens; roles and trimmed texts in order."""
    transcript, expected = SHAPES[name]
    assert turns(transcript) == expected


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        (None, []),
        ("User: one", []),
        ("log:\nUser: one\nmore", [("user", "one\nmore")]),
        (" \r\nUser: one\r\nassistant: eins", [("assistant", "eins")]),
    ],
)
def test_turns_that_a_text_quotes(text: str | None, quoted: list[tuple[str, str]]) -> None:
    """From its second line on: the first stands behind the name of who said the text."""
    assert quoted_turns(text) == quoted


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("\ufeff one\u3000\n", "one"),
        (" \ufeff\u2028one", "one"),
        ("one\ufefftwo\ufeff", "one\ufefftwo"),
        ("\u200bone", "\u200bone"),
        ("\x00 one\x85", "one"),
    ],
)
def test_white_space_around_a_text_does_not_count(text: str, kept: str) -> None:
    """Nor does a byte order mark, which JavaScript takes off with it; inside the text both stay."""
    assert plain(text) == kept


@given(said=st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text()), min_size=1))
def test_what_was_said_comes_back(said: list[tuple[str, str]]) -> None:
    """JSON lines lose nothing but the white space around a text, whatever was said."""
    transcript = _lines(*({"role": role, "content": text} for role, text in said))
    assert turns(transcript) == [(role, text.strip()) for role, text in said]


@given(transcript=st.text() | st.lists(st.sampled_from(PIECES)).map("".join))
def test_no_text_breaks_the_reader(transcript: str) -> None:
    """Whatever text a connector sends, its turns are a list, perhaps an empty one."""
    assert all(role in ("user", "assistant") and text == text.strip() for role, text in turns(transcript))
