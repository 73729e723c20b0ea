"""What went wrong with a call to a provider, read from the vendors' exceptions without naming their HTTP types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from signet_reference_harness.errors import ProviderDeferredError, ProviderError
from signet_reference_harness.providers.completion import RateLimit
from signet_reference_harness.providers.rate_limits import rate_limits, wait_asked


class FailureKind(StrEnum):
    """What kind of thing failed, which decides whether trying again can help."""

    NETWORK = "network"
    TIMEOUT = "timeout"
    RATE_LIMIT = "rate_limit"
    SERVER = "server"
    REFUSED = "refused"
    """The provider understood and will say the same again: a wrong key, an unknown model, a bad request."""
    MALFORMED = "malformed"
    """What arrived cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFacts:
    """What is known of a call that failed: of which kind, with which HTTP status, after how many attempts."""

    kind: FailureKind
    status: int | None = None
    attempts: int = 1
    rate_limits: tuple[RateLimit, ...] = ()


class CallError(ProviderError):
    """Raised when a provider cannot answer."""

    def __init__(self, message: str, facts: CallFacts, *, remedy: str | None = None, raw_reason: str | None) -> None:
        self.facts = facts
        super().__init__(message, remedy=remedy, raw_reason=raw_reason)


class CallDeferredError(ProviderDeferredError):
    """Raised when the provider asks for a longer wait than the policy allows."""

    def __init__(self, message: str, seconds: float, facts: CallFacts, *, remedy: str, raw_reason: str | None) -> None:
        self.facts = facts
        super().__init__(message, seconds, remedy=remedy, raw_reason=raw_reason)


class Failure(Exception):  # noqa: N818  # an event inside this package, never seen by a caller
    """One attempt that failed. `words` are the provider's code and type, the more exact one first."""

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        words: tuple[str, ...] = (),
        status: int | None = None,
        limits: tuple[RateLimit, ...] = (),
        wait_asked_s: float | None = None,
    ) -> None:
        self.kind = kind
        self.message = message
        self.words = words
        self.status = status
        self.limits = limits
        self.wait_asked_s = wait_asked_s
        super().__init__(message)


KIND_OF_WORD: Final[Mapping[str, FailureKind]] = {
    "overloaded_error": FailureKind.SERVER,
    "api_error": FailureKind.SERVER,
    "server_error": FailureKind.SERVER,
    "internal_error": FailureKind.SERVER,
    "timeout_error": FailureKind.TIMEOUT,
    "rate_limit_error": FailureKind.RATE_LIMIT,
    "rate_limit_exceeded": FailureKind.RATE_LIMIT,
    # These come with status 429 too, and no wait helps.
    "insufficient_quota": FailureKind.REFUSED,
    "billing_hard_limit_reached": FailureKind.REFUSED,
}
LONGEST_MESSAGE: Final = 2_000
UNREADABLE: Final = (ValueError, TypeError, AttributeError, LookupError)
# The base classes of the HTTP libraries that the vendors' packages came with, by name: importing them would tie
# this harness to one of them.
TIMEOUT_CLASSES: Final = frozenset({"TimeoutException", "TimeoutError", "APITimeoutError"})
NETWORK_CLASSES: Final = frozenset({"TransportError", "StreamError", "HTTPError", "APIConnectionError", "OSError"})


def failure_of(error: Exception, now: float) -> Failure:
    """What an exception of a vendor's package means. `now` is in seconds since 1970.

    An error answer's headers are those of the exception's `response`, where it has that.
    """
    if isinstance(error, Failure):
        return error
    classes = {base.__name__ for base in type(error).__mro__}
    if classes & TIMEOUT_CLASSES:
        return Failure(FailureKind.TIMEOUT, f"no answer in time ({type(error).__name__})")
    if classes & NETWORK_CLASSES:
        return Failure(FailureKind.NETWORK, _with_cause(error))
    status = getattr(error, "status_code", None)
    body = getattr(error, "body", None)
    if isinstance(status, int) or body is not None:
        headers = getattr(getattr(error, "response", None), "headers", None)
        return answered(
            status if isinstance(status, int) and status > 0 else None, body, headers or {}, _text(error), now
        )
    if isinstance(error, UNREADABLE):
        return Failure(FailureKind.MALFORMED, f"{type(error).__name__}: {error}")
    return Failure(FailureKind.REFUSED, f"{type(error).__name__}: {error}")


def failure_of_words(code: object, kind: object, message: object) -> Failure:
    """An error that the provider told in the middle of an answer."""
    words = tuple(word for word in (code, kind) if isinstance(word, str) and word)
    return Failure(
        next((KIND_OF_WORD[word] for word in words if word in KIND_OF_WORD), FailureKind.SERVER),
        message if isinstance(message, str) and message else "no message",
        words=words,
    )


def answered(status: int | None, body: object, headers: Mapping[str, str], text: str, now: float) -> Failure:
    """An answer that is an error; `text` is shown where the body holds no message. `now` is in seconds since 1970."""
    told = _error_member(body)
    words = tuple(word for word in (told.get("code"), told.get("type")) if isinstance(word, str) and word)
    message = told.get("message")
    limits = rate_limits(headers, now)
    kind = next((KIND_OF_WORD[word] for word in words if word in KIND_OF_WORD), _kind_of_status(status, words))
    if headers.get("x-should-retry") == "false":
        kind = FailureKind.REFUSED
    return Failure(
        kind,
        (message if isinstance(message, str) and message else text)[:LONGEST_MESSAGE],
        words=words,
        status=status,
        limits=limits,
        wait_asked_s=wait_asked(headers, limits, now),
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
    if status is None or status >= 500:
        return FailureKind.SERVER
    if status < 400:
        # The answer began well and an error came within it.
        return FailureKind.REFUSED if "invalid_request_error" in words else FailureKind.SERVER
    return FailureKind.REFUSED


def _text(error: Exception) -> str:
    told = getattr(error, "error", None) or getattr(error, "message", None)
    return told if isinstance(told, str) else str(error)


def _with_cause(error: Exception) -> str:
    cause = error.__cause__
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    return f"{text} ({type(cause).__name__}: {cause})" if cause is not None and str(cause) else text
