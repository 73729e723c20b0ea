"""Says how far a run is: a bar for a person who watches, a line now and then for a log."""

from __future__ import annotations

import sys
import time
from typing import Final, TextIO

EVERY_S: Final = 10.0
REDRAWN_S: Final = 0.2


class ProgressLine:
    """Counts what `unit` names. Nothing is said where `quiet`."""

    def __init__(self, total: int, unit: str, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._total = total
        self._unit = unit
        self._quiet = quiet
        self._watched = not quiet and self._stream.isatty()
        self._began = self._said = time.monotonic()
        self._counted = 0
        self._drawn = False

    def step(self) -> None:
        """Count a step, and say how far the run is when it is time to."""
        self._counted += 1
        now = time.monotonic()
        if self._quiet or now - self._said < (REDRAWN_S if self._watched else EVERY_S):
            return
        self._said = now
        self._say(self._line(now), again=self._watched)

    def note(self, text: str) -> None:
        """Say something else."""
        if not self._quiet:
            self.clear()
            print(f"bench: {text}", file=self._stream, flush=True)

    def clear(self) -> None:
        """Take the bar away."""
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._drawn = False

    def _say(self, line: str, *, again: bool) -> None:
        if again:
            self._stream.write(f"\r\x1b[K{line}")
            self._drawn = True
        else:
            self._stream.write(f"{line}\n")
        self._stream.flush()

    def _line(self, now: float) -> str:
        share = self._counted / self._total if self._total else 1.0
        left = (now - self._began) * (1 - share) / share if share > 0 else 0.0
        return f"bench: {self._counted} of {self._total} {self._unit}, {share:.0%}, about {_duration(left)} left"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
