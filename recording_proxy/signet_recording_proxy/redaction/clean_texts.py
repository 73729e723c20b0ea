"""Remembers which texts were found to hold no secret: what is sent again and again is searched once."""

from __future__ import annotations

from hashlib import blake2b


class Remembered:
    """The last texts that were found to be clean, by what `digest` makes of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._new, self._old = set[bytes](), set[bytes]()

    def __contains__(self, key: bytes) -> bool:
        if key in self._new:
            return True
        if key not in self._old:
            return False
        self.add(key)
        return True

    def forget(self) -> None:
        """Begin anew."""
        self._new, self._old = set(), set()

    def add(self, key: bytes) -> None:
        """Remember one more, and forget what was not looked for in a long time."""
        if len(self._new) >= self._most:
            self._old, self._new = self._new, set()
        self._new.add(key)


def digest(text: str) -> bytes:
    """What tells a text from others, in few bytes."""
    raw = text.encode("utf-8", "surrogatepass")
    return raw if len(raw) < _DIGEST_BYTES else blake2b(raw, digest_size=_DIGEST_BYTES).digest()


_DIGEST_BYTES = 24
