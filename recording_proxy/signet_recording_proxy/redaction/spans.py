"""Puts tokens in the place of parts of a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

Token = Callable[[str], str]
Span = tuple[int, int]
LONGEST: Final = 512
"""How much of a word is looked at."""
_REST = re.compile(r"[^\s\"'`<>,;&|(){}\[\]\\]*+")


def end_of_word(text: str, start: int, end: int) -> int:
    """Where the word ends that begins at `start`, if no more of it was looked at than up to `end`; else `end`."""
    rest = _REST.match(text, end) if end - start >= LONGEST else None
    return end if rest is None else rest.end()


def replace_spans(text: str, spans: Iterable[Span], token: Token) -> str:
    """`text` with `token(part)` in the place of each part; spans come in order, and one within another is left out."""
    pieces: list[str] = []
    done = 0
    for start, end in spans:
        if start < done:
            continue
        part = text[start:end]
        given = token(part)
        if given != part:
            pieces += (text[done:start], given)
            done = end
    return "".join((*pieces, text[done:])) if pieces else text
