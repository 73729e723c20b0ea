"""Texts compared by their words: programs wrap, escape, indent, quote and re-order what they put before a model."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from msgspec import Struct

_REDACTED = re.compile(r"<redacted:[^>\s]{1,40}>")
_ESCAPED_BLANK = re.compile(r"\\+[nrt]")
_ESCAPED_LETTER = re.compile(r"\\+u([0-9a-fA-F]{4})")
_NO_WORD = re.compile(r"[\W_]+")
_LEAST_WORDS, _LEAST_LETTERS = 3, 14
_SHORTENED = re.compile(
    r"\b(?:truncated|shortened|omitted|trimmed|cut off|too long|saved to|full output|more (?:lines|characters|chars))\b"
    r"|\[\.\.\.\]|\u2026|\.\.\.",
    re.IGNORECASE,
)
_LONG_LETTERS = 40
"""A line of so many letters is the same one if it has other blanks."""
_MOST_OF_IT = 0.5


def plain(text: str) -> str:
    """The words of a text, in lower case, a blank between two; without markup, escapes and redaction tokens."""
    text = _REDACTED.sub(" ", text)
    if "&" in text:
        text = html.unescape(text)
    if "\\" in text:
        text = _ESCAPED_LETTER.sub(lambda match: chr(int(match[1], 16)), _ESCAPED_BLANK.sub(" ", text))
    return _NO_WORD.sub(" ", text).strip().casefold()


def padded(texts: Iterable[str]) -> str:
    """Texts in plain wording, apart from each other, so that whole words can be looked for."""
    return "|".join(f" {words} " for text in texts if (words := plain(text)))


def times(line: str, text: str) -> int:
    """How often a line in plain wording stands in a padded text."""
    return len(re.findall(f"(?<= ){re.escape(line)}(?= )", text))


def says(line: str, text: str) -> bool:
    """Whether it stands there. A long one may be wrapped inside its words."""
    return f" {line} " in text or (len(line) >= _LONG_LETTERS and line.replace(" ", "") in text.replace(" ", ""))


def marker_lines(text: str) -> tuple[str, ...]:
    """The lines of a text by which it is known, in plain wording; of a text of short lines, the whole of it.

    Empty for a text that has too few words to be told from others.
    """
    lines = dict.fromkeys(filter(_tells, (plain(line) for line in text.splitlines())))
    if lines:
        return tuple(lines)
    whole = plain(text)
    return (whole,) if _tells(whole) else ()


def _tells(words: str) -> bool:
    return len(words) >= _LEAST_LETTERS and words.count(" ") + 1 >= _LEAST_WORDS


_NOTICE_LETTERS = 300
"""A notice may say how much was left out and where all of it is kept."""


def says_left_out(text: str, lines: Iterable[str], given: str) -> bool:
    """Whether a text says near the lines that it holds of `given` that something was left out there.

    A text is cut within a line or after one. What its host says elsewhere, or `given` itself, is about something else.
    """
    words = f" {plain(text)} "
    spans = [(at, at + len(line)) for line in lines if (at := words.find(f" {line} ")) >= 0]
    if not spans:
        return False
    reach = max((len(line) for line in marker_lines(given)), default=0) + _NOTICE_LETTERS
    low, high = min(begin for begin, _ in spans) - reach, max(end for _, end in spans) + reach
    places = [len(plain(text[: match.start()])) for match in _SHORTENED.finditer(text)]
    return sum(low <= place <= high for place in places) > len(_SHORTENED.findall(given))


class Presence(Struct, frozen=True):
    """How many of the lines of a text stand in another."""

    present: int
    total: int

    @property
    def absent(self) -> bool:
        """Whether not one line stands there."""
        return self.present == 0

    @property
    def mostly(self) -> bool:
        """Whether at least half of the lines stand there: a program may leave some out."""
        return self.present >= self.total * _MOST_OF_IT and self.present > 0


def presence(lines: tuple[str, ...], text: str) -> Presence:
    """How much of a text, by its marker lines, stands in a padded text."""
    return Presence(sum(says(line, text) for line in lines), len(lines))
