"""A program under way: lines of JSON on its streams, and its process group, which ends with the host."""

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
"""How long a program may take to end that reads no input any more."""
_running: set[ProgramProcess] = set()
_left: list[Callable[[], None]] = []


class EndedError(StepError):
    """Raised when a program has ended while it had something to do, with its status and all its last words."""

    def __init__(self, message: str, status: int, words: Sequence[str]) -> None:
        super().__init__(message)
        self.status = status
        self.words = words


class ProgramProcess:
    """One process of a program, in a group of its own.

    Its output that is not a JSON object is called its words: the last ones are kept, and `heard` gets each.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        heard: Callable[[str], None] = lambda _words: None,
    ) -> None:
        self._heard = heard
        self._name = Path(command[0]).name
        self._process = subprocess.Popen(
            [*command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(env), cwd=cwd, start_new_session=True,
        )  # fmt: skip
        self._stdin = cast("IO[bytes]", self._process.stdin)
        _running.add(self)
        self._said: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
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
        """The next object that it writes; None when none comes in time."""
        with contextlib.suppress(queue.Empty):
            return self._said.get(timeout=timeout_s) if timeout_s > 0 else self._said.get_nowait()
        return None

    def await_message(
        self,
        is_wanted: Callable[[Mapping[str, Any]], bool],
        take: Callable[[Mapping[str, Any]], None],
        timeout_s: float,
    ) -> dict[str, Any] | None:
        """The next object that is wanted; `take` gets those before it. None when it ends, or none comes in time."""
        deadline = deadline_in(timeout_s)
        while time.monotonic() < deadline:
            said = self.receive(_LOOK_S)
            if said is None and self.has_ended:
                break
            if said is not None and is_wanted(said):
                return said
            if said is not None:
                take(said)
        return None

    def failure(self, what: str) -> StepError:
        """The error that says what failed, with its last words: EndedError where it has ended."""
        status, told = self.status, self.last_words
        message = f"{what}{told}"
        return StepError(message) if status is None else EndedError(message, status, [*self.words])

    @property
    def last_words(self) -> str:
        """Its last words, to be added to a message about it."""
        if self.has_ended:
            for reader in self._readers:
                reader.join(1.0)
        how = f" (status {self.status})" if self.has_ended else ""
        return how + (": " + " | ".join([*self.words][-6:]) if self.words else "")

    def wait(self, timeout_s: float) -> bool:
        """Whether it ends within that time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        return self.has_ended

    def close_input(self) -> None:
        """Tell it that no more comes."""
        with contextlib.suppress(OSError):
            self._stdin.close()

    def end(self, timeout_s: float) -> bool:
        """Close its input, then ask it to end, then kill it with all that it started; whether it ended by itself."""
        self.close_input()
        willingly = self.wait(timeout_s)
        if not willingly:
            signal_group(self._process.pid, signal.SIGTERM)
            self.wait(2.0)
        self.kill()
        return willingly

    def quit(self, title: str) -> None:
        """Close its input and wait for its end. Raises StepError, which calls it by that title, when it goes on."""
        if not self.end(QUIT_S):
            raise StepError(f"{title} did not end within {QUIT_S:g} s after its input had ended{self.last_words}")

    def terminate(self, timeout_s: float) -> bool:
        """Ask it and all that it started to end, as a supervisor does; whether it does within that time."""
        signal_group(self._process.pid, signal.SIGTERM)
        return self.wait(timeout_s)

    def kill(self) -> None:
        """Kill it with all that it started in its group."""
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
        said = parse_value(text) if text.startswith("{") else None
        if isinstance(said, dict):
            self._said.put(said)
        elif text:
            self.words.append(text[:500])
            self._heard(text)


def end_with_us() -> None:
    """From now on SIGTERM ends this process and every program that it runs, at once."""

    def end(_number: int, _frame: FrameType | None) -> None:
        for process in [*_running]:
            process.kill()
        for leave in [*_left]:
            with contextlib.suppress(OSError):
                leave()
        os._exit(143)

    signal.signal(signal.SIGTERM, end)


def remove_at_the_end(remove: Callable[[], None]) -> None:
    """Have what programs leave elsewhere removed also when this process is ended before it could."""
    _left.append(remove)


def deadline_in(timeout_s: float) -> float:
    """The instant `timeout_s` seconds from now."""
    return time.monotonic() + timeout_s
