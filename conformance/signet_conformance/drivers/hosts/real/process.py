"""A running program: lines of JSON on its streams, in a process group that ends with the host."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any, cast

from signet_conformance.children.watchdog_program import signal_group
from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.files.json_values import parse_value

_TAIL_LINES = 30
_LOOK_S = 0.1
QUIT_S = 40.0
LAST_S = 2.0
"""How long a program that no longer reads its input may take to end."""
_running: set[ProgramProcess] = set()
_removals: list[Callable[[], None]] = []


class EndedError(StepError):
    """Raised when a program has ended while it had something to do, with its status and all its last words."""

    def __init__(self, message: str, status: int, words: Sequence[str]) -> None:
        super().__init__(message)
        self.status = status
        self.words = words


class ProgramProcess:
    """One process of a program, in a group of its own.

    Its `words` are the last lines of output that are not JSON objects; `on_words` gets each such line.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        on_words: Callable[[str], None] = lambda _words: None,
    ) -> None:
        self._on_words = on_words
        self._name = Path(command[0]).name
        self._process = subprocess.Popen(
            [*command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(env), cwd=cwd, start_new_session=True,
        )  # fmt: skip
        self._stdin = cast("IO[bytes]", self._process.stdin)
        _running.add(self)
        self._messages: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.words: deque[str] = deque(maxlen=_TAIL_LINES)
        self._readers = [
            threading.Thread(target=self._read_stream, args=(stream,), daemon=True)
            for stream in (self._process.stdout, self._process.stderr)
        ]
        for reader in self._readers:
            reader.start()

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    @property
    def status(self) -> int | None:
        """Its exit status; None while it runs."""
        return self._process.poll()

    def send(self, message: Mapping[str, Any]) -> None:
        """Write a line of JSON. Raises EndedError or StepError when the program reads no more."""
        try:
            self._stdin.write(json.dumps(message).encode() + b"\n")
            self._stdin.flush()
        except OSError:
            self.wait(LAST_S)
            raise self.failure(f"{self._name} reads no input any more") from None

    def receive(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the next object that it writes; None if none comes in time."""
        with contextlib.suppress(queue.Empty):
            return self._messages.get(timeout=timeout_s) if timeout_s > 0 else self._messages.get_nowait()
        return None

    def await_message(
        self,
        is_wanted: Callable[[Mapping[str, Any]], bool],
        take: Callable[[Mapping[str, Any]], None],
        timeout_s: float,
    ) -> dict[str, Any] | None:
        """Return the next wanted object; `take` gets those before it. None if it ends, or none comes in time."""
        deadline = deadline_in(timeout_s)
        while time.monotonic() < deadline:
            message = self.receive(_LOOK_S)
            if message is None and self.has_ended:
                break
            if message is not None and is_wanted(message):
                return message
            if message is not None:
                take(message)
        return None

    def failure(self, what: str) -> StepError:
        """The error for a failure, with the program's last words: an EndedError if it has ended."""
        status, last_words = self.status, self.last_words
        message = f"{what}{last_words}"
        return StepError(message) if status is None else EndedError(message, status, [*self.words])

    @property
    def last_words(self) -> str:
        """Its status and last words, to be appended to a message."""
        if self.has_ended:
            for reader in self._readers:
                reader.join(1.0)
        how = f" (status {self.status})" if self.has_ended else ""
        return how + (": " + " | ".join([*self.words][-6:]) if self.words else "")

    def wait(self, timeout_s: float) -> bool:
        """Return True if it ends within that time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        return self.has_ended

    def close_input(self) -> None:
        """Close its input."""
        with contextlib.suppress(OSError):
            self._stdin.close()

    def end(self, timeout_s: float) -> bool:
        """Close its input, then terminate it, then kill it with its group. Return True if it ended by itself."""
        self.close_input()
        willingly = self.wait(timeout_s)
        if not willingly:
            signal_group(self._process.pid, signal.SIGTERM)
            self.wait(2.0)
        self.kill()
        return willingly

    def quit(self, title: str) -> None:
        """Close its input and wait for its end. Raises StepError, which names it by `title`, if it keeps running."""
        if not self.end(QUIT_S):
            raise StepError(f"{title} did not end within {QUIT_S:g} s after its input had ended{self.last_words}")

    def terminate(self, timeout_s: float) -> bool:
        """Send SIGTERM to its group, as a supervisor does. Return True if it ends within that time."""
        signal_group(self._process.pid, signal.SIGTERM)
        return self.wait(timeout_s)

    def kill(self) -> None:
        """Kill its whole group."""
        self.close_input()
        signal_group(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5.0)
        _running.discard(self)

    def _read_stream(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                self._take(line.decode("utf-8", "replace").strip())

    def _take(self, text: str) -> None:
        message = parse_value(text) if text.startswith("{") else None
        if isinstance(message, dict):
            self._messages.put(message)
        elif text:
            self.words.append(text[:500])
            self._on_words(text)


def end_with_us() -> None:
    """Let SIGTERM end this process and every program that it runs, at once."""

    def end(_number: int, _frame: FrameType | None) -> None:
        for process in [*_running]:
            process.kill()
        for leave in [*_removals]:
            with contextlib.suppress(OSError):
                leave()
        os._exit(143)

    signal.signal(signal.SIGTERM, end)


def remove_at_the_end(remove: Callable[[], None]) -> None:
    """Call `remove`, which deletes files that a program leaves elsewhere, also if SIGTERM ends this process."""
    _removals.append(remove)


def deadline_in(timeout_s: float) -> float:
    """The instant `timeout_s` seconds from now."""
    return time.monotonic() + timeout_s
