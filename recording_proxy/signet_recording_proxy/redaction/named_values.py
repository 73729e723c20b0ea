"""Secrets that running text names: JSON inside of strings, query strings, forms.

A name is looked for first, and its value only when the name means a secret. So a value that is not secret
is searched for further names, and no text is walked twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from urllib.parse import unquote_plus

from msgspec import Struct

from signet_recording_proxy.redaction.secret_names import (
    ALWAYS,
    MIXED,
    ONE_WORD,
    QUERY_ALWAYS,
    QUERY_MIXED,
    is_secret_member,
    is_secret_parameter,
)

SAMPLE = "a1b2c3d4e5f6"
"""What every kind of name takes for a secret."""
_QUOTES = re.compile(r"(\\*+)\"")
_PARAMETER = r"[A-Za-z0-9_.\-\[\]]{1,64}+"
_LINE = re.compile(r"[^\r\n]++")


class NamedValue(Struct, frozen=True):
    """One way to write a name before a value.

    The last group of `opening` is the name, `end` gives the end of the value that begins after the match.
    """

    opening: re.Pattern[str]
    end: Callable[[str, re.Match[str]], int]
    is_secret: Callable[[str, str], bool]

    def replace(self, text: str, token: Callable[[str], str]) -> str:
        """`text` with each secret replaced by what `token` gives for it."""
        pieces: list[str] = []
        done = 0
        for match in self.opening.finditer(text):
            start, name = match.end(), match[match.lastindex or 0]
            if start < done or not self.is_secret(name, SAMPLE):
                continue
            end = self.end(text, match)
            if start < end and self.is_secret(name, text[start:end]):
                pieces += (text[done:start], token(text[start:end]))
                done = end
        return "".join((*pieces, text[done:])) if pieces else text


def end_of_string(text: str, start: int, depth: int) -> int:
    """Where a JSON string ends that begins at `start`, given the number of backslashes before its quotes."""
    for quote in _QUOTES.finditer(text, start):
        marks = len(quote[1])
        # Fewer end the string around it; a whole number of escaped backslashes may stand before the last of ours.
        if marks < depth or marks % (2 * depth + 2) == depth:
            return quote.end() - 1 - min(marks, depth)
    return len(text)


def _end_of_value(text: str, opening: re.Match[str]) -> int:
    return end_of_string(text, opening.end(), len(opening[1]))


def _end_of(pattern: re.Pattern[str]) -> Callable[[str, re.Match[str]], int]:
    def end(text: str, opening: re.Match[str]) -> int:
        value = pattern.match(text, opening.end())
        return opening.end() if value is None else value.end()

    return end


MEMBERS = NamedValue(
    re.compile(r"(?<!\\)(\\{0,15}+)\"([A-Za-z0-9_.\-]{1,64}+)\1\"\s{0,8}:\s{0,8}\1\""),
    _end_of_value,
    is_secret_member,
)
"""Members of JSON that is inside a string, up to four strings deep."""
PARAMETERS = NamedValue(
    re.compile(rf"[?&#](?:amp;)?({_PARAMETER})="),
    _end_of(re.compile(rf"(?:[^&?;\s\"'<>#\\]|[?;](?!{_PARAMETER}=))++")),
    is_secret_parameter,
)
"""Query strings and fragments in text. A question mark belongs to the value, unless it begins a query of its own."""
QUERY_REST = NamedValue(re.compile(f"[;?]({_PARAMETER})="), PARAMETERS.end, is_secret_parameter)
"""What stands behind a semicolon in the value of a query's field."""
PATH = NamedValue(re.compile(f"[/;&#]({_PARAMETER})="), _end_of(re.compile(r"[^/;?&#]++")), is_secret_parameter)
"""`/x;token=…` in a path."""
FORM = NamedValue(
    re.compile(r"(?:\A|[&;])([^=&;\s]{1,64}+)="),
    _end_of(re.compile(r"[^&;\s]++")),
    lambda name, value: is_secret_parameter(unquote_plus(name), value),
)
"""Text that is a form as a whole; at the beginning of other text, any words may come before the name."""
MULTIPART = NamedValue(
    re.compile(
        r"(?i:form-data)(?:;[^;\r\n]{0,256}+){0,4}?;\s{0,4}(?i:name)"
        r"(?:\s{0,4}=\s{0,4}[\"']?|\*\s{0,4}=\s{0,4}[A-Za-z0-9-]{0,16}'[A-Za-z-]{0,16}')([^\"'\r\n;]{1,64}+)[\"']?"
        r"[^\r\n]{0,256}+\r?\n(?:[^\r\n]{1,256}+\r?\n){0,8}+\r?\n"
    ),
    _end_of(_LINE),
    is_secret_parameter,
)
"""Fields of multipart/form-data."""

SQUEEZED_OUT = b"_-.\\[]0123456789"
"""What may stand between the letters of a name."""
NAME_ENDINGS = tuple(ending.encode() for ending in (*ALWAYS, *ONE_WORD, *MIXED))


def backwards(mark: bytes, endings: Iterable[bytes]) -> re.Pattern[bytes]:
    """What finds one of these endings before a mark, in bytes turned round: marks are rare, letters are not."""
    return re.compile(mark + b"(?:" + b"|".join(sorted({re.escape(ending[::-1]) for ending in endings})) + b")")


_BEFORE_QUOTE = backwards(b'"', NAME_ENDINGS)
NAMES_BEFORE_SIGN = tuple(name.encode() for name in (*QUERY_ALWAYS, *QUERY_MIXED))
"""Names that mean a secret in a query string, beside those that always do."""
_BEFORE_SIGN = backwards(b"=", (*NAME_ENDINGS, *NAMES_BEFORE_SIGN))


def suspected(lowered: bytes) -> list[NamedValue]:
    """Which of these lower-case bytes, text or a JSON line, may hold: judged by what stands before quotes and `=`."""
    squeezed = lowered.translate(None, SQUEEZED_OUT)[::-1]
    patterns = []
    if _BEFORE_SIGN.search(squeezed):
        patterns.append(PARAMETERS)
    if _BEFORE_QUOTE.search(squeezed):
        patterns += [MULTIPART, MEMBERS]
    elif b"form-data" in lowered:
        patterns.append(MULTIPART)
    return patterns
