"""Secrets in JSON inside a string, where their name is not directly before them: in lists, objects, pairs.

Looks at the places that `secret_walk` looks at in JSON itself, up to four strings deep, wherever the JSON is in a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from signet_recording_proxy.redaction.named_values import SAMPLE, end_of_string
from signet_recording_proxy.redaction.secret_names import NAME_MEMBERS, is_secret_member, is_value_of

_BLANKS = r"\s{0,64}+"
_NAMING = "|".join(NAME_MEMBERS)
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

Span = tuple[int, int]


class _Nested:
    """All of those places."""

    def replace(self, text: str, token: Callable[[str], str]) -> str:
        """`text` with each secret replaced by what `token` gives for it."""
        if '"' not in text:
            return text
        pieces: list[str] = []
        done = 0
        for start, end in sorted({*_under_names(text), *_beside_names(text)}):
            if start >= done:
                pieces += (text[done:start], token(text[start:end]))
                done = end
        return "".join((*pieces, text[done:])) if pieces else text


def _under_names(text: str) -> Iterator[Span]:
    for opening in _OPENING.finditer(text):
        name, opens = opening["name"], opening["opens"]
        if (opening["sign"] == "," and not opening["pair"]) or not is_secret_member(name, SAMPLE):
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
    if _PAIR_ENDS.match(text, after) and _is_said_beside(opening["name"], text[slice(*span)]):
        yield span


def _items(text: str, opening: re.Match[str], name: str) -> list[Span]:
    """The strings of a list; none of a list that holds more than strings and numbers."""
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
    # A list that the text breaks off may go on with anything.
    return spans if at >= len(text) or _ENDS.match(text, at) or len(spans) == _MOST else []


def _members(text: str, opening: re.Match[str], name: str) -> Iterator[Span]:
    at = opening.end() + 1
    for _ in range(_MOST):
        member = _MEMBER.match(text, at)
        if member is None or member["marks"] != opening["marks"]:
            return
        span = member.end(), end_of_string(text, member.end(), len(member["marks"]))
        if span[0] < span[1] and is_value_of(name, member["name"], text[slice(*span)]):
            yield span
        after = _NEXT.match(text, span[1] + len(member["marks"]) + 1)
        if after is None:
            return
        at = after.end()


def _beside_names(text: str) -> Iterator[Span]:
    for named in _NAMED.finditer(text):
        if is_secret_member(named["name"], SAMPLE):
            span = named.end(), end_of_string(text, named.end(), len(named["marks"]))
            if span[0] < span[1] and _is_said_beside(named["name"], text[slice(*span)]):
                yield span
    for value in _VALUE.finditer(text):
        span = value.end(), end_of_string(text, value.end(), len(value["marks"]))
        name = _name_after(value["marks"]).match(text, span[1])
        if span[0] < span[1] and name is not None and _is_said_beside(name["name"], text[slice(*span)]):
            yield span


def _name_after(marks: str) -> re.Pattern[str]:
    quote = re.escape(marks + '"')
    return re.compile(
        rf"{quote}{_BLANKS},{_BLANKS}{quote}(?:{_NAMING}){quote}{_BLANKS}:{_BLANKS}"
        rf"{quote}(?P<name>[A-Za-z0-9_.\-]{{1,64}}+){quote}"
    )


def _is_said_beside(name: str, value: str) -> bool:
    # Several words only follow such a name, as in a list of tags.
    return is_secret_member(name, value) and (len(value.split()) == 1 or name.lower().endswith("authorization"))


NESTED = _Nested()
