"""A key as the harness holds it: shown nowhere."""

from __future__ import annotations

from typing import Final

HIDDEN: Final = "[key]"
SHORTEST: Final = 6
"""Characters. What is shorter is no key, but what a local server is given in its place, such as `x` or `none`."""


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
        """`text` with `[key]` wherever it holds the key."""
        return text.replace(self._text, HIDDEN) if self.is_secret else text

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    def __str__(self) -> str:
        return HIDDEN

    def __reduce__(self) -> str:
        raise TypeError("a key is not written anywhere")
