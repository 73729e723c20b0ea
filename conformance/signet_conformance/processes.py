"""A child process that talks in JSON lines: started in a group of its own, bounded, and always reaped."""

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
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from signet_conformance.errors import KitError, SignetConformanceError, printable

MAX_LINE_BYTES = 16 * 1024 * 1024
KEPT_STDERR_LINES = 200
_GRACE_S = 2.0


class ChildEndedError(KitError):
    """Raised when a child process ended, or closed its output, while an answer was awaited."""


class ChildTimeoutError(KitError):
    """Raised when a child process gave no answer within its deadline."""


class LineProcess:
    """One child process with JSON lines on stdin and stdout; its stderr is kept, the last lines of it.

    `name` is what messages call it. The child leads a process group of its own, which is killed whole
    when the context ends, so that nothing it started outlives it.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        error: type[SignetConformanceError] = KitError,
    ) -> None:
        self.name = name
        self._error = error
        self._answers: queue.Queue[bytes | None] = queue.Queue(maxsize=10_000)
        self.stderr: deque[str] = deque(maxlen=KEPT_STDERR_LINES)
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=None if env is None else dict(env),
                cwd=cwd,
                start_new_session=True,
            )
        except OSError as failure:
            raise error(
                f"{name} cannot be started: {failure.strerror or failure}",
                where=printable(command[0]),
                remedy="check that the program is installed and on PATH",
            ) from None
        self._threads = [
            threading.Thread(target=self._read_stdout, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read_stderr, args=(self._process.stderr,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> LineProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The child's process id, which is its group's too."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit status; None while the child runs."""
        return self._process.poll()

    def _read_stdout(self, stream: IO[bytes]) -> None:
        with stream:
            while line := stream.readline(MAX_LINE_BYTES):
                self._answers.put(line)
        self._answers.put(None)

    def _read_stderr(self, stream: IO[bytes]) -> None:
        with stream:
            while line := stream.readline(8192):
                self.stderr.append(line.decode("utf-8", "replace").rstrip("\n"))

    def send(self, message: Mapping[str, Any]) -> None:
        """Write one line; raise ChildEndedError when nobody reads it any more."""
        stdin = self._process.stdin
        try:
            if stdin is None:
                raise BrokenPipeError
            stdin.write(json.dumps(message).encode() + b"\n")
            stdin.flush()
        except (BrokenPipeError, ValueError, OSError):
            raise self._ended() from None

    def receive(self, timeout_s: float) -> dict[str, Any]:
        """The next JSON object on stdout; raise when there is none within `timeout_s`, or when it is no object."""
        deadline = time.monotonic() + timeout_s
        try:
            line = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise ChildTimeoutError(
                f"{self.name} gave no answer within {timeout_s:g} s",
                remedy="look at its standard error" + self._tail(),
            ) from None
        if line is None:
            self._answers.put(None)
            raise self._ended()
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise self._error(
                f"{self.name} wrote something that is no JSON object: {printable(line[:200])}",
                remedy="standard output is for answers only, one JSON object a line; write logs to standard error",
            )
        return answer

    def ask(self, message: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send one line and return the next answer."""
        self.send(message)
        return self.receive(timeout_s)

    def _tail(self) -> str:
        for thread in self._threads[1:]:
            thread.join(0.2)
        lines = [printable(line, 300) for line in list(self.stderr)[-5:]]
        return "".join(f"\n    {line}" for line in lines)

    def _ended(self) -> ChildEndedError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        status = self._process.poll()
        how = "closed its output" if status is None else f"ended with status {status}"
        return ChildEndedError(f"{self.name} {how}", remedy="look at its standard error" + self._tail())

    def close(self) -> None:
        """End the child: close its stdin, wait a moment, then kill its whole group. Safe to call twice."""
        with contextlib.suppress(OSError, ValueError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE_S)
        # Also after a clean exit: what the child started in its group must not outlive it.
        self._signal(signal.SIGKILL)
        self._process.wait()
        # A grandchild that left the group may hold the pipes; the reading threads are daemons and end with us.
        for thread in self._threads:
            thread.join(0.5)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
