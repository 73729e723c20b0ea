"""Reads and writes JSON values and dates as JavaScript does.

The real daemon is written in JavaScript, and its answers to odd input follow from that: ``0``, ``""`` and ``null``
count as absent, an array has no fields, a number cannot be trimmed. A handler of the embedded daemon that reads
request fields through this module gives the same answers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeAlias, TypeGuard

#: What JavaScript's `trim` removes: the Unicode blanks and the byte order mark.
BLANKS: Final = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)

_EXACT_INTEGER: Final = 2**53
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NUMBER_PREFIX: Final = re.compile(r"[+-]?(?:Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_FLAGS: Final = {"1": True, "true": True, "0": False, "false": False}


class ScriptError(Exception):
    """Raised where the real daemon would throw a TypeError, as it calls a method on a value of the wrong type."""


class UnreadableJsonError(Exception):
    """Raised when a body is not JSON. `args[0]` is the message of the real daemon's parser."""


def parse_json(data: bytes) -> Any:
    """The JSON value in `data`: UTF-8, with bad bytes replaced and a leading byte order mark skipped.

    Raises `UnreadableJsonError`. Of duplicate keys the last one wins. Numbers beyond 2**53 lose precision, as in the
    daemon. A lone surrogate becomes U+FFFD, since neither SQLite nor UTF-8 can hold it.
    """
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_int=_integer)
    except RecursionError:
        raise UnreadableJsonError("JSON Parse error: Unable to parse JSON string") from None
    except ValueError as problem:
        raise UnreadableJsonError(f"JSON Parse error: {_complaint(text, problem)}") from None
    return _without_surrogates(value) if "\\u" in text else value


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _integer(digits: str) -> int | float:
    if len(digits) > 400:
        return -math.inf if digits.startswith("-") else math.inf
    number = int(digits)
    return number if -_EXACT_INTEGER <= number <= _EXACT_INTEGER else _float(number)


