"""Markdown as it arrives, parted into blocks: what is whole can be drawn for good, the rest may still change."""

from __future__ import annotations

import re
from typing import Final

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")


class Blocks:
    """Parts a text at its blank lines, but for those within a fence of code."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        """The whole lines of the block that is not at its end."""
        self._rest = ""
        """What has arrived of the line after them."""
        self._fence = ""

    @property
    def tail(self) -> str:
        """What has arrived of the block that is not at its end."""
        return "\n".join([*self._lines, self._rest]) if self._rest or self._lines else ""

    def feed(self, text: str) -> list[str]:
        """Add a piece of text; returns the blocks that are whole with it, none of them blank."""
        whole: list[str] = []
        *lines, self._rest = (self._rest + text).split("\n")
        for line in (each.removesuffix("\r") for each in lines):
            self._mind_fence(line)
            if line.strip() or self._fence:
                self._lines.append(line)
            elif self._lines:
                whole.append("\n".join(self._lines))
                self._lines.clear()
        return whole

    def finish(self) -> list[str]:
        """What is left, as a block if it is not blank; the next piece begins anew."""
        tail = self.tail
        self._lines.clear()
        self._rest = self._fence = ""
        return [tail] if tail.strip() else []

    def _mind_fence(self, line: str) -> None:
        fence = _FENCE.match(line)
        if not fence:
            return
        marks = fence[1]
        if not self._fence:
            self._fence = marks
        elif marks.startswith(self._fence) and not line.strip().strip(marks[0]):
            self._fence = ""
