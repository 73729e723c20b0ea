"""The process that makes the lines of exchanges with large bodies: `LineMaker` starts it, and it ends with it.

Searching a large body for secrets takes a while, in which the recorder's event loop has other connections to serve.
Both talk over a socket that no other process has: a message is a pickle after its length. The process is a fork: its
patterns are compiled already, and what a new interpreter would do until its first line takes longer than most of its
lines.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import socket
import struct
import warnings
from collections.abc import Mapping, Sequence

from msgspec import Struct

from signet_recording_proxy.exchange_line import EndedExchange
from signet_recording_proxy.redaction.redactor import Learned, ProvisionalRedactor

LENGTH = struct.Struct(">Q")
_PIECE = 1 << 20
_LESS_URGENT = 5
_MOST_FILES = 1 << 16


class LineJob(Struct):
    """An exchange whose line is to be made, and what the recorder has learned of secrets since the job before."""

    number: int
    exchange: EndedExchange
    canaries: Mapping[str, str]
    secrets: Sequence[str]
    learned: Sequence[Learned]


class Made(Struct):
    """The line of a job, in which new `secrets` have provisional tokens; or the failure to make one."""

    number: int
    line: bytes = b""
    secrets: Sequence[str] = ()
    failure: str | None = None


def pack(message: LineJob | Made) -> bytes:
    """A message as it is sent."""
    data = pickle.dumps(message, protocol=5)
    return LENGTH.pack(len(data)) + data


def _received(connection: socket.socket, size: int) -> bytes:
    pieces: list[bytes] = []
    while size:
        piece = connection.recv(min(size, _PIECE))
        if not piece:
            raise EOFError
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def start(connection: socket.socket) -> int:
    """Fork a worker that talks over this connection, and return its process id."""
    with warnings.catch_warnings():
        # The thread that reads standard input holds no lock that the worker needs.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process:
        return process
    try:
        _leave_the_recorder(connection)
        _make_lines()
    finally:
        os._exit(0)


def _leave_the_recorder(connection: socket.socket) -> None:
    """Keep nothing open but the connection, as descriptor 0, and standard error."""
    signal.set_wakeup_fd(-1)
    # A terminal interrupts its whole group; the recorder decides when lines are made no more.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.dup2(connection.fileno(), 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    limit = os.sysconf("SC_OPEN_MAX")
    os.closerange(3, limit if limit > 0 else _MOST_FILES)
    with contextlib.suppress(OSError):
        os.nice(_LESS_URGENT)  # who waits for an answer goes first
    gc.freeze()


def _make_lines() -> None:
    """Make lines until the recorder closes the connection."""
    redactor: ProvisionalRedactor | None = None
    with socket.socket(fileno=0) as connection:
        while True:
            try:
                (size,) = LENGTH.unpack(_received(connection, LENGTH.size))
                job: LineJob = pickle.loads(_received(connection, size))  # noqa: S301 - what the recorder sends
            except (EOFError, ConnectionError):
                return
            if redactor is None:
                redactor = ProvisionalRedactor(job.canaries)
            redactor.learn_from_recorder(job.secrets, job.learned)
            try:
                made = Made(job.number, job.exchange.line(redactor), redactor.take_new())
            except Exception as bug:  # noqa: BLE001 - a bug costs this line, and no other
                redactor.take_new()
                made = Made(job.number, failure=type(bug).__name__)
            try:
                connection.sendall(pack(made))
            except ConnectionError:
                return
