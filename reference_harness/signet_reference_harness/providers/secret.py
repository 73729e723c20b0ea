"""A key as the harness holds it: shown nowhere."""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "[key]"
SHORTEST: Final = 6
"""Characters. What is shorter is rarely a key: a local server is given `x` or `none` in its place."""
_CREDENTIAL: Final = r"(?i:(?:bearer|basic|api[-_ ]?key(?: provided)?|token|authorization|secret|password)[\s\"':=]+)"
"""Words that a credential follows, in a header, a command, JSON or a vendor's message."""


class Secret:
    """A provider's key. Its text is read with :meth:`reveal`, and stands in no repr, format or pickle."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The key itself, for the vendor's package and nobody else."""
        return self._text

    @property
    def is_secret(self) -> bool:
        """Whether it is long enough to be a key; anything shorter stands in common words, too."""
        return len(self._text) >= SHORTEST

    def hide_in(self, text: str) -> str:
        """`text` with `[key]` wherever it holds the key; of a short one only where a credential stands."""
        if self.is_secret:
            return text.replace(self._text, HIDDEN)
        if not self._text or self._text not in text:
            return text
        return re.sub(rf"({_CREDENTIAL}){re.escape(self._text)}(?![\w-])", rf"\1{HIDDEN}", text)

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    def __str__(self) -> str:
        return HIDDEN

    def __reduce__(self) -> str:
        raise TypeError("a key is not written anywhere")
