"""Streams that pass for a terminal."""

from __future__ import annotations

import io


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True
