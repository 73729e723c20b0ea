"""Which requests may not be made again yet: those the daemon refused, and those it was too busy for."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final, TypeVar

from signet_reference_harness.daemon_client.reply import Reply

CLIENT_ERROR_FIRST: Final = 400
CLIENT_ERROR_LAST: Final = 499
REQUEST_TIMEOUT: Final = 408
TOO_EARLY: Final = 425
BUSY: Final = frozenset({429, 503})
SHORTEST_GAP_S: Final = 0.25
GROWTH: Final = 1.5
REMEMBERED: Final = 1_024

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class _Busy:
    until: float
    answered: float
    gap: float


class Restraint:
    """Keeps identical requests from being repeated against the daemon's word.

    After a 4xx the identical request is never made again (408 and 425 excepted: they invite it). After 503
    or 429 it may be made once `Retry-After` and a gap have passed, and each such gap is longer than the
    one before it. Times are seconds of the caller's monotonic clock.
    """

    def __init__(self) -> None:
        self._refused: dict[str, str] = {}
        self._busy: dict[str, _Busy] = {}

    def reason_to_wait(self, identity: str, now: float) -> str | None:
        """Why the request may not be made now, or None when it may."""
        if identity in self._refused:
            return f"the daemon refused this very request: {self._refused[identity]}"
        busy = self._busy.get(identity)
        if busy is not None and now < busy.until:
            return f"the daemon asked for patience; {busy.until - now:.2f} s are left"
        return None

    def note(self, identity: str, reply: Reply, began: float, ended: float) -> None:
        """Learn from an answered request; a request without an answer teaches nothing."""
        if reply.status is None:
            return
        before = self._busy.pop(identity, None)
        if reply.status in BUSY:
            gap = 0.0 if before is None else began - before.answered
            wait = max(SHORTEST_GAP_S, gap * GROWTH + SHORTEST_GAP_S, reply.retry_after_s)
            _remember(self._busy, identity, _Busy(ended + wait, ended, gap))
        elif refuses(reply.status):
            _remember(self._refused, identity, reply.error or str(reply.status))


def refuses(status: int) -> bool:
    """Whether an answer's status forbids to make the identical request again."""
    is_client_error = CLIENT_ERROR_FIRST <= status <= CLIENT_ERROR_LAST
    return is_client_error and status not in BUSY and status not in {REQUEST_TIMEOUT, TOO_EARLY}


def identity_of(method: str, target: str, body: bytes) -> str:
    """A digest that equal requests share: method, path with query, and body. Headers do not count."""
    return hashlib.sha256(b"\0".join((method.encode(), target.encode(), body))).hexdigest()


def _remember(known: dict[str, Value], identity: str, value: Value) -> None:
    known[identity] = value
    while len(known) > REMEMBERED:
        del known[next(iter(known))]
