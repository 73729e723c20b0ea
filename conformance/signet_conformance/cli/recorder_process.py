"""The recorder as a child process: commands go in as lines of JSON, answers come out, it never outlives its block."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Any, Self

from signet_conformance.errors import KitError, SignetConformanceError

_GRACE_S = 10.0


class RecorderEndedError(SignetConformanceError):
    """Raised when the recorder ended by itself; it has told why on stderr. `exit_status` is its own."""

    def __init__(self, exit_status: int) -> None:
        super().__init__("the recorder ended")
        self.exit_status = exit_status


class RecorderProcess:
    """A running recorder, in a process group of its own so that a Ctrl-C reaches it only through us.

    `url` is where it listens. Raises RecorderEndedError from any member once the recorder is gone.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        # -P keeps a folder that happens to be called like the recorder from being run in its place.
        words = [sys.executable, "-P", "-m", "signet_recording_proxy", "--control", *arguments]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0)
        self._commands: IO[bytes] = _piped(self._process.stdin)
        self._answers: IO[bytes] = _piped(self._process.stdout)
        self.url = ""

    def __enter__(self) -> Self:
        try:
            self.url = str(self._answer()["url"])
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()

    def ask(self, command: dict[str, Any]) -> dict[str, Any]:
        """Send one command of the control channel and return its answer."""
        with suppress(BrokenPipeError):
            self._commands.write(json.dumps(command).encode() + b"\n")
            self._commands.flush()
        return self._answer()

    def wait(self, timeout_s: float | None) -> None:
        """Return after `timeout_s` seconds. Raises RecorderEndedError as soon as the recorder has ended."""
        with suppress(subprocess.TimeoutExpired):
            raise RecorderEndedError(_status(self._process.wait(timeout_s)))

    def stop(self) -> int:
        """End the recorder as its control channel asks; return its exit status."""
        with suppress(RecorderEndedError):
            self.ask({"op": "exit"})
        return _status(self._process.wait(_GRACE_S))

    def _answer(self) -> dict[str, Any]:
        line = self._answers.readline()
        if not line:
            raise RecorderEndedError(_status(self._process.wait(_GRACE_S)))
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _end(self) -> None:
        process = self._process
        for stream in (self._commands, self._answers):
            with suppress(OSError):
                stream.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            if process.poll() is not None:
                return
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_S)


def _status(code: int) -> int:
    return code if code in (0, SignetConformanceError.exit_status, KitError.exit_status) else KitError.exit_status


def _piped(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise KitError("the recorder was started without a pipe")
    return stream