def _float(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


def write_json(value: Any) -> bytes:
    """`value` as JSON like JavaScript's: whole floats without a point, infinities and NaN as null."""
    return json.dumps(
        _with_javascript_numbers(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False
    ).encode("utf-8", "replace")


def _with_javascript_numbers(value: Any) -> Any:
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    if isinstance(value, dict):
        return {key: _with_javascript_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_javascript_numbers(item) for item in value]
    return value


def fields_of(value: Any) -> Mapping[str, Any]:
    """The fields of `value` if it is an object, else no fields. Raises `ScriptError` for null, as JavaScript throws."""
    if value is None:
        raise ScriptError("null has no fields")
    return value if isinstance(value, dict) else {}


def record(value: Any) -> dict[str, Any] | None:
    """`value` if it is an object, else None."""
    return value if isinstance(value, dict) else None


def truthy(value: Any) -> bool:
    """Whether JavaScript counts `value` as true: all but null, false, 0 and ``""`` (an empty list is true)."""
    if value is None or value is False or value == "":
        return False
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value != 0
    return True


def is_number(value: Any) -> TypeGuard[float]:
    """Whether `value` is a JSON number (true and false are not)."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def trimmed(value: Any) -> str | None:
    """The string `value` trimmed, or None for null. Raises `ScriptError` for any other type."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise ScriptError("trim is not a function")
    return value.strip(BLANKS)


def text_or_none(value: Any) -> str | None:
    """`value` trimmed if it is a string; None for other types and for a blank string."""
    return (value.strip(BLANKS) or None) if isinstance(value, str) else None


def number_or_none(value: Any) -> float | None:
    """`value` if it is a finite number, or the finite number that it begins with if it is a string; else None."""
    if is_number(value):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        match = _NUMBER_PREFIX.match(value.strip(BLANKS))
        number = float(match[0].replace("Infinity", "inf")) if match else math.nan
        return number if math.isfinite(number) else None
    return None


def positive_integer(value: Any) -> int | None:
    """The number of `number_or_none` if it is an integer above 0, else None."""
    number = number_or_none(value)
    return int(number) if number is not None and float(number).is_integer() and number > 0 else None


def leading_integer(text: str | None, default: int) -> int | None:
    """The integer at the start of a query parameter; `default` when it is absent, None when it is not a number."""
    match = re.match(r"[+-]?\d+", (text or str(default)).strip(BLANKS))
    return int(match[0]) if match else None


def flag(value: Any) -> bool | None:
    """`value` as a boolean: true, false, 1, 0 or one of these as text; None for anything else."""
    if isinstance(value, bool):
        return value
    if is_number(value):
        return {1.0: True, 0.0: False}.get(value)
    return _FLAGS.get(value.strip(BLANKS).lower()) if isinstance(value, str) else None


def slice_end(value: Any, default: int) -> int | None:
    """`value` as the end of JavaScript's `slice`: `default` for null, 0 if it is not a number, None for no limit."""
    if value is None:
        return default
    if isinstance(value, str):
        try:
            value = float(value.strip(BLANKS) or "0")
        except ValueError:
            return 0
    if not isinstance(value, int | float) or math.isnan(value):
        return 0
    return (None if value > 0 else 0) if math.isinf(value) else int(value)


_PUNCTUATION: Final = frozenset("{}[]():;,.=<>+-*/%&|^!~?")

_UNQUOTED_NAME: Final = "Property name must be a string literal"
_TRAILING_COMMA: Final = "Unexpected comma at the end of array expression"


def _complaint(text: str, problem: ValueError) -> str:
    """The message of the real daemon's parser for `text`, derived from the message and place of Python's error."""
    if not isinstance(problem, json.JSONDecodeError):
        return f'Unexpected identifier "{problem}"'
    before, rest = text[: problem.pos].rstrip(), text[problem.pos :]
    if problem.msg.startswith(("Unterminated string", "Invalid control character")):
        return "Unterminated string"
    if problem.msg.startswith("Invalid \\"):
        return f"Invalid escape character {rest[1:2]}"
    if problem.msg == "Extra data":
        return "Unable to parse JSON string"
    if not rest.strip(" \t\r\n"):
        return "Unexpected EOF"
    if rest[0] == "'":
        return "Single quotes (') are not allowed in JSON"
    # "Illegal trailing comma before end of …" is Python's message since 3.13.
    if problem.msg.endswith("before end of object"):
        return _UNQUOTED_NAME
    if problem.msg.endswith("before end of array"):
        return _TRAILING_COMMA
    if problem.msg.startswith("Expecting property name"):
        return _UNQUOTED_NAME if before.endswith(",") else "Expected '}'"
    if problem.msg.startswith("Expecting ',' delimiter"):
        return "Expected '}'"
    if rest[0] == "]" and before.endswith(","):
        return _TRAILING_COMMA
    if word := re.match(r"[^\W\d]\w*", rest):
        return f'Unexpected identifier "{word[0]}"'
    return f"{'Unexpected' if rest[0] in _PUNCTUATION else 'Unrecognized'} token '{rest[0]}'"


#: Returns the time in epoch seconds. Tests pass a clock that they set.
Clock: TypeAlias = Callable[[], float]

_ISO: Final = re.compile(
    r"([+-]\d{6}|\d{4})(?:-(\d{2})(?:-(\d{2}))?)?"
    r"(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d+))?)?)?([Zz]|[+-]\d{2}:?\d{2})?"
)
_OTHER_DATE_FORMATS: Final = (
    "%Y/%m/%d", "%m/%d/%Y", "%m/%d/%y", "%B %d %Y", "%b %d %Y", "%d %B %Y", "%d %b %Y", "%B %Y", "%b %Y",
    "%Y %b %d", "%a %b %d %Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%d %H:%M",
)  # fmt: skip


def iso(seconds: float) -> str:
    """Epoch seconds as JavaScript's `toISOString` writes them: ``2026-11-21T21:40:09.280Z``."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def read_moment(value: Any) -> float | None:
    """The epoch seconds of a date string, else None.

    It reads ISO 8601 down to a year alone (a date without a time is midnight UTC), dates of e-mail headers and a few
    other formats. JavaScript's `Date` reads some more.
    """
    if not isinstance(value, str) or not value.strip():
        return None
    text = value.strip()
    match = _ISO.fullmatch(text)
    if match:
        return _iso_moment(match)
    for form in _OTHER_DATE_FORMATS:
        try:
            return datetime.strptime(text.replace(",", ""), form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _iso_moment(match: re.Match[str]) -> float | None:
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        midnight = datetime(int(year), int(month or 1), 1, tzinfo=_zone(zone))
        if not 1 <= int(day or 1) <= 31 or int(hour or 0) > 24 or int(minute or 0) > 59 or int(second or 0) > 59:
            return None
        clock = timedelta(
            days=int(day or 1) - 1, hours=int(hour or 0), minutes=int(minute or 0), seconds=int(second or 0)
        )
        return (midnight + clock).timestamp() + float(f"0.{fraction or 0}")
    except (ValueError, OverflowError):
        return None


def _zone(text: str | None) -> timezone:
    if not text or text in "Zz":
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))


def date_line(seconds: float) -> str:
    """Epoch seconds as injected text writes the date: ``Saturday, November 21, 2026 at 9:40 PM (UTC)``."""
    moment = datetime.fromtimestamp(seconds, UTC)
    hour = moment.hour % 12 or 12
    return f"{moment:%A, %B} {moment.day}, {moment.year} at {hour}:{moment:%M %p} (UTC)"


def moment_line(seconds: float) -> str:
    """Epoch seconds as the daemon writes the time of a turn: ``2026-11-21T21:40:05+00:00 (UTC)``."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}+00:00 (UTC)"
