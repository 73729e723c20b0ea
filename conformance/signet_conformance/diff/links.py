"""Values that are renamed from one recording to the other: each name has one counterpart, or the link has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from signet_conformance.diff.volatile import Plain, Volatile
from signet_conformance.facts import normalised_key, pattern_agent

_NOISE = ("test-", "tmp-", "spec-", "fixture-", "synthetic-")
_LONGEST_LINKED = 300
"""A longer text counts as prose: the values that it quotes are compared by class only."""

PlainOf = Callable[[str], Plain]


class KeyNames:
    """A side's session keys: each becomes the number of its pair, with what the daemon reads out of the key itself."""

    def __init__(self, numbers: Mapping[str, int], volatile: Volatile) -> None:
        self._numbers = numbers
        self._volatile = volatile

    def plain(self, text: str) -> Plain:
        """`text` without volatile values; a text that is a session's key is that session's number."""
        number = self._numbers.get(normalised_key(text) or "") if len(text) <= _LONGEST_LINKED else None
        if number is None:
            return self._volatile.plain(text)
        prefix = "session:" if text.strip().startswith("session:") else ""
        agent = pattern_agent(text.strip()) or ""
        noise = next((start for start in _NOISE if text.strip().startswith(start)), "")
        return Plain(f"\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}session {number} {prefix}{agent}{noise}", ())


class Links:
    """Which value of the first recording is which of the second, within one session."""

    def __init__(self, first: PlainOf, second: PlainOf) -> None:
        self._first, self._second = first, second
        self._forward: dict[tuple[str, str], str] = {}
        self._backward: dict[tuple[str, str], str] = {}

    def same(self, first: str, second: str, *, strict: bool) -> bool:
        """Whether two texts say the same. When `strict`, linked values must be counterparts, and become so."""
        if first == second and (not strict or len(first) > _LONGEST_LINKED):
            return True
        plain, other = self._first(first), self._second(second)
        if plain.skeleton != other.skeleton:
            # Keys of sessions that match by order: one text may be a key on one side only.
            return first == second
        if not strict or len(first) > _LONGEST_LINKED:
            return True
        bound = [
            self._bind(name, value, counterpart)
            for (name, value), (_, counterpart) in zip(plain.links, other.links, strict=True)
        ]
        return all(bound)

    def _bind(self, name: str, first: str, second: str) -> bool:
        there = self._forward.get((name, first))
        back = self._backward.get((name, second))
        if there is None and back is None:
            self._forward[name, first] = second
            self._backward[name, second] = first
            return True
        return there == second and back == first
