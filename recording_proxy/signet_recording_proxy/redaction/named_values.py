"""Finds secrets that running text names: JSON inside strings, query strings, forms.

Names are found first, and a value is examined only if its name means a secret. So a value that is not secret is
itself searched for names, and no text is searched twice. JSON inside a string, up to four strings deep, may also have
the name apart from the value, in the lists, objects and pairs that `secret_walk` knows in JSON itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import unquote_plus

from msgspec import Struct

from signet_recording_proxy.redaction import secret_names
from signet_recording_proxy.redaction.secret_names import NAMES, is_secret_member, is_secret_parameter
from signet_recording_proxy.redaction.shown_text import LINE_BREAK
from signet_recording_proxy.redaction.spans import Span, Token, replace_spans

_QUOTES = re.compile(r"(\\*+)\"")
_PARAMETER = r"[A-Za-z0-9_.\-\[\]]{1,64}+"
_LINE = re.compile(rf"(?:(?!{LINE_BREAK})[^\r\n])++")


class NamedValue(Struct, frozen=True):
    """One way to write a name before a value.

    The last group of `opening` is the name, `end` gives the end of the value that begins after the match.
    """

    opening: re.Pattern[str]
    end: Callable[[str, re.Match[str]], int]
    is_secret: Callable[[str, str], bool]

    def replace(self, text: str, token: Token) -> str:
        """`text` with each secret replaced by its token."""
        return replace_spans(text, self._spans(text), token)

    def _spans(self, text: str) -> Iterator[Span]:
        done = 0
        for match in self.opening.finditer(text):
            start, name = match.end(), match[match.lastindex or 0]
            if start < done or not self.is_secret(name, secret_names.SAMPLE):
                continue
            end = self.end(text, match)
            if start < end and self.is_secret(name, text[start:end]):
                yield start, end
                done = end


def end_of_string(text: str, start: int, depth: int) -> int:
    """The end of the JSON string that begins at `start`, given the number of backslashes before its quotes."""
    for quote in _QUOTES.finditer(text, start):
        marks = len(quote[1])
        # Fewer backslashes end the string around it. Escaped backslashes may precede those of the quote.
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
    re.compile(r"(?<!\\)(\\{0,15}+)\"([A-Za-z0-9_.\-]{1,64}+)\1\"\s{0,8}:\s{0,8}\1\""), _end_of_value, is_secret_member
)
"""Members of JSON that is inside a string, up to four strings deep."""
PARAMETERS = NamedValue(
    re.compile(rf"[?&#](?:amp;)?({_PARAMETER})="),
    _end_of(re.compile(rf"(?:[^&?;\s\"'<>#\\]|[?;](?!{_PARAMETER}=))++")),
    is_secret_parameter,
)
"""Query strings and fragments in text. A question mark belongs to the value, unless it begins a query of its own."""
QUERY_REST = NamedValue(re.compile(f"[;?]({_PARAMETER})="), PARAMETERS.end, is_secret_parameter)
"""Parameters after a semicolon or question mark in the value of a query's field."""
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
        r"(?:\s{0,4}=\s{0,4}\\{0,8}[\"']?|\*\s{0,4}=\s{0,4}[A-Za-z0-9-]{0,16}'[A-Za-z-]{0,16}')"
        r"([^\"'\r\n;\\]{1,64}+)"
        rf"[^\r\n]{{0,256}}+{LINE_BREAK}(?:(?:(?!{LINE_BREAK})[^\r\n]){{1,256}}+{LINE_BREAK}){{0,8}}+{LINE_BREAK}"
    ),
    _end_of(_LINE),
    is_secret_parameter,
)
"""Fields of multipart/form-data."""

SQUEEZED_OUT = b"_-.\\[]0123456789"
"""What may stand between the letters of a name."""
NAME_ENDINGS = tuple(ending.encode() for ending in (*NAMES.always, *NAMES.one_word, *NAMES.mixed_keys, *NAMES.mixed))
NAMES_BEFORE_SIGN = tuple(name.encode() for name in (*NAMES.query_always, *NAMES.query_mixed))
"""Names that mean a secret in a query string, beside those that always do."""


