r"""Letters of escapes before a word: the `n` of `\n` in JSON inside a string, the `m` that ends a terminal's colour.

To a pattern, `\nmysql -p…` in a transcript holds a program named `nmysql`. While text is searched, blanks stand where
such letters do. The text is as long as before, so that every place in it remains where it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from signet_recording_proxy.redaction.spans import Token

_BREAK, _COLOUR = "\x0b", "\x0c"
"""Blanks that mark what was changed. A text that has one of them already is searched with those letters."""
LINE_BREAK: Final = rf"(?:\\{{1,8}}r)?\\{{0,8}}{_BREAK}?\r?\n"
"""A line break, real or escaped, in an expression."""
# A carriage return alone breaks no line.
_BREAKS = (("\\n", f"{_BREAK}\n"), ("\\t", f"{_BREAK}\t"))
_ESCAPE = r"(?:\x1b|\\{1,8}u001[bB])"
_COLOURED = re.compile(rf"({_ESCAPE}\[[0-9;]{{0,16}})m")
_BEGINS = ("\x1b", "u001")
_TAIL = re.compile(rf"(?:{_ESCAPE}(?:\[[0-9;]{{0,16}})?|[\\{_BREAK}{_COLOUR}])++\Z")


def unglue(text: str) -> str:
    """`text`, as long as before, with blanks in the place of such letters."""
    return _unglue(text, _marks_free_in(text))


def search_unglued(text: str, token: Token, search: Callable[[str, Token], str]) -> str:
    """`text` after a `search` for secrets in what `unglue` makes of it."""
    marks = _marks_free_in(text)
    shown = _unglue(text, marks)
    if shown == text:
        return search(text, token)

    def token_for(secret: str) -> str:
        # What was taken up to the end of a line may hold a part of an escape, which stays.
        tail = _TAIL.search(secret)
        word = secret if tail is None else secret[: tail.start()]
        return token(_glue(word, marks)) + secret[len(word) :]

    clean = search(shown, token_for)
    return text if clean == shown else _glue(clean, marks)


def _marks_free_in(text: str) -> str:
    return "".join([mark for mark in (_BREAK, _COLOUR) if mark not in text])


def _unglue(text: str, marks: str) -> str:
    if _BREAK in marks and "\\" in text:
        for escaped, shown in _BREAKS:
            text = text.replace(escaped, shown)
    if _COLOUR in marks and any(begins in text for begins in _BEGINS):
        text = _COLOURED.sub(rf"\1{_COLOUR}", text)
    return text


def _glue(text: str, marks: str) -> str:
    if _BREAK in marks:
        for escaped, shown in _BREAKS:
            text = text.replace(shown, escaped)
    return text.replace(_COLOUR, "m") if _COLOUR in marks else text
