"""Replaces parts of a text by tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

Token = Callable[[str], str]
Span = tuple[int, int]
LONGEST: Final = 512
"""How many characters of a word are examined."""
_REST = re.compile(r"[^\s\"'`<>,;&|(){}\[\]\\]*+")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def flags_of(characters: str) -> bytes:
    """A table for `bytes.translate`: an `x` for each of these characters, a blank for every other byte."""
    return bytes(ord("x") if chr(byte) in characters else ord(" ") for byte in range(256))


def long_runs(flags: bytes, least: int) -> Iterator[Span]:
    """The places of runs of at least `least` flags."""
    find, run = flags.find, b"x" * least
    start = find(run)
    while start >= 0:
        end = find(b" ", start + least)
        end = len(flags) if end < 0 else end
        yield start, end
        start = find(run, end)


class NextMatch:
    """Finds the first match of a pattern at or after each of several places, which have to come in order.

    No part of the text is searched twice, however many places there are.
    """

    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        self._pattern, self._text = pattern, text
        self._found = -1

    def __call__(self, at: int) -> int:
        """Return where the match begins; without a match, the length of the text."""
        if self._found < at:
            match = self._pattern.search(self._text, at)
            self._found = max(at, len(self._text)) if match is None else match.start()
        return self._found


def end_of_word(text: str, start: int, end: int) -> int:
    """The end of the word from `start`, examined up to `end`: beyond that if the examined part reached its limit."""
    rest = _REST.match(text, end) if end - start >= LONGEST else None
    return end if rest is None else rest.end()


def without_surrogates(text: str) -> str:
    """A text of the same length without lone surrogates, which an automaton does not accept.

    JSON and headers may hold them.
    """
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def replace_spans(text: str, spans: Iterable[Span], token: Token) -> str:
    """`text` with each part replaced by `token(part)`.

    The spans come in order; one that overlaps the one before is skipped.
    """
    pieces: list[str] = []
    done = 0
    for start, end in spans:
        if start < done:
            continue
        part = text[start:end]
        replacement = token(part)
        if replacement != part:
            pieces += (text[done:start], replacement)
            done = end
    return "".join((*pieces, text[done:])) if pieces else text
