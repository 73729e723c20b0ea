"""Limits on what is sent: no early repeats of requests, no injected text, no credentials."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from signet_reference_harness.daemon_client.reply import Reply

BUSY: Final = frozenset({429, 503})
PASSING: Final = BUSY | {408, 425}
"""Statuses that forbid no repeat: those of a busy daemon, of a timeout, and of a request that came too early."""
SHORTEST_GAP_S: Final = 0.25
GROWTH: Final = 1.5
REMEMBERED: Final = 1_024

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class _Busy:
    until: float
    answered: float


class RepeatGuard:
    """Prevents repeats of identical requests that the daemon has refused.

    After a 4xx the identical request is never made again, except after 408 and 425, which allow it. After 503 or 429
    it may be made once `Retry-After` and a gap have passed, and each such gap is longer than the one before. Times are
    seconds of the caller's monotonic clock.
    """

    def __init__(self) -> None:
        self._refused: dict[str, str] = {}
        self._busy: dict[str, _Busy] = {}

    def reason_to_wait(self, identity: str, now: float) -> str | None:
        """The reason why the request may not be made now, or None if it may."""
        if identity in self._refused:
            return f"the daemon refused this very request: {self._refused[identity]}"
        busy = self._busy.get(identity)
        if busy is not None and now < busy.until:
            return f"the daemon asked to wait; {busy.until - now:.2f} s are left"
        return None

    def lift_refusal(self, identity: str) -> None:
        """Allow a refused request again: the user has asked for it again, so it does not repeat the first."""
        self._refused.pop(identity, None)

    def note(self, identity: str, reply: Reply, began: float, ended: float) -> None:
        """Note how a request was answered; nothing, if it was not."""
        if reply.status is None:
            return
        before = self._busy.pop(identity, None)
        if reply.status in BUSY:
            gap = 0.0 if before is None else began - before.answered
            wait = max(SHORTEST_GAP_S, gap * GROWTH + SHORTEST_GAP_S, reply.retry_after_s)
            _remember(self._busy, identity, _Busy(ended + wait, ended))
        elif refuses(reply.status):
            _remember(self._refused, identity, reply.error or str(reply.status))


def refuses(status: int | None) -> bool:
    """Whether an answer's status forbids the identical request."""
    return status in range(400, 500) and status not in PASSING


def identity_of(method: str, target: str, body: bytes) -> str:
    """A digest that equal requests share: method, path with query, and body. Headers do not count."""
    return hashlib.sha256(b"\0".join((method.encode(), target.encode(), body))).hexdigest()


def _remember(known: dict[str, Value], identity: str, value: Value) -> None:
    known[identity] = value
    while len(known) > REMEMBERED:
        del known[next(iter(known))]


DATE_HEADING: Final = "# Current Date & Time"
SHORTEST_ENVELOPE: Final = 40
"""Characters. Shorter injected text is too common to be told from a user's own words."""
ENVELOPES_KEPT: Final = 2_000
NOTICE: Final = "[token removed]"
TOKEN_SHAPES: Final = re.compile(
    r"sig_sk_[A-Za-z0-9._~+/=-]{8,}"
    r"|eyJ[A-Za-z0-9_-]{7,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
    r"|Bearer +[A-Za-z0-9._~+/=-]{16,}"
    r"|<redacted:[^>]*>"
)


class EnvelopeGuard:
    """Remembers every injected text of this process and removes it from text that is sent back.

    Otherwise the daemon would store its own words as the user's, if a model quotes its context, or a user pastes it. So
    all outgoing conversation text passes through here.
    """

    def __init__(self) -> None:
        self._envelopes: dict[str, None] = {}

    def remember(self, inject: str) -> None:
        """Note an injected text, with and without its date heading."""
        for envelope in (inject.strip(), without_date(inject)):
            if len(envelope) >= SHORTEST_ENVELOPE:
                self._envelopes[envelope] = None
        while len(self._envelopes) > ENVELOPES_KEPT:
            del self._envelopes[next(iter(self._envelopes))]

    def remove(self, text: str) -> str:
        """`text` without any injected text; the same object if it holds none."""
        # Removing one may join the parts of another, so repeat until the text holds no more.
        while present := [envelope for envelope in self._envelopes if envelope in text]:
            # Longest first: an envelope without its heading is part of the one with it.
            for envelope in sorted(present, key=len, reverse=True):
                text = text.replace(envelope, "")
        return text


def without_date(inject: str) -> str:
    """The injected text without the date heading and the line below it, trimmed."""
    lines = inject.strip().split("\n")
    for index, line in enumerate(lines):
        if line.strip() == DATE_HEADING:
            return "\n".join(lines[:index] + lines[index + 2 :]).strip()
    return inject.strip()


def without_tokens(value: Any, own: Collection[str]) -> Any:
    """`value`, a JSON value, with every credential in its strings and names replaced by a notice.

    Credentials belong in the Authorization header and nowhere else; a prompt that quotes one must not
    carry it into the daemon's store. Those in `own` are removed whatever they look like.
    """
    if isinstance(value, str):
        for credential in own:
            value = value.replace(credential, NOTICE)
        return TOKEN_SHAPES.sub(NOTICE, value)
    if isinstance(value, dict):
        return {without_tokens(name, own): without_tokens(item, own) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_tokens(item, own) for item in value]
    return value