_BLANKS = r"\s{0,64}+"
_NAMING = "|".join(NAMES.name_members)
_OPENING = re.compile(
    # What stands before a pair, or before a name that a member gives to the next one.
    rf"(?:(?:\[|\]{_BLANKS},){_BLANKS}(?P<pair>\[){_BLANKS})?"
    rf"(?<!\\)(?P<marks>\\{{0,15}}+)\"(?P<name>[A-Za-z0-9_.\-]{{1,64}}+)(?P=marks)\"{_BLANKS}"
    rf"(?P<sign>[:,]){_BLANKS}(?=(?P<opens>[\[{{])?)"
)
_NAMED = re.compile(
    rf"(?<!\\)(?P<marks>\\{{0,15}}+)\"(?:{_NAMING})(?P=marks)\"{_BLANKS}:{_BLANKS}"
    rf"(?P=marks)\"(?P<name>[A-Za-z0-9_.\-]{{1,64}}+)(?P=marks)\"{_BLANKS},{_BLANKS}"
    rf"(?P=marks)\"value(?P=marks)\"{_BLANKS}:{_BLANKS}(?P=marks)\""
)
_VALUE = re.compile(rf"(?<!\\)(?P<marks>\\{{0,15}}+)\"value(?P=marks)\"{_BLANKS}:{_BLANKS}(?P=marks)\"")
_STRING = re.compile(rf"{_BLANKS}(?P<marks>\\{{0,15}}+)\"")
_MEMBER = re.compile(
    rf"{_BLANKS}(?P<marks>\\{{0,15}}+)\"(?P<name>[A-Za-z0-9_.\-]{{1,64}}+)(?P=marks)\"{_BLANKS}:{_BLANKS}(?P=marks)\""
)
_NEXT = re.compile(rf"{_BLANKS},")
_NUMBER = re.compile(rf"{_BLANKS}-?[0-9][0-9.eE+-]{{0,32}}+")
_ENDS = re.compile(rf"{_BLANKS}\]")
_PAIR_ENDS = re.compile(rf"{_BLANKS}\]{_BLANKS}(?:\]|,{_BLANKS}\[)")
_MOST = 256


def replace_nested(text: str, windows: Iterable[Span], token: Token) -> str:
    """Replace secrets that are apart from their names: the names are in the windows, the secrets perhaps after them."""
    spans = {
        span for window in windows for find in (_under_names, _values_beside_names) for span in find(text, *window)
    }
    return replace_spans(text, sorted(spans), token)


def _under_names(text: str, first: int, last: int) -> Iterator[Span]:
    for opening in _OPENING.finditer(text, first, last):
        name, opens = opening["name"], opening["opens"]
        if (opening["sign"] == "," and not opening["pair"]) or not secret_names.names_secret(name):
            continue
        if opens == "[":
            yield from _items(text, opening, name)
        elif opens == "{":
            yield from _members(text, opening, name)
        elif opening["sign"] == ",":
            yield from _pair(text, opening)


def _pair(text: str, opening: re.Match[str]) -> Iterator[Span]:
    value = _STRING.match(text, opening.end())
    if value is None or value["marks"] != opening["marks"]:
        return
    span = value.end(), end_of_string(text, value.end(), len(value["marks"]))
    after = span[1] + len(value["marks"]) + 1
    if _PAIR_ENDS.match(text, after) and _is_named_beside(opening["name"], text[slice(*span)]):
        yield span


def _items(text: str, opening: re.Match[str], name: str) -> list[Span]:
    """The secrets in a list of strings and numbers; nothing for a list that holds other values."""
    at, marks = opening.end() + 1, opening["marks"]
    spans: list[Span] = []
    for _ in range(_MOST):
        value = _STRING.match(text, at)
        if value is not None and value["marks"] == marks:
            span = value.end(), end_of_string(text, value.end(), len(marks))
            if span[0] < span[1] and is_secret_member(name, text[slice(*span)]):
                spans.append(span)
            at = span[1] + len(marks) + 1
        elif (number := _NUMBER.match(text, at)) is not None:
            at = number.end()
        else:
            return []
        after = _NEXT.match(text, at)
        if after is None:
            break
        at = after.end()
    # If the text ends within the list, its strings count.
    return spans if at >= len(text) or _ENDS.match(text, at) or len(spans) == _MOST else []


def _members(text: str, opening: re.Match[str], name: str) -> Iterator[Span]:
    at = opening.end() + 1
    for _ in range(_MOST):
        member = _MEMBER.match(text, at)
        if member is None or member["marks"] != opening["marks"]:
            return
        span = member.end(), end_of_string(text, member.end(), len(member["marks"]))
        if span[0] < span[1] and secret_names.is_value_of(name, member["name"], text[slice(*span)]):
            yield span
        after = _NEXT.match(text, span[1] + len(member["marks"]) + 1)
        if after is None:
            return
        at = after.end()


def _values_beside_names(text: str, first: int, last: int) -> Iterator[Span]:
    if text.find("value", first, last) < 0:
        return
    for named in _NAMED.finditer(text, first, last):
        if secret_names.names_secret(named["name"]):
            span = named.end(), end_of_string(text, named.end(), len(named["marks"]))
            if span[0] < span[1] and _is_named_beside(named["name"], text[slice(*span)]):
                yield span
    for value in _VALUE.finditer(text, first, last):
        span = value.end(), end_of_string(text, value.end(), len(value["marks"]))
        name = _name_after(value["marks"]).match(text, span[1])
        if span[0] < span[1] and name is not None and _is_named_beside(name["name"], text[slice(*span)]):
            yield span


def _name_after(marks: str) -> re.Pattern[str]:
    quote = re.escape(marks + '"')
    return re.compile(
        rf"{quote}{_BLANKS},{_BLANKS}{quote}(?:{_NAMING}){quote}{_BLANKS}:{_BLANKS}"
        rf"{quote}(?P<name>[A-Za-z0-9_.\-]{{1,64}}+){quote}"
    )


def _is_named_beside(name: str, value: str) -> bool:
    # Several words only follow such a name, as in a list of tags.
    return is_secret_member(name, value) and (len(value.split()) == 1 or name.lower().endswith("authorization"))
