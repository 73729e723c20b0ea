"""Which fact or prompt of a scenario a memory is that the daemon brought."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

LEAST_QUOTED: Final = 12
"""Characters. A shorter prompt is too common to be recognised in a memory by its words."""
MOST_QUOTED: Final = 200


class Items:
    """The facts and prompts of one scenario so far."""

    def __init__(self) -> None:
        self._by_memory: dict[str, str] = {}
        self._memories: dict[str, list[str]] = {}
        self._texts: dict[str, str] = {}

    def stored(self, name: str, text: str, memories: list[str]) -> None:
        """Note a fact and the ids of the memories that hold it: several for a long text."""
        self._memories[name] = memories
        self._texts[name] = _quoted(text)
        for memory in memories:
            self._by_memory.setdefault(memory, name)

    def said(self, name: str, text: str) -> None:
        """Note a prompt: a memory that quotes it is taken for it."""
        self._texts[name] = _quoted(text)

    def memories_of(self, name: str) -> list[str]:
        """The ids of the memories that hold a fact."""
        return self._memories.get(name, [])

    def same_as(self, name: str) -> str:
        """The first fact that is stored as the same memory as `name`, which may be itself."""
        memories = self._memories.get(name)
        return self._by_memory[memories[0]] if memories else name

    def name_of(self, row: Mapping[str, Any]) -> str:
        """The fact or prompt that a row of the daemon is, else `other:` and the beginning of its content's hash."""
        known = self._by_memory.get(str(row.get("id")))
        if known is not None:
            return known
        content = str(row.get("content", ""))
        said = _flat(content)
        for name, text in self._texts.items():
            if name not in self._memories and len(text) >= LEAST_QUOTED and text in said:
                return name
        return f"other:{hashlib.sha256(content.encode(errors='surrogatepass')).hexdigest()[:12]}"

    def quoted_in(self, text: str) -> list[str]:
        """The facts and prompts that an injected text holds by id or by words, in the order of their first mention."""
        flat = _flat(text)
        places: dict[str, int] = {}
        for name, words in self._texts.items():
            mentions = [flat.find(memory) for memory in self._memories.get(name, ())]
            mentions += [flat.find(words)] if len(words) >= LEAST_QUOTED else []
            mentions = [place for place in mentions if place >= 0]
            if mentions:
                first = self.same_as(name)
                places[first] = min(*mentions, places.get(first, mentions[0]), mentions[0])
        return sorted(places, key=lambda name: places[name])


def _flat(text: str) -> str:
    return " ".join(text.split())


def _quoted(text: str) -> str:
    return _flat(text)[:MOST_QUOTED].rstrip()
