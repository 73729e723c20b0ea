"""A child process that speaks JSON lines: in a process group of its own, bounded, and always reaped."""

from __future__ import annotations

import atexit
import contextlib
import errno
import json
import os
import select
import selectors
import shlex
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, Self, cast

from signet_conformance.children import forks, watchdog
from signet_conformance.children.deadline import Deadline, cpu_of, cpu_with_descendants, note_cpu
from signet_conformance.children.watchdog_program import signal_group
from signet_conformance.errors import MORE_FILES, KitError, SignetConformanceError, printable


class LineCutter:
    """Cuts a stream of chunks into lines for `take`, which gets a line longer than `limit` bytes in pieces."""

    def __init__(self, take: Callable[[bytes], None], limit: int) -> None:
        self._take = take
        self._limit = limit
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Take the next chunk; an empty one is the end of the stream."""
        start = len(self._rest)
        self._rest += chunk
        while (end := self._rest.find(b"\n", start)) >= 0:
            self._hand_on(end + 1)
            start = 0
        while len(self._rest) >= self._limit or (self._rest and not chunk):
            self._hand_on(min(len(self._rest), self._limit))

    def _hand_on(self, size: int) -> None:
        line = bytes(self._rest[:size])
        del self._rest[:size]
        self._take(line)


MAX_LINE_BYTES = 16 * 1024 * 1024
KEPT_STDERR_LINES = 200
SEND_TIMEOUT_S = 30.0
_MAX_STDERR_LINE_BYTES = 8192
_CHUNK_BYTES = 64 * 1024
_TAIL_LINES = 20
_SHOWN_CHARACTERS = 64 * 1024
_GRACE_S = 2.0
_LOOK_S = 0.25
_LONGEST_POLL_S = 86_400.0

_starting = threading.Lock()
_running: set[LineProcess] = set()


class ChildEndedError(KitError):
    """Raised when a child process ended, or closed its output, while an answer was awaited."""


class ChildTimeoutError(KitError):
    """Raised when a child process gave no answer, or read no input, within its deadline."""


class LineProcess:
    """One child process with JSON lines on stdin and stdout; the last lines of its stderr are kept.

    Messages call it `name`; `redacted` removes secrets from its output. The child leads a process group of its own,
    which is killed as a whole when the context ends, unless `leave` left the child running.

    The caller's thread reads the answers: a reading thread would cost two thread switches for each answer. With
    `drops_output`, a thread reads standard output, such as a log, and drops it. `passed_over` gets each line that
    is not a JSON object; without it such a line is an error.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        error: type[SignetConformanceError] = KitError,
        redacted: Callable[[str], str] = str,
        drops_output: bool = False,
        passed_over: Callable[[str], None] | None = None,
    ) -> None:
        self.name = name
        self._passed_over = passed_over
        self._redacted = redacted
        self._command = tuple(command)
        self._error = error
        self._answers: deque[bytes] = deque()
        self._lines = LineCutter(self._answers.append, MAX_LINE_BYTES)
        self._output_ended = False
        self._receiving = threading.Lock()
        self.stderr: deque[str] = deque(maxlen=KEPT_STDERR_LINES)
        self._closing = False
        self._terminated = False
        self._grace_ends = 0.0
        self._cpu_noted = False
        self._wake_read = self._wake_write = -1
        try:
            self._wake_read, self._wake_write = os.pipe()
            with _starting:
                watched = watchdog.watched_environment(env)
                self._process = forks.start(self._command, watched, cwd) or _PlainProcess(
                    self._command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    env=watched, cwd=cwd, start_new_session=True,
                )  # fmt: skip
                # Both kinds were given three pipes, so none of the streams is None.
                self._stdin = cast("IO[bytes]", self._process.stdin)
                _running.add(self)
                watchdog.watch_group(self._process.pid)
        except OSError as failure:
            if self._wake_read >= 0:
                os.close(self._wake_read)
                os.close(self._wake_write)
            raise self._start_error(failure) from None
        os.set_blocking(self._stdin.fileno(), False)
        self._stdout = cast("IO[bytes]", self._process.stdout)
        pipes = (cast("IO[bytes]", self._process.stderr), [self._stdout] if drops_output else [])
        self._reader = threading.Thread(target=self._read_stderr, args=pipes, name=f"reads {name}", daemon=True)
        self._reader.start()

    def _start_error(self, failure: OSError) -> SignetConformanceError:
        has_too_few = failure.errno in (errno.EMFILE, errno.ENFILE)
        return self._error(
            f"{self.name} cannot be started: {failure.strerror or failure}",
            where=failure.filename or self._command[0],
            remedy=MORE_FILES if has_too_few else "check that the program is installed and on PATH",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The child's process id, which is its group's too."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit status; None while the child runs. Once it is set, `stderr` is complete."""
        if self._has_ended():
            self._reader.join(_GRACE_S)
        return self._process.returncode

    def send(self, message: Mapping[str, Any] | bytes, timeout_s: float = SEND_TIMEOUT_S) -> None:
        """Write one line; raise if the child does not read it within `timeout_s`, or has closed its input."""
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        rest = memoryview(line + b"\n")
        if self._stdin.closed:
            raise self._end_error()
        deadline = None
        writable = select.poll()
        writable.register(self._stdin.fileno(), select.POLLOUT)
        while rest:
            # The pipe has room for most lines, so the clock is read only if it is full.
            if not writable.poll(0 if deadline is None else min(deadline.left_s(), _LOOK_S) * 1000):
                if deadline is None:
                    deadline = self.deadline(timeout_s)
                elif not deadline.left_s():
                    words = deadline.words()
                    raise ChildTimeoutError(f"{self.name} did not read its input {words}", remedy=self._advice())
                continue
            try:
                rest = rest[os.write(self._stdin.fileno(), rest) :]
            except BlockingIOError:
                continue
            except OSError:
                raise self._end_error() from None

    def send_last(self, message: Mapping[str, Any]) -> None:
        """Write one short line before `close`; drop it if the pipe is full because the child is stuck."""
        if self._closing or self._stdin.closed:
            return
        # Another thread may close it just now.
        with contextlib.suppress(OSError, ValueError):
            os.write(self._stdin.fileno(), json.dumps(message).encode() + b"\n")

    def deadline(self, timeout_s: float) -> Deadline:
        """Return a deadline for several answers of the child."""
        return Deadline(timeout_s, partial(cpu_with_descendants, self._process.pid))

    def receive(self, within: float | Deadline) -> dict[str, Any]:
        """Return the next JSON object on stdout; raise if none comes in time, or the line is something else."""
        deadline = within if isinstance(within, Deadline) else self.deadline(within)
        while (line := self._next_line(deadline)) is not None:
            try:
                answer = json.loads(line)
            except (ValueError, RecursionError):
                answer = None
            if isinstance(answer, dict):
                return answer
            # Redacted before it is cut: half a secret would not be recognised.
            text = self._redacted(line[:_MAX_STDERR_LINE_BYTES].decode("utf-8", "replace").rstrip("\n"))
            if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                raise self._error(
                    f"{self.name} wrote a line of {MAX_LINE_BYTES // 2**20} MiB or more: {printable(text)}",
                    remedy="end each answer with a line break, and write shorter answers",
                )
            if self._passed_over is None:
                raise self._error(
                    f"{self.name} wrote a line that is not a JSON object: {printable(text)}",
                    remedy="standard output is for answers only, one JSON object a line; write logs to standard error",
                )
            self._passed_over(text)
        raise self._end_error()

    def ask(self, message: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send one line and return the next answer."""
        self.send(message)
        return self.receive(timeout_s)

    def close(self) -> None:
        """End the child: close its stdin, wait a moment, then kill its whole group. Safe to call twice."""
        if self._closing:
            return
        self._closing = True
        try:
            self.close_input()
            self.await_end()
            self.terminate()
            self.await_end()
        finally:
            if not self._has_ended():
                signal_group(self._process.pid, signal.SIGKILL)
                self._has_ended(None)
            self._close_output()

    def kill(self) -> None:
        """Kill the child's whole group at once, then close its pipes."""
        if not self._closing and not self._has_ended():
            signal_group(self._process.pid, signal.SIGKILL)
        self.close()

    def leave(self) -> None:
        """Close the child's pipes; leave it running if it does not end within two seconds."""
        if self._closing:
            return
        self.close_input()
        self.await_end()
        if self._has_ended():
            self.close()
            return
        self._closing = True
        # Set, so that no later call waits for the child.
        self._process.returncode = 0
        watchdog.forget_group(self._process.pid)
        self._close_output()

    def close_input(self) -> None:
        """Close the child's stdin, which asks it to end; `await_end` then waits two seconds."""
        if not self._stdin.closed:
            self._grace_ends = time.monotonic() + _GRACE_S
            with contextlib.suppress(OSError):
                self._stdin.close()

    def terminate(self) -> None:
        """Send SIGTERM, once, if the child still runs; `await_end` then waits another two seconds."""
        if not self._terminated and not self._has_ended():
            self._terminated = True
            self._grace_ends = time.monotonic() + _GRACE_S
            signal_group(self._process.pid, signal.SIGTERM)

    def await_end(self) -> None:
        """Wait until the child has ended, or its grace period is over."""
        self._has_ended(max(0.0, self._grace_ends - time.monotonic()))

    def _has_ended(self, timeout_s: float | None = 0.0) -> bool:
        """Whether the child ends within `timeout_s`; if so, its whole group has ended."""
        if self._process.returncode is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout_s)
                watchdog.forget_group(self._process.pid)
                # Another thread may have waited for it at the same time.
                if not self._cpu_noted:
                    self._cpu_noted = True
                    note_cpu(self.name, self._process.cpu_s)
        return self._process.returncode is not None

    def _next_line(self, deadline: Deadline) -> bytes | None:
        """The next line of the child's output; None when its output, or the child, has ended before one."""
        ended_at: float | None = None
        with self._receiving:
            while not self._answers and not self._output_ended:
                left_s = deadline.left_s()
                if self._read_answers(min(left_s, _LOOK_S)):
                    continue
                if not left_s:
                    raise self.overdue(deadline)
                now = time.monotonic()
                # A process that left the group may keep the child's output open for ever, so the child's end counts.
                if ended_at is None and self._has_ended():
                    ended_at = now
                if ended_at is not None and now - ended_at > _GRACE_S:
                    return None
            return self._answers.popleft() if self._answers else None

    def overdue(self, deadline: Deadline) -> ChildTimeoutError:
        """The error of a child that gave no answer within a deadline."""
        return ChildTimeoutError(f"{self.name} gave no answer {deadline.words()}", remedy=self._advice())

    def _read_answers(self, timeout_s: float) -> bool:
        """Read what the child writes within `timeout_s`; whether it wrote anything, or its output ended."""
        readable = select.poll()
        readable.register(self._stdout.fileno(), select.POLLIN)
        if not readable.poll(timeout_s * 1000):
            return False
        chunk = os.read(self._stdout.fileno(), _CHUNK_BYTES)
        self._lines.feed(chunk)
        self._output_ended = not chunk
        return True

    def tail(self) -> tuple[str, ...]:
        """The last lines of the child's stderr, each harmless to a terminal."""
        self._reader.join(_LOOK_S)
        if not self.stderr:
            return ()
        lines = self._redacted("\n".join(self.stderr)[-_SHOWN_CHARACTERS:]).split("\n")
        return tuple(printable(line, 300) for line in lines[-_TAIL_LINES:])

    def _advice(self) -> str:
        """The end of the child's stderr, or how to run the child by hand if it wrote nothing there."""
        lines = self.tail()
        if not lines:
            command = printable(self._redacted(shlex.join(self._command)), 300)
            return f"it wrote nothing to standard error; run it by hand: {command}"
        return "its standard error ends with:" + "".join(f"\n    {line}" for line in lines)

    def _end_error(self) -> ChildEndedError:
        self._has_ended(_GRACE_S)
        status = self.returncode
        how = "closed its output" if status is None else f"ended with status {status}"
        return ChildEndedError(f"{self.name} {how}", remedy=self._advice())

    def _close_output(self) -> None:
        _running.discard(self)
        self._reader.join(_LOOK_S)
        # A process that left the group may still hold the pipes, which then never end.
        os.close(self._wake_write)
        self._reader.join()
        os.close(self._wake_read)
        # A thread that awaits an answer finishes first.
        with self._receiving:
            self._output_ended = True
            self._stdout.close()

    def _read_stderr(self, stderr: IO[bytes], dropped: Sequence[IO[bytes]]) -> None:
        """The reading thread: takes lines of standard error until its end, or until it is woken up."""
        lines = LineCutter(self._take_stderr_line, _MAX_STDERR_LINE_BYTES)
        # Unlike the default selector it needs no file descriptor, which may be scarce.
        with selectors.PollSelector() as ready, stderr:
            ready.register(stderr, selectors.EVENT_READ, lines)
            for pipe in dropped:
                ready.register(pipe, selectors.EVENT_READ, LineCutter(lambda _line: None, _CHUNK_BYTES))
            ready.register(self._wake_read, selectors.EVENT_READ)
            while len(ready.get_map()) > 1:
                for key, _ in ready.select():
                    if key.data is None:
                        return
                    chunk = os.read(key.fd, _CHUNK_BYTES)
                    key.data.feed(chunk)
                    if not chunk:
                        ready.unregister(key.fileobj)

    def _take_stderr_line(self, line: bytes) -> None:
        self.stderr.append(line.decode("utf-8", "replace").rstrip("\n"))

    def end(self) -> None:
        """Close the child; if another thread is already closing it, kill it if that takes too long."""
        self.close()
        if not self._has_ended(3 * _GRACE_S):
            signal_group(self._process.pid, signal.SIGKILL)


class _PlainProcess(subprocess.Popen[bytes]):
    """A child that is not a fork, with the interface of one: once `wait` returns, its whole group has ended."""

    cpu_s = 0.0

    def wait(self, timeout: float | None = None) -> int:
        """The exit status. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            left_s = wait_for_end(self.pid, timeout) if timeout else timeout
            taken_s = cpu_of(self.pid)
            super().wait(left_s)
            # If two threads wait, the second may have measured after the process was gone.
            self.cpu_s = max(self.cpu_s, taken_s)
            # At once: the system may soon reuse the id.
            signal_group(self.pid, signal.SIGKILL)
        return self.returncode


def wait_for_end(pid: int, timeout_s: float) -> float:
    """Wait for the end of a child without reaping it; return the rest of `timeout_s`.

    `subprocess` polls only every 50 ms, which adds up over many children. Where the system has no process descriptors,
    return `timeout_s` at once.
    """
    began = time.monotonic()
    try:
        descriptor = os.pidfd_open(pid)
    except (AttributeError, OSError):
        return timeout_s
    try:
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        # poll takes no more than 2**31 ms, and waits without end for a negative number.
        ended.poll(min(max(timeout_s, 0.0), _LONGEST_POLL_S) * 1000)
    finally:
        os.close(descriptor)
    return max(0.0, timeout_s - (time.monotonic() - began))


@atexit.register
def _end_running() -> None:
    # The threads of an interrupted run end with the interpreter, before they close their children.
    # The lock is never released, so that none of these threads starts another child.
    _starting.acquire()
    children = list(_running)
    # All children share the grace periods: a supervisor that stops the run soon kills it.
    for ask in (LineProcess.close_input, LineProcess.terminate):
        for child in children:
            ask(child)
        for child in children:
            child.await_end()
    for child in children:
        child.end()
