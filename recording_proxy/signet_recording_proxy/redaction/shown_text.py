r"""Searches a text as a reader sees it: without escapes of strings, colours of terminals and numbers of lines.

These would mislead patterns: `\nmysql -p…` in a transcript seems to run a program named `nmysql`, `\u0070assword` is no
name of a secret, and `  12  | ` may precede the value below a heading. The secrets are replaced in the original text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from signet_recording_proxy.redaction.spans import Token

_BLANK = "\x0b"
"""Replaces a character that a reader of the text does not see, such as an escape or the number of a line."""
LINE_BREAK: Final = rf"(?:\\{{1,8}}r)?\\{{0,8}}{_BLANK}{{0,9}}\r?\n"
"""A line break, real or escaped, in an expression."""
# A carriage return alone breaks no line.
_ESCAPE = r"(?:\x1b|\\{1,8}u001[bB])"
_ESCAPED_COLOUR = re.compile(r"\\u001[bB]")
_COLOURED = re.compile(rf"({_ESCAPE}\[[0-9;]{{0,16}})m")
_TAIL = re.compile(rf"(?:{_ESCAPE}(?:\[[0-9;]{{0,16}})?|[\\{_BLANK}\x0c])++\Z")
_NO_MARKS = dict.fromkeys(map(ord, f"{_BLANK}\x0c"))
_UNIT = re.compile(r"\\+u([0-9a-fA-F]{4})")
_UNIT_BEGINS = re.compile(r"\\u[0-9a-fA-F]{4}")
_ESCAPED, _DEEPER = re.compile(r"\\[nt]"), re.compile(r"\\\\\\{0,14}[nt]")
_NUMBERED = re.compile(rf"\n {{0,8}}([0-9]{{1,6}})(?:{_BLANK}{{0,9}}\t|→| {{0,2}}[|│] ?|[:-])")
_PLACE = re.compile(r":([0-9]{1,6})[:-]")
_LONGEST_PATH = 160
_CHANGED = re.compile(r"\n(?:\+(?!\+\+ )|-(?=[^-+]))")


def show(text: str) -> str:
    """Return `text` as a reader sees it: escapes, colours and line numbers become blanks, the length stays."""
    if _ESCAPED.search(text) is not None:
        if _DEEPER.search(text) is not None:
            text = _DEEPER.sub(lambda escape: _BLANK * (len(escape[0]) - 2) + escape[0][-2:], text)
        text = text.replace("\\n", f"{_BLANK}\n").replace("\\t", f"{_BLANK}\t")
    if "\x1b" in text or ("\\" in text and _ESCAPED_COLOUR.search(text)):
        text = _COLOURED.sub("\\1\x0c", text)
    if _MARKED.search(text) is not None:
        text = _CHANGED.sub("\n ", text).replace("\n> ", "\n  ")
    text = _without_numbers(text)
    return _without_numbers(text, places=True) if _PLACE.search(text) is not None else text


_MARKED = re.compile(r"\n[+>]")


def _without_numbers(text: str, *, places: bool = False) -> str:
    """Replace the numbers of consecutive lines by blanks; with `places`, beginnings such as `src/app.py:12:`."""
    numbered = _places_in_files(text) if places else _numbers_of_lines(text)
    lines = list(numbered)
    follows = [after[2] - before[2] == 1 for before, after in pairwise(lines)]
    if not any(follows):
        return text
    pieces: list[str] = []
    done = 0
    for (start, end, _), before, after in zip(lines, [False, *follows], [*follows, False], strict=True):
        if before or after:
            pieces += (text[done:start], " " * (end - start))
            done = end
    return "".join((*pieces, text[done:]))


def _numbers_of_lines(text: str) -> Iterator[tuple[int, int, int]]:
    return ((line.start(), line.end() - 1, int(line[1])) for line in _NUMBERED.finditer("\n" + text))


def _places_in_files(text: str) -> Iterator[tuple[int, int, int]]:
    """The beginnings `src/app.py:12:` of lines, with their numbers."""
    for place in _PLACE.finditer(text):
        start = text.rfind("\n", max(0, place.start() - _LONGEST_PATH), place.start()) + 1
        if (start or place.start() < _LONGEST_PATH) and _PATH.fullmatch(text, start, place.start()) is not None:
            yield start, place.end(), int(place[1])


_PATH = re.compile(r"[^\s:]+")


def decode(text: str) -> str:
    """`text` with JSON escapes replaced by their characters, except those that a string has to escape."""
    return _UNIT.sub(_decoded, text) if _UNIT_BEGINS.search(text) else text


def _decoded(escape: re.Match[str]) -> str:
    unit = int(escape[1], 16)
    return escape[0] if unit < 0x20 or unit in (0x22, 0x5C, 0x7F) or 0xD800 <= unit <= 0xDFFF else chr(unit)


def search_shown(text: str, token: Token, search: Callable[[str, Token], str]) -> str:
    """`text` without the secrets that `search` finds in it as shown."""
    shown = show(decode(text))
    if shown == text:
        return search(text, token)
    words_by_token: dict[str, dict[str, None]] = {}

    def token_for(secret: str) -> str:
        # A secret that ends with its line may include a part of an escape, which stays.
        tail = _TAIL.search(secret)
        word = secret if tail is None else secret[: tail.start()]
        replacement = token(word.translate(_NO_MARKS))
        if replacement != word:
            words_by_token.setdefault(replacement, {})[word] = None
        return replacement + secret[len(word) :]

    clean = search(shown, token_for)
    if clean == shown:
        return text
    return clean if "" in words_by_token else _insert_tokens(text, shown, clean, words_by_token)


def _insert_tokens(text: str, shown: str, clean: str, words_by_token: dict[str, dict[str, None]]) -> str:
    """`text` with the tokens of `clean`, which is `shown` with tokens in place of secrets."""
    place = _places(text)
    pieces: list[str] = []
    done = at_clean = at_shown = 0
    tokens = re.compile("|".join(map(re.escape, sorted(words_by_token, key=len, reverse=True))))
    for match in tokens.finditer(clean):
        at_shown += match.start() - at_clean
        at_clean = match.end()
        words = [_without_tokens(word, tokens, words_by_token) for word in words_by_token[match[0]]]
        word = next((word for word in words if shown.startswith(word, at_shown)), None)
        if word is None:  # a token of an earlier recording
            at_shown += len(match[0])
            continue
        pieces += (text[done : place(at_shown)], match[0])
        at_shown += len(word)
        done = place(at_shown)
    return "".join((*pieces, text[done:]))


def _without_tokens(word: str, tokens: re.Pattern[str], words_by_token: dict[str, dict[str, None]]) -> str:
    """A secret in which tokens of other secrets are replaced by these again."""
    return tokens.sub(lambda match: next(iter(words_by_token[match[0]])), word)


def _places(text: str) -> Callable[[int], int]:
    """A function from a place in the decoded form of `text` to the place in `text`."""
    decoded, behind, lost = [0], [0], 0
    for escape in _UNIT.finditer(text) if "\\u" in text else ():
        lost += len(escape[0]) - len(_decoded(escape))
        decoded.append(escape.end() - lost)
        behind.append(escape.end())

    def place(at: int) -> int:
        number = bisect_right(decoded, at) - 1
        return behind[number] + at - decoded[number]

    return place
