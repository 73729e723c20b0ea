"""The process that makes the lines of exchanges with large bodies: `LineMaker` starts it, and it ends with it.

Searching a large body for secrets takes a while, in which the recorder's event loop has other connections to serve.
They talk over a socket that no other process has.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import socket

from signet_recording_proxy.line_jobs import LENGTH, LineJob, Made, pack
from signet_recording_proxy.redaction.redactor import ProvisionalRedactor

_PIECE = 1 << 20
_LESS_URGENT = 5


def _received(connection: socket.socket, size: int) -> bytes:
    pieces: list[bytes] = []
    while size:
        piece = connection.recv(min(size, _PIECE))
        if not piece:
            raise EOFError
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def main() -> None:
    """Make lines until the recorder closes the connection."""
    # A terminal interrupts its whole group; the recorder decides when lines are made no more.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(_LESS_URGENT)  # who waits for an answer goes first
    gc.freeze()
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


if __name__ == "__main__":
    main()
