"""Back pressure: reading from one side waits for as long as the other cannot take more."""

from __future__ import annotations

import asyncio
from enum import Enum


class Why(Enum):
    """What a side waits for."""

    OTHER_SIDE = 1
    """The other side has not taken what was written to it."""
    EARLIER_REQUEST = 2
    """The request before is not answered."""
    NO_DAEMON = 3
    """The daemon is not connected yet."""
    KEPT_BACK = 4
    """A fault keeps the answer back."""


class Valve:
    """Reading from a transport: on, unless there is a reason to wait."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._reasons: set[Why] = set()

    def shut(self, why: Why) -> None:
        """Wait with reading, until `open` is said for the same reason."""
        if not self._reasons and not self._transport.is_closing():
            self._transport.pause_reading()
        self._reasons.add(why)

    def open(self, *reasons: Why) -> None:
        """These reasons hold no longer."""
        if self._reasons:
            self._reasons.difference_update(reasons)
            if not self._reasons and not self._transport.is_closing():
                self._transport.resume_reading()
