"""A program on a pseudo-terminal, and what a person would see there: a screen of pyte's, waited on by its contents."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

import pyte

PATIENCE_S = 20.0
"""How long a busy machine may take to show what a test waits for."""


class PseudoTerminal:
    """Runs `command` on a terminal of so many columns and rows; what scrolled away stands in `scrolled`."""

    def __init__(
        self, command: Sequence[str], columns: int = 80, rows: int = 24, *, cwd: Any = None, **environ: str
    ) -> None:
        self._screen = pyte.HistoryScreen(columns, rows, history=5_000, ratio=0.5)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = bytearray()
        """Every byte that the program wrote."""
        self._master, side = pty.openpty()
        self.resize(columns, rows)
        self.process = subprocess.Popen(
            command,
            stdin=side,
            stdout=side,
            stderr=side,
            cwd=cwd,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "", "LINES": "", **environ},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - the terminal is to be its own
        )
        os.close(side)

    def __enter__(self) -> Self:
        """The terminal."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the program go, however it stands."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self._master >= 0:
            os.close(self._master)

    def type(self, text: str) -> None:
        """Type; a carriage return is the Enter key."""
        os.write(self._master, text.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Give the window another size; the program is told."""
        self._screen.resize(rows, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def hang_up(self) -> None:
        """Close the window: the program gets SIGHUP, and nobody reads what it writes."""
        os.close(self._master)
        self._master = -1

    @property
    def rows(self) -> list[str]:
        """What the window shows now, a row each."""
        return [row.rstrip() for row in self._screen.display]

    @property
    def shown(self) -> str:
        """What the window shows now."""
        return "\n".join(self.rows).rstrip()

    @property
    def everything(self) -> str:
        """What scrolled away, and what the window shows."""
        away = ["".join(row[at].data for at in range(self._screen.columns)).rstrip() for row in self._scrolled()]
        return "\n".join([*away, *self.rows]).rstrip()

    def _scrolled(self) -> list[Any]:
        return list(self._screen.history.top)

    def wait_for(self, wanted: str | Callable[[str], object], *, anywhere: bool = False) -> str:
        """Read until the window shows `wanted`, a text or a condition on what is shown; returns what it shows.

        `anywhere` looks at what scrolled away, too. Raises AssertionError, with the window, where it does not come.
        """

        def arrived() -> bool:
            text = self.everything if anywhere else self.shown
            return bool(wanted in text if isinstance(wanted, str) else wanted(text))

        end = time.monotonic() + PATIENCE_S
        while not arrived():
            if not self._read(end - time.monotonic()):
                assert arrived(), f"never shown: {wanted!r}; the window shows:\n{self.shown}"
        return self.shown

    def wait(self) -> int:
        """Read until the program ends; its exit status, negative for a signal."""
        end = time.monotonic() + PATIENCE_S
        while self._master >= 0 and self._read(end - time.monotonic()):
            pass
        return self.process.wait(PATIENCE_S)

    def send_signal(self, number: signal.Signals) -> None:
        """Send the program a signal."""
        self.process.send_signal(number)

    def _read(self, patience_s: float) -> bool:
        """Take what the program wrote; False when it has ended, or wrote nothing in time."""
        ready, _, _ = select.select([self._master], [], [], max(patience_s, 0))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65_536)
        except OSError:
            return False  # the other side is closed
        self.raw += data
        self._stream.feed(data)
        return bool(data)
