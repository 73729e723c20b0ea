"""Redacts in another process than the one that gives numbers to secrets."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from signet_recording_proxy.redaction.redactor import Learned, Redactor


class ProvisionalRedactor(Redactor):
    """A redactor that follows another one, in another process, which alone gives numbers to secrets."""

    def __init__(self, canaries: Mapping[str, str]) -> None:
        self._new: dict[str, str] = {}
        self._mark: str | None = None
        super().__init__(canaries)
        self._mark = os.urandom(8).hex()

    def learn_from_recorder(self, secrets: Sequence[str], learned: Sequence[Learned]) -> None:
        """Take over what the other redactor has numbered and learned since the last call."""
        mark, self._mark = self._mark, None
        for secret in secrets:
            if secret not in self._tokens:  # canaries have their numbers already
                self._number(secret)
        for each in learned:
            self._known.add(each.secret, self._tokens[each.secret], for_ever=each.for_ever)
        self._mark = mark

    def take_new(self) -> Sequence[str]:
        """Return and forget the secrets that have provisional tokens."""
        new, self._new = list(self._new), {}
        for secret in new:
            del self._tokens[secret]
        return new

    def _number(self, secret: str) -> str:
        if self._mark is None:
            return super()._number(secret)
        token = self._new[secret] = self._tokens[secret] = f"<redacted:~{self._mark}_{len(self._new)}>"
        return token
