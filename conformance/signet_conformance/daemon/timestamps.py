"""Moments as the daemon writes and reads them: ISO-8601 in UTC with milliseconds."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeAlias

#: A source of the time in epoch seconds; tests hand in one that they move themselves.
Clock: TypeAlias = Callable[[], float]

_ISO: Final = re.compile(
    r"([+-]\d{6}|\d{4})(?:-(\d{2})(?:-(\d{2}))?)?"
    r"(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d+))?)?)?([Zz]|[+-]\d{2}:?\d{2})?"
)
_LOOSE: Final = (
    "%Y/%m/%d", "%m/%d/%Y", "%m/%d/%y", "%B %d %Y", "%b %d %Y", "%d %B %Y", "%d %b %Y", "%B %Y", "%b %Y",
    "%Y %b %d", "%a %b %d %Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%d %H:%M",
)  # fmt: skip


def iso(seconds: float) -> str:
    """`seconds` since the epoch as the daemon writes moments: ``2026-11-21T21:40:09.280Z``."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def read_moment(value: Any) -> float | None:
    """The epoch seconds of the moment that the text `value` names, else None.

    Read are ISO-8601 with its parts left off from the right (a date alone is midnight UTC), mail dates
    and a few everyday forms; the real parser takes some more.
    """
    if not isinstance(value, str) or not value.strip():
        return None
    text = value.strip()
    match = _ISO.fullmatch(text)
    if match:
        return _iso_moment(match)
    for form in _LOOSE:
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
    """`seconds` as the date line of an injected text: ``Saturday, November 21, 2026 at 9:40 PM (UTC)``."""
    moment = datetime.fromtimestamp(seconds, UTC)
    hour = moment.hour % 12 or 12
    return f"{moment:%A, %B} {moment.day}, {moment.year} at {hour}:{moment:%M %p} (UTC)"
