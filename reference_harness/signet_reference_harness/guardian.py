"""The process between the harness and a program that it starts, which ends the program with the harness.

It runs by itself, as `python -I -S guardian.py GRACE_S KILL_GRACE_S COMMAND ...`, in a process group that the program
shares. Its standard input is the program's, too: when the harness is gone in whatever way, that input closes,
the guardian sees it, and the whole group ends: by SIGTERM after GRACE_S for the program's own end, and by SIGKILL after
KILL_GRACE_S more. Output of the program passes through line by line: a line that is not a JSON message is dropped, and
one that is too long gets an error as its answer, so that no answer fills the harness's memory. The guardian reports on
standard error how the program ended.
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
"""The variable by which descendants that left the group are known; only Linux shows it."""


class MessageLines:
    """Passes whole lines on, and puts an error in the place of one that is too long."""

    def __init__(self, most: int = LONGEST_LINE) -> None:
        self._most = most
        self._held: list[bytes] = []
        self._size = 0
        self._skips = False

    def feed(self, chunk: bytes) -> bytes:
        """What may be passed on now that `chunk` has come."""
        made = []
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._hold(end)
            made.append(self._line())
        self._hold(rest)
        return b"".join(made)

    def _hold(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._most and not self._skips:
            self._held, self._skips = [b"".join(self._held)[:HEAD] or piece[:HEAD]], True
        elif piece and not self._skips:
            self._held.append(piece)

    def _line(self) -> bytes:
        line = b"".join(self._held)
        if self._skips:
            line = _too_long(line, self._size)
        elif not line.lstrip().startswith((b"{", b"[")):
            # Many a program writes its log here, and no message begins like that.
            line = b""
        self._held, self._size, self._skips = [], 0, False
        return line + b"\n" if line else b""


def _too_long(head: bytes, size: int) -> bytes:
    """The answer in the place of one of `size` bytes that begins with `head`; empty when it answers nothing."""
    import re

    answers = re.match(rb'[^{]{0,20}\{(?:"jsonrpc" ?: ?"2.0" ?, ?)?"id" ?: ?(\d{1,18}|"[\w.-]{1,60}")', head)
    if answers is None:
        return b""
    text = b"the server's answer has %d bytes, and one may have %d" % (size, LONGEST_LINE)
    error = b'{"code":-32603,"message":"%s"}' % text
    return b'{"jsonrpc":"2.0","id":%s,"error":%s}' % (answers[1], error)


def main() -> None:
    """Start the program and see it to its end."""
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
        _say(f"cannot be started: {command[0]}: {error.strerror or error.errno}")
        return
    os.close(inside)
    status = ProgramWatch(program, out, grace_s, kill_grace_s).status()
    _say("ended with " + (f"exit status {status}" if status >= 0 else f"signal {signal.Signals(-status).name}"))
    _end_all(mark)


class ProgramWatch:
    """Over one program, whose output is read from `out`."""

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
        """Pass on what the program says until it has ended; its exit status, negative for a signal."""
        wake, ring = os.pipe()
        os.set_blocking(ring, False)
        signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._terminated)
        self._poll.register(self._out, select.POLLIN)
        self._poll.register(wake, select.POLLIN)
        # Never read here: only its closing is waited for.
        self._poll.register(0, 0)
        while True:
            ended, status = os.waitpid(self._program, os.WNOHANG)
            if ended:
                self._drain()
                return os.waitstatus_to_exitcode(status)
            ready = dict(self._poll.poll(self._patience_ms()))
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
        """One of the ends is closed: give the program a moment to end by itself."""
        self._terminate_at = self._terminate_at or time.monotonic() + self._grace_s

    def _terminated(self, *_: object) -> None:
        self._kill_at = self._kill_at or time.monotonic() + self._kill_grace_s

    def _patience_ms(self) -> float | None:
        """Send the signals that are due, and return the time until the next."""
        now = time.monotonic()
        if self._terminate_at is not None and self._kill_at is None and now >= self._terminate_at:
            # This process gets it as well, and waits for the kill from then on.
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
    """Let the harness see the end of the output."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _end_all(mark: str) -> None:
    """Kill all descendants of the program, and with the group this process, too."""
    wanted = f"{MARK}={mark}".encode()
    try:
        processes = [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208 - pathlib is slow to import
    except OSError:
        processes = []
    for process in processes:
        try:
            with open(f"/proc/{process}/environ", "rb") as environment:  # noqa: PTH123 - as above
                if wanted in environment.read().split(b"\0"):
                    os.kill(process, signal.SIGKILL)
        except OSError:
            continue
    os.killpg(0, signal.SIGKILL)


def _say(what: str) -> None:
    with suppress(OSError):
        os.write(2, f"\n{LAST_WORDS}{what}\n".encode(errors="backslashreplace"))


if __name__ == "__main__":
    main()
