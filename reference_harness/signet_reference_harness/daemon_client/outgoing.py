"""What may not leave the harness: text that the daemon injected, and credentials."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

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
    """Remembers every injected text of this process and takes it out of what is sent back.

    The daemon would otherwise store its own words as the user's. A model that quotes its context, or a
    user who pastes it, is enough for that, so all outgoing conversation text passes through here.
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
        """`text` without any injected text; the very same string when it holds none."""
        present = [envelope for envelope in self._envelopes if envelope in text]
        # Taking one out may bring the ends of another together, so look again until none is left.
        while present:
            # Longest first: an envelope without its heading is part of the one with it.
            for envelope in sorted(present, key=len, reverse=True):
                text = text.replace(envelope, "")
            present = [envelope for envelope in self._envelopes if envelope in text]
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
