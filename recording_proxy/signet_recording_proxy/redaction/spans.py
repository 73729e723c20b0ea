"""Puts tokens in the place of parts of a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable

Token = Callable[[str], str]
Span = tuple[int, int]


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
