"""What a provider's headers say of its limits, and how long they ask to wait."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from signet_reference_harness.providers.completion import RateLimit

ANTHROPIC: Final = re.compile(r"anthropic-ratelimit-(?P<scope>.+)-(?P<fact>limit|remaining|reset)")
OPENAI: Final = re.compile(r"x-ratelimit-(?P<fact>limit|remaining|reset)-(?P<scope>.+)")
DURATION: Final = re.compile(
    r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?"
)
SECONDS_OF_UNITS: Final = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)


def rate_limits(headers: Mapping[str, str], now: float) -> tuple[RateLimit, ...]:
    """The limits that `headers` name, by scope in the order of their names. `now` is in seconds since 1970.

    Read are Anthropic's anthropic-ratelimit-SCOPE-limit, -remaining and -reset (a time of day) and OpenAI's
    x-ratelimit-limit-SCOPE, -remaining- and -reset- (a duration such as 6m0s). What cannot be read is left out.
    """
    scopes: dict[str, dict[str, str]] = {}
    for name, value in sorted(headers.items()):
        match = ANTHROPIC.fullmatch(name.lower()) or OPENAI.fullmatch(name.lower())
        if match is not None:
            scopes.setdefault(match["scope"], {})[match["fact"]] = value
    return tuple(
        RateLimit(
            scope=scope,
            limit=_count(facts.get("limit")),
            remaining=_count(facts.get("remaining")),
            reset_s=_reset(facts.get("reset"), now),
        )
        for scope, facts in scopes.items()
    )


def wait_asked(headers: Mapping[str, str], limits: tuple[RateLimit, ...], now: float) -> float | None:
    """Seconds that the provider asks to wait; None when it asks for none.

    Retry-After-Ms goes before Retry-After (seconds or a date), and both before the reset of a limit that has
    nothing remaining.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    milliseconds = _number(lower.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    after = lower.get("retry-after")
    if after is not None:
        seconds = _number(after)
        if seconds is None:
            seconds = _until(after, now, parsedate_to_datetime)
        if seconds is not None:
            return seconds
    return max((limit.reset_s for limit in limits if limit.remaining == 0 and limit.reset_s is not None), default=None)


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and re.fullmatch(r"\d{1,12}(\.\d{1,9})?", text.strip()) else None


def _count(text: str | None) -> int | None:
    number = _number(text)
    return None if number is None else int(number)


def _reset(text: str | None, now: float) -> float | None:
    if text is None:
        return None
    number = _number(text)
    if number is not None:
        return number
    match = DURATION.fullmatch(text.strip())
    if match is not None and any(match.groups()):
        return sum(float(part) * unit for part, unit in zip(match.groups(), SECONDS_OF_UNITS, strict=True) if part)
    return _until(text, now, datetime.fromisoformat)


def _until(text: str, now: float, read: Callable[[str], datetime]) -> float | None:
    try:
        when = read(text.strip())
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        return max(0.0, when.timestamp() - now)
    except (ValueError, TypeError, LookupError, OverflowError):  # the reader of mail's dates raises them all
        return None
