"""The texts in which the real daemon's JSON parser refuses a body; `secrets/exec` passes them on to the caller."""

from __future__ import annotations

import re
from typing import Final

_PREFIX: Final = "JSON Parse error: "
_SPACE: Final = " \t\r\n"
_WORD: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_PUNCTUATION: Final = "{}[](),:.=;"
_ESCAPES: Final = '"\\/bfnrt'
_LITERALS: Final = ("true", "false", "null")
_LEFTOVER: Final = "Unable to parse JSON string"


class _ComplaintError(Exception):
    pass


def complaint(text: str) -> str:
    """What the parser says about `text`, which is known not to be JSON."""
    try:
        end = _blanks(text, _value(text, _blanks(text, 0)))
    except _ComplaintError as complaint:
        return _PREFIX + str(complaint.args[0])
    except RecursionError:
        end = 0
    return _PREFIX + (_LEFTOVER if end < len(text) else "Unexpected EOF")


def _blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _value(text: str, at: int) -> int:
    """The index after the value that starts at `at`."""
    if at >= len(text):
        raise _ComplaintError("Unexpected EOF")
    char = text[at]
    if char == "{":
        return _object(text, at + 1)
    if char == "[":
        return _array(text, at + 1)
    if char == '"':
        return _string(text, at + 1)
    if char == "-" or char.isdigit():
        return _number(text, at)
    word = _WORD.match(text, at)
    if word and word[0] in _LITERALS:
        return word.end()
    raise _ComplaintError(_unexpected(text, at, word[0] if word else None))


def _unexpected(text: str, at: int, word: str | None) -> str:
    if word is not None:
        return f'Unexpected identifier "{word}"'
    if text[at] == "'":
        return "Single quotes (') are not allowed in JSON"
    kind = "Unexpected token" if text[at] in _PUNCTUATION else "Unrecognized token"
    return f"{kind} '{text[at]}'"


def _object(text: str, at: int) -> int:
    at = _blanks(text, at)
    first = True
    while True:
        if first and text[at : at + 1] == "}":
            return at + 1
        if text[at : at + 1] != '"':
            if text[at : at + 1] == "'":
                raise _ComplaintError(_unexpected(text, at, None))
            raise _ComplaintError("Expected '}'" if first else "Property name must be a string literal")
        at = _blanks(text, _string(text, at + 1))
        if text[at : at + 1] != ":":
            raise _ComplaintError("Expected ':' before value in object property definition")
        at = _blanks(text, _value(text, _blanks(text, at + 1)))
        if text[at : at + 1] == ",":
            at, first = _blanks(text, at + 1), False
        elif text[at : at + 1] == "}":
            return at + 1
        else:
            raise _ComplaintError("Expected '}'")


def _array(text: str, at: int) -> int:
    at = _blanks(text, at)
    if text[at : at + 1] == "]":
        return at + 1
    while True:
        at = _blanks(text, _value(text, at))
        if text[at : at + 1] == "]":
            return at + 1
        if text[at : at + 1] != ",":
            raise _ComplaintError("Expected ']'")
        at = _blanks(text, at + 1)
        if text[at : at + 1] == "]":
            raise _ComplaintError("Unexpected comma at the end of array expression")


def _string(text: str, at: int) -> int:
    while at < len(text) and text[at] != '"':
        if text[at] < " ":
            break
        if text[at] == "\\":
            at = _escape(text, at + 1)
        else:
            at += 1
    if text[at : at + 1] != '"':
        raise _ComplaintError("Unterminated string")
    return at + 1


def _escape(text: str, at: int) -> int:
    if at >= len(text):
        raise _ComplaintError("Unterminated string")
    if text[at] == "u":
        if re.match(r"[0-9a-fA-F]{4}", text[at + 1 : at + 5]):
            return at + 5
        raise _ComplaintError(f'"\\{text[at : at + 5]}" is not a valid unicode escape')
    if text[at] not in _ESCAPES:
        raise _ComplaintError(f"Invalid escape character {text[at]}")
    return at + 1


def _number(text: str, at: int) -> int:
    match = _NUMBER.match(text, at)
    if not match:
        raise _ComplaintError("Invalid number")
    if text[match.end() : match.end() + 1] == ".":
        raise _ComplaintError("Invalid digits after decimal point")
    return match.end()
