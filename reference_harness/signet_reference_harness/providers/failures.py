"""Failures of calls to providers: their kinds, and the waits that providers request."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec

from signet_reference_harness.errors import with_cause

ANTHROPIC: Final = re.compile(r"anthropic-ratelimit-(?P<scope>.+)-(?P<fact>remaining|reset)")
OPENAI: Final = re.compile(r"x-ratelimit-(?P<fact>remaining|reset)-(?P<scope>.+)")
DURATION: Final = re.compile(
    r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?"
)
SECONDS_OF_UNITS: Final = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)


def requested_wait(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that the provider requests to wait; None without a request. `now` is in seconds since 1970.

    Retry-After-Ms goes before Retry-After (seconds or a date), and both before the reset of a limit that has nothing
    remaining: Anthropic's anthropic-ratelimit-SCOPE-remaining and -reset (a time of day), OpenAI's
    x-ratelimit-remaining-SCOPE and -reset- (a duration such as 6m0s). Unreadable values are ignored.
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
    limits: dict[str, dict[str, str]] = {}
    for name, value in lower.items():
        match = ANTHROPIC.fullmatch(name) or OPENAI.fullmatch(name)
        if match is not None:
            limits.setdefault(match["scope"], {})[match["fact"]] = value
    used_up = (facts.get("reset") for facts in limits.values() if _number(facts.get("remaining")) == 0)
    return max((seconds for each in used_up if (seconds := _reset(each, now)) is not None), default=None)


def _number(text: str | None) -> float | None:
    match = re.fullmatch(r"\s*(\d{1,12}(\.\d{1,9})?)\s*", text or "", re.ASCII)
    return None if match is None else float(match[1])


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
    except (ValueError, TypeError, LookupError, OverflowError):  # parsedate_to_datetime raises all of them
        return None


class FailureKind(StrEnum):
    """The kind of a failure, which decides whether trying again can help."""

    NETWORK = "network"
    TIMEOUT = "timeout"
    RATE_LIMIT = "rate_limit"
    SERVER = "server"
    REFUSED = "refused"
    """The provider would refuse the call again: a wrong key, an unknown model, a bad request."""
    MALFORMED = "malformed"
    """The answer cannot be read."""


@dataclass(eq=False)
class CallFailure(Exception):  # noqa: N818  # an event inside this package, never seen by a caller
    """One attempt that failed. `words` are the code and the type of the provider's error, the more exact one first."""

    kind: FailureKind
    message: str
    _: KW_ONLY
    words: tuple[str, ...] = ()
    status: int | None = None
    requested_wait_s: float | None = None


_WORDS = Path(__file__).with_name("failure_words.json").read_bytes()
KIND_OF_WORD: Final = msgspec.json.decode(_WORDS, type=dict[str, FailureKind])
"""Vendors' words for errors. Those of kind `refused` may come with status 429, too, but no wait helps."""
LONGEST_MESSAGE: Final = 2_000
UNREADABLE: Final = (ValueError, TypeError, AttributeError, LookupError)


def answer_too_long(most: int) -> CallFailure:
    """The failure of an answer of more than `most` bytes. What arrived before is kept, and reading stops."""
    problem = f"it has more than {most} bytes (runtime.longest_answer in agent.yaml sets another limit)"
    return CallFailure(FailureKind.MALFORMED, problem)


def failure_of(error: Exception) -> CallFailure:
    """The failure that an exception of one attempt means."""
    if isinstance(error, CallFailure):
        return error
    if isinstance(error, httpx.TimeoutException):
        return CallFailure(FailureKind.TIMEOUT, f"no answer in time ({type(error).__name__})")
    if isinstance(error, httpx.HTTPError | httpx.StreamError | OSError):
        return CallFailure(FailureKind.NETWORK, with_cause(error))
    kind = FailureKind.MALFORMED if isinstance(error, UNREADABLE) else FailureKind.REFUSED
    return CallFailure(kind, f"{type(error).__name__}: {error}")


def failure_of_words(code: object, message: object) -> CallFailure:
    """The failure of an error within an answer of OpenAI's responses."""
    return failure_of_answer(None, {"code": code, "message": message}, {}, "no message", 0.0)


def failure_of_answer(
    status: int | None, body: object, headers: Mapping[str, str], text: str, now: float
) -> CallFailure:
    """The failure of an error answer, or of an error event, whose `status` is None.

    Its message is `text` if the body holds no message. `now` is in seconds since 1970.
    """
    error = _error_member(body)
    words = tuple(word for word in (error.get("code"), error.get("type")) if isinstance(word, str) and word)
    message = error.get("message")
    kind = next((KIND_OF_WORD[word] for word in words if word in KIND_OF_WORD), _kind_of_status(status, words))
    if headers.get("x-should-retry") == "false":
        kind = FailureKind.REFUSED
    return CallFailure(
        kind,
        (message if isinstance(message, str) and message else text)[:LONGEST_MESSAGE],
        words=words,
        status=status,
        requested_wait_s=requested_wait(headers, now),
    )


def _error_member(body: object) -> Mapping[str, Any]:
    """The object that holds code, type and message: the body's `error`, or the body itself."""
    if not isinstance(body, Mapping):
        return {}
    inner = body.get("error")
    if isinstance(inner, Mapping):
        return inner
    return {"message": inner} if isinstance(inner, str) else body


def _kind_of_status(status: int | None, words: tuple[str, ...]) -> FailureKind:
    if status == 408:
        return FailureKind.TIMEOUT
    if status == 429:
        return FailureKind.RATE_LIMIT
    if status is None:
        # The answer began normally, and an error came within it.
        return FailureKind.REFUSED if "invalid_request_error" in words else FailureKind.SERVER
    return FailureKind.SERVER if status >= 500 else FailureKind.REFUSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Clocks, sleep and randomness, which tests replace. `now` is in seconds since 1970."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    chance: Callable[[], float] = field(default=random.random)
