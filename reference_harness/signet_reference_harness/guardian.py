"""The process between the harness and a program that it starts, which ends the program with the harness.

It runs as `python -I -S guardian.py GRACE_S KILL_GRACE_S COMMAND ...`, in one process group with the program, and both
have the same standard input. When the harness ends in any way, that input closes. The guardian then gives the program
GRACE_S to end, and ends the whole group: by SIGTERM, and after KILL_GRACE_S by SIGKILL. It passes the program's output
on line by line. It drops a line that is not a JSON message, and replaces one that is too long by an error, so that no
answer fills the harness's memory. It reports on standard error how the program ended.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress

LONGEST_LINE = 8 * 1024 * 1024
"""Bytes of one message of a program."""
CHUNK = 64 * 1024
HEAD = 256
LAST_WORDS = "the guarded program "
MARK = "SIGNET_HARNESS_GUARDED"
"""The environment variable that identifies descendants that left the group (Linux only)."""


class MessageLines:
    """Passes complete lines on, and replaces one that is too long by an error."""

    def __init__(self, most: int = LONGEST_LINE) -> None:
        self._most = most
        self._pieces: list[bytes] = []
        self._size = 0
        self._skips = False

    def feed(self, chunk: bytes) -> bytes:
        """Take the next chunk; return the lines that it completes."""
        lines = []
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._add(end)
            lines.append(self._line())
        self._add(rest)
        return b"".join(lines)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._most and not self._skips:
            self._pieces, self._skips = [b"".join(self._pieces)[:HEAD] or piece[:HEAD]], True
        elif piece and not self._skips:
            self._pieces.append(piece)

    def _line(self) -> bytes:
        line = b"".join(self._pieces)
        if self._skips:
            line = _too_long(line, self._size)
        elif not line.lstrip().startswith((b"{", b"[")):
            # Many programs write their log to standard output, and no message begins like that.
            line = b""
        self._pieces, self._size, self._skips = [], 0, False
        return line + b"\n" if line else b""


def _too_long(head: bytes, size: int) -> bytes:
    """The error in place of an answer of `size` bytes that begins with `head`; empty if it answers no request."""
    import re

    answers = re.match(rb'[^{]{0,20}\{(?:"jsonrpc" ?: ?"2.0" ?, ?)?"id" ?: ?(\d{1,18}|"[\w.-]{1,60}")', head)
    if answers is None:
        return b""
    text = b"the server's answer has %d bytes, more than %d" % (size, LONGEST_LINE)
    error = b'{"code":-32603,"message":"%s"}' % text
    return b'{"jsonrpc":"2.0","id":%s,"error":%s}' % (answers[1], error)


def main() -> None:
    """Start the program and wait for its end."""
    grace_s, kill_grace_s, command = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    mark = os.urandom(8).hex()
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    out, inside = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, inside, 1), (os.POSIX_SPAWN_CLOSE, out), (os.POSIX_SPAWN_CLOSE, inside)]
    environment = {**os.environ, MARK: mark}
    defaults = [signal.SIGPIPE, signal.SIGXFSZ]
    try:
        program = os.posix_spawnp(command[0], command, environment, file_actions=actions, setsigdef=defaults)
    except OSError as error:
        _report(f"cannot be started: {command[0]}: {error.strerror or error.errno}")
        return
    os.close(inside)
    status = ProgramWatch(program, out, grace_s, kill_grace_s).status()
    _report("ended with " + (f"exit status {status}" if status >= 0 else f"signal {signal.Signals(-status).name}"))
    _end_all(mark)


class ProgramWatch:
    """Watches one program and passes its output, read from `out`, on."""

    def __init__(self, program: int, out: int, grace_s: float, kill_grace_s: float) -> None:
        self._program = program
        self._grace_s = grace_s
        self._kill_grace_s = kill_grace_s
        self._out = out
        self._lines = MessageLines()
        self._terminate_at: float | None = None
        self._kill_at: float | None = None
        self._poll = select.poll()

    def status(self) -> int:
        """Pass the program's output on until it has ended; return its exit status, negative for a signal."""
        wake, ring = os.pipe()
        os.set_blocking(ring, False)
        signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._note_termination)
        self._poll.register(self._out, select.POLLIN)
        self._poll.register(wake, select.POLLIN)
        # Only the program reads standard input; here only its closing matters.
        self._poll.register(0, 0)
        while True:
            ended, status = os.waitpid(self._program, os.WNOHANG)
            if ended:
                self._drain()
                return os.waitstatus_to_exitcode(status)
            ready = dict(self._poll.poll(self._poll_timeout_ms()))
            if wake in ready:
                os.read(wake, CHUNK)
            if 0 in ready:
                self._poll.unregister(0)
                self._close()
            if self._out in ready and not self._pass_on():
                self._poll.unregister(self._out)
                _close_output()
                self._close()

    def _close(self) -> None:
        """Standard input or the program's output has closed: let the program end by itself for a while."""
        self._terminate_at = self._terminate_at or time.monotonic() + self._grace_s

    def _note_termination(self, *_: object) -> None:
        self._kill_at = self._kill_at or time.monotonic() + self._kill_grace_s

    def _poll_timeout_ms(self) -> float | None:
        """Send the signals that are due, and return the time until the next."""
        now = time.monotonic()
        if self._terminate_at is not None and self._kill_at is None and now >= self._terminate_at:
            # This process gets the signal, too; its handler then sets the time of the kill.
            os.killpg(0, signal.SIGTERM)
        if self._kill_at is not None and now >= self._kill_at:
            os.kill(self._program, signal.SIGKILL)
            return self._kill_grace_s * 1000
        due = self._kill_at if self._kill_at is not None else self._terminate_at
        return None if due is None else max(due - now, 0) * 1000

    def _pass_on(self) -> bool:
        """Pass new output on; return False when the program or the harness has closed its end."""
        chunk = os.read(self._out, CHUNK)
        return bool(chunk) and _write_out(self._lines.feed(chunk))

    def _drain(self) -> None:
        """Pass on the last output of the ended program; its descendants may hold the pipe open."""
        os.set_blocking(self._out, False)
        with suppress(OSError):
            while self._pass_on():
                pass


def _write_out(data: bytes) -> bool:
    """Write to the harness; return False when it is gone."""
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError:
        return False
    return True


def _close_output() -> None:
    """Close the output to the harness, which then sees its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _end_all(mark: str) -> None:
    """Kill all descendants of the program, and the group with this process."""
    mark_entry = f"{MARK}={mark}".encode()
    try:
        processes = [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208 - pathlib is slow to import
    except OSError:
        processes = []
    for process in processes:
        try:
            with open(f"/proc/{process}/environ", "rb") as environment:  # noqa: PTH123 - as above
                if mark_entry in environment.read().split(b"\0"):
                    os.kill(process, signal.SIGKILL)
        except OSError:
            continue
    os.killpg(0, signal.SIGKILL)


def _report(text: str) -> None:
    with suppress(OSError):
        os.write(2, f"\n{LAST_WORDS}{text}\n".encode(errors="backslashreplace"))


if __name__ == "__main__":
    main()
