r"""What a text shows: without the escapes of a string, the colours of a terminal and the numbers of lines around it.

To a pattern, `\nmysql -p…` in a transcript holds a program named `nmysql`, `\u0070assword` names nothing, and the value
that a heading promises stands behind `  12  | `. A text is searched as it shows, and its secrets are taken out where
they stand.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from signet_recording_proxy.redaction.spans import Token

_BLANK = "\x0b"
"""Stands in place of what is no part of the text that is carried."""
LINE_BREAK: Final = rf"(?:\\{{1,8}}r)?\\{{0,8}}{_BLANK}{{0,9}}\r?\n"
"""A line break, real or escaped, in an expression."""
# A carriage return alone breaks no line.
_BREAKS = [
    ("\\" * depth + letter, _BLANK * depth + shown) for depth in (8, 4, 2, 1) for letter, shown in ("n\n", "t\t")
]
_ESCAPE = r"(?:\x1b|\\{1,8}u001[bB])"
_COLOURED = re.compile(rf"({_ESCAPE}\[[0-9;]{{0,16}})m")
_BEGINS = ("\x1b", "u001")
_TAIL = re.compile(rf"(?:{_ESCAPE}(?:\[[0-9;]{{0,16}})?|[\\{_BLANK}\x0c])++\Z")
_NO_MARKS = dict.fromkeys(map(ord, f"{_BLANK}\x0c"))
_UNIT = re.compile(r"\\+u([0-9a-fA-F]{4})")
_NUMBERED = re.compile(
    rf"(?:\A|(?<=\n)){_BLANK}?(?:[^\s:]{{1,160}}:(?=[0-9]{{1,6}}[:-]))?[ ]{{0,8}}([0-9]{{1,6}})"
    rf"(?:{_BLANK}{{0,9}}\t|→|[ ]{{0,2}}[|│][ ]?|[:-])"
)
_LOOKS_NUMBERED = re.compile(r"\n[^\s:]{0,160}[: ]{0,9}[0-9]{1,6}(?:[\x0b\t→:-]| {0,2}[|│])")
_CHANGED = re.compile(r"(?<=\n)(?:\+(?!\+\+ )|-(?=[^-+]))")


def show(text: str) -> str:
    """`text`, as long as before, with blanks in place of what is no part of it."""
    if "\\" in text:
        for escaped, shown in _BREAKS:
            text = text.replace(escaped, shown)
    if any(begins in text for begins in _BEGINS):
        text = _COLOURED.sub("\\1\x0c", text)
    if "\n+" in text:
        text = _CHANGED.sub(" ", text)
    if "\n> " in text:
        text = text.replace("\n> ", "\n  ")
    return _without_numbers(text) if _LOOKS_NUMBERED.search(text) is not None else text


def _without_numbers(text: str) -> str:
    """Blanks in place of the numbers of lines, where one follows the other."""
    lines = list(_NUMBERED.finditer(text))
    if not lines:
        return text
    follows = [int(after[1]) - int(before[1]) == 1 for before, after in pairwise(lines)]
    pieces: list[str] = []
    done = 0
    for line, before, after in zip(lines, [False, *follows], [*follows, False], strict=True):
        if before or after:
            pieces += (text[done : line.start()], " " * len(line[0]))
            done = line.end()
    return "".join((*pieces, text[done:]))


def decode(text: str) -> str:
    """`text` with the characters that escapes of JSON spell, other than those that a string must spell so."""
    return _UNIT.sub(_decoded, text) if "\\u" in text else text


def _decoded(escape: re.Match[str]) -> str:
    unit = int(escape[1], 16)
    return escape[0] if unit < 0x20 or unit in (0x22, 0x5C, 0x7F) or 0xD800 <= unit <= 0xDFFF else chr(unit)


def search_shown(text: str, token: Token, search: Callable[[str, Token], str]) -> str:
    """`text` after a `search` for secrets in what it shows."""
    shown = show(decode(text))
    if shown == text:
        return search(text, token)
    given: dict[str, dict[str, None]] = {}

    def token_for(secret: str) -> str:
        # What was taken up to the end of a line may hold a part of an escape, which stays.
        tail = _TAIL.search(secret)
        word = secret if tail is None else secret[: tail.start()]
        instead = token(word.translate(_NO_MARKS))
        if instead != word:
            given.setdefault(instead, {})[word] = None
        return instead + secret[len(word) :]

    clean = search(shown, token_for)
    if clean == shown:
        return text
    return clean if "" in given else _put_back(text, shown, clean, given)


def _put_back(text: str, shown: str, clean: str, given: dict[str, dict[str, None]]) -> str:
    """`text` with the tokens of `clean`, which is `shown` with tokens in the place of secrets."""
    place = _places(text)
    pieces: list[str] = []
    done = at_clean = at_shown = 0
    tokens = re.compile("|".join(map(re.escape, sorted(given, key=len, reverse=True))))
    for match in tokens.finditer(clean):
        at_shown += match.start() - at_clean
        at_clean = match.end()
        words = [_whole(word, tokens, given) for word in given[match[0]]]
        word = next((word for word in words if shown.startswith(word, at_shown)), None)
        if word is None:  # a token of an earlier recording
            at_shown += len(match[0])
            continue
        pieces += (text[done : place(at_shown)], match[0])
        at_shown += len(word)
        done = place(at_shown)
    return "".join((*pieces, text[done:]))


def _whole(word: str, tokens: re.Pattern[str], given: dict[str, dict[str, None]]) -> str:
    """A secret without tokens of others in it."""
    return tokens.sub(lambda match: next(iter(given[match[0]])), word)


def _places(text: str) -> Callable[[int], int]:
    """Where in `text` a character stands that stands in its decoded form."""
    decoded, behind, lost = [0], [0], 0
    for escape in _UNIT.finditer(text) if "\\u" in text else ():
        lost += len(escape[0]) - len(_decoded(escape))
        decoded.append(escape.end() - lost)
        behind.append(escape.end())

    def place(at: int) -> int:
        number = bisect_right(decoded, at) - 1
        return behind[number] + at - decoded[number]

    return place
