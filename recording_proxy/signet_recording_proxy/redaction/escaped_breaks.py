r"""Line breaks and tabs that JSON inside a string spells as letters, shown as what they are while text is searched.

`\nmysql -p…` in a transcript begins a line with a word that no pattern would find behind an `n`. What is shown is as
long as what it stands for, so that every place in the text remains where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Token = Callable[[str], str]

LINE_BREAK = r"(?:\\{1,8}r)?\\{0,8}\x0b?\r?\n"
"""A line break, shown or real, in an expression."""
_MARK = "\x0b"
"""Stands before what is shown. A text that has it already is searched as it is."""


class _Break(NamedTuple):
    escaped: str
    shown: str


# A carriage return alone breaks no line.
_BREAKS = (_Break("\\n", _MARK + "\n"), _Break("\\t", _MARK + "\t"))


def show_breaks(text: str) -> str:
    """`text`, as long as before, with its escaped breaks shown."""
    return _show(text, _breaks_in(text))


def search_behind_breaks(text: str, token: Token, search: Callable[[str, Token], str]) -> str:
    """`text` after a `search` for secrets that sees its escaped breaks as breaks."""
    breaks = _breaks_in(text)
    if not breaks:
        return search(text, token)

    def token_for(secret: str) -> str:
        # What was taken up to the line's end may hold a part of the break, which stays.
        word = secret.rstrip("\\" + _MARK)
        return token(_hide(word, breaks)) + secret[len(word) :]

    shown = _show(text, breaks)
    clean = search(shown, token_for)
    return text if clean == shown else _hide(clean, breaks)


def _breaks_in(text: str) -> list[_Break]:
    return [each for each in _BREAKS if each.escaped in text] if "\\" in text and _MARK not in text else []


def _show(text: str, breaks: list[_Break]) -> str:
    for escaped, shown in breaks:
        text = text.replace(escaped, shown)
    return text


def _hide(text: str, breaks: list[_Break]) -> str:
    for escaped, shown in breaks:
        text = text.replace(shown, escaped)
    return text
