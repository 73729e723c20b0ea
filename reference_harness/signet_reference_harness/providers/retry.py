"""The one policy by which a call to a provider is tried again. The vendors' own retries are off."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from signet_reference_harness.providers.failures import Failure, FailureKind


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """When a failed call is tried again. Times are in seconds.

    At most `attempts` calls, none begun later than `total_s` after the first. Without a wish of the provider the
    wait is between `shortest_wait_s` and a ceiling that doubles up to `longest_backoff_s`. A wait that the provider
    asks for is kept to exactly; one above `longest_wait_s`, or beyond `total_s`, is not waited for: it ends as
    DeferredError or as an error, as `too_long` says. The four switches name what is tried again at all.
    """

    attempts: int = 3
    total_s: float = 60.0
    longest_wait_s: float = 20.0
    shortest_wait_s: float = 0.5
    longest_backoff_s: float = 8.0
    network: bool = True
    timeouts: bool = True
    rate_limits: bool = True
    server_errors: bool = True
    too_long: Literal["deferred", "error"] = "deferred"

    def covers(self, kind: FailureKind) -> bool:
        """Whether a failure of this kind is tried again at all."""
        switches = {
            FailureKind.NETWORK: self.network,
            FailureKind.TIMEOUT: self.timeouts,
            FailureKind.RATE_LIMIT: self.rate_limits,
            FailureKind.SERVER: self.server_errors,
        }
        return switches.get(kind, False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Clocks, sleep and chance, so that a test waits for nothing. `now` is in seconds since 1970."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    chance: Callable[[], float] = field(default=random.random)


@dataclass(frozen=True, slots=True)
class Wait:
    """The call is tried again after `seconds`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The call is not tried again; `asked_s` is the wait that was asked for and is too long, else None."""

    asked_s: float | None = None


def after(
    failure: Failure, *, attempt: int, elapsed_s: float, policy: RetryPolicy, chance: Callable[[], float]
) -> Wait | GiveUp:
    """What follows the failure of attempt number `attempt`, counted from 1, `elapsed_s` after the first began."""
    if not policy.covers(failure.kind):
        return GiveUp()
    asked = failure.wait_asked_s
    if asked is not None and (asked > policy.longest_wait_s or elapsed_s + asked > policy.total_s):
        return GiveUp(asked)
    if attempt >= policy.attempts:
        return GiveUp()
    if asked is not None:
        return Wait(asked)
    ceiling = min(policy.longest_backoff_s, policy.shortest_wait_s * 2**attempt)
    seconds = policy.shortest_wait_s + chance() * max(0.0, ceiling - policy.shortest_wait_s)
    return Wait(seconds) if elapsed_s + seconds <= policy.total_s else GiveUp()
