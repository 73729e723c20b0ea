"""Makes the lines of exchanges with large bodies in another process, which starts when the first one comes.

Searching a large body for secrets takes a while, in which the recorder's event loop has to serve other connections.
Both processes talk over a socket that no other process has: a message is a pickle and a line, after the lengths of
both, so that megabytes are copied as little as possible. The worker is a fork, whose patterns are compiled already: to
start an interpreter would take longer than most lines. It ends with the recorder.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import pickle
import signal
import socket
import struct
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from msgspec import Struct

from signet_recording_proxy.redaction.redactor import Redactor
from signet_recording_proxy.trace_file import EndedExchange, Line

_LENGTHS = struct.Struct(">QQ")
_PIECE = 1 << 20
_LESS_URGENT = 5
_MOST_FILES = 1 << 16


class ProvisionalRedactor(Redactor):
    """A redactor that follows the one in another process, which alone gives numbers to secrets."""

    def __init__(self, canaries: Mapping[str, str]) -> None:
        self._new: dict[str, str] = {}
        self._mark: str | None = None
        super().__init__(canaries)
        self._mark = os.urandom(8).hex()

    def learn_from_recorder(self, secrets: Sequence[str], learned: Sequence[str]) -> None:
        """Take over what the other redactor has numbered and learned since the last call."""
        mark, self._mark = self._mark, None
        for secret in secrets:
            if secret not in self._tokens:  # canaries have their numbers already
                self._number(secret)
        for secret in learned:
            self._known.add(secret, self._tokens[secret])
        self._mark = mark

    def take_new(self) -> Sequence[str]:
        """Return and forget the secrets that have provisional tokens."""
        new, self._new = list(self._new), {}
        for secret in new:
            del self._tokens[secret]
        return new

    def _number(self, secret: str) -> str:
        if self._mark is None:
            return super()._number(secret)
        token = self._new[secret] = self._tokens[secret] = f"<redacted:~{self._mark}_{len(self._new)}>"
        return token


class LineJob(Struct):
    """An exchange whose line is to be made, and the secrets that the recorder learned since the job before."""

    number: int
    exchange: EndedExchange
    canaries: Mapping[str, str]
    secrets: Sequence[str]
    learned: Sequence[str]


class LineResult(Struct):
    """The secrets whose tokens in a job's line are provisional, or the reason why the line is missing; sent with it."""

    number: int
    secrets: Sequence[str] = ()
    failure: str | None = None


def _message(content: LineJob | LineResult, line: bytes = b"") -> tuple[bytes, bytes, bytes]:
    """The parts of a message, in the order in which they are sent."""
    data = pickle.dumps(content, protocol=5)
    return _LENGTHS.pack(len(data), len(line)), data, line


def _receive(connection: socket.socket, size: int) -> bytes:
    pieces: list[bytes] = []
    while size:
        piece = connection.recv(min(size, _PIECE))
        if not piece:
            raise EOFError
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _start_worker(connection: socket.socket) -> int:
    """Fork a worker that talks over this connection, and return its process id."""
    with warnings.catch_warnings():
        # The thread that reads standard input holds no lock that the worker needs.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process:
        return process
    try:
        _drop_inherited_files(connection)
        _make_lines()
    finally:
        os._exit(0)


def _drop_inherited_files(connection: socket.socket) -> None:
    """Keep nothing open but the connection, as descriptor 0, and standard error."""
    signal.set_wakeup_fd(-1)
    # A terminal interrupts its whole group, but only the recorder decides when no more lines are made.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.dup2(connection.fileno(), 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    limit = os.sysconf("SC_OPEN_MAX")
    os.closerange(3, limit if limit > 0 else _MOST_FILES)
    with contextlib.suppress(OSError):
        os.nice(_LESS_URGENT)  # the recorder goes first: clients wait for it
    gc.freeze()


def _make_lines() -> None:
    """Make lines until the recorder closes the connection."""
    redactor: ProvisionalRedactor | None = None
    with socket.socket(fileno=0) as connection:
        while True:
            try:
                size, _ = _LENGTHS.unpack(_receive(connection, _LENGTHS.size))
                job: LineJob = pickle.loads(_receive(connection, size))  # noqa: S301 - what the recorder sends
            except (EOFError, ConnectionError):
                return
            if redactor is None:
                redactor = ProvisionalRedactor(job.canaries)
            redactor.learn_from_recorder(job.secrets, job.learned)
            line = b""
            try:
                line = job.exchange.large_line(redactor)
                result = LineResult(job.number, redactor.take_new())
            except Exception as bug:  # noqa: BLE001 - a bug costs this line, and no other
                redactor.take_new()
                result = LineResult(job.number, failure=type(bug).__name__)
            try:
                for part in _message(result, line):
                    connection.sendall(part)
            except ConnectionError:
                return


Deliver = Callable[[Line | None, str], None]
"""Takes the line, or None with the reason why it could not be made."""
MOST_HELD = 512 * 1024 * 1024
"""How many bytes of bodies may wait for their lines. If more come, only a placeholder line is written."""
_BUFFER = 1 << 20
_AHEAD = 2


class LineMaker(asyncio.BufferedProtocol):
    """The recorder's side of the connection to the worker. Lines come back in the order of their jobs."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._jobs: dict[int, tuple[EndedExchange, Deliver]] = {}
        self._count = self._sent = self._held = 0
        self._known = (0, 0)
        """How many secrets, and how many learned ones, the worker knows."""
        self._transport: Any = None
        self._starting: asyncio.Task[None] | None = None
        self._process: int | None = None
        self._ended: asyncio.Future[None] | None = None
        self._lengths: tuple[int, int] | None = None
        """The lengths of the parts of the incoming message, once they are known."""
        self._incoming = memoryview(bytearray(_LENGTHS.size))
        self._filled = 0

    def make(self, exchange: EndedExchange, deliver: Deliver) -> None:
        """Have the line of an exchange made."""
        # From now on, secrets of these headers are searched for in every line, whichever is made next.
        self._redactor.learn_from(exchange.request.headers)
        if exchange.response is not None:
            self._redactor.learn_from(exchange.response.headers)
            exchange.response.body.seal()
        exchange.request.body.seal()
        if self._held + exchange.size > MOST_HELD and self._jobs:
            deliver(None, f"{self._held >> 20} MiB wait for it already")
            return
        self._count += 1
        self._held += exchange.size
        self._jobs[self._count] = exchange, deliver
        if self._transport is not None:
            self._send_next()
        elif self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._start())

    def _send_next(self) -> None:
        """Send the worker's next job, so that it is there when the worker is done with the one before."""
        for number, (exchange, _) in islice(self._jobs.items(), _AHEAD):
            if number > self._sent:
                self._sent = number
                secrets, learned = self._redactor.news(*self._known)
                self._known = (self._known[0] + len(secrets), self._known[1] + len(learned))
                for part in _message(LineJob(number, exchange, self._redactor.canaries, secrets, learned)):
                    self._transport.write(part)

    def _take(self, number: int) -> Deliver:
        exchange, deliver = self._jobs.pop(number)
        self._held -= exchange.size
        return deliver

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        ours.setblocking(False)
        try:
            with theirs:
                self._process = _start_worker(theirs)
            await loop.create_unix_connection(lambda: self, sock=ours)
        except OSError as failure:
            ours.close()
            self._lose(f"no process for it: {failure.strerror or failure}")

    # ---- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note that the worker is connected."""
        self._transport = transport
        self._send_next()

    def get_buffer(self, _size: int) -> memoryview:
        """Return the buffer for the next bytes."""
        return self._incoming[self._filled :]

    def buffer_updated(self, size: int) -> None:
        """Note that this many bytes were written to the buffer; deliver a complete message."""
        self._filled += size
        if self._filled < len(self._incoming):
            return
        message, lengths = self._incoming, self._lengths
        if lengths is None:
            self._lengths = _LENGTHS.unpack(message)
            self._expect(sum(self._lengths))
        else:
            self._lengths = None
            self._expect(_LENGTHS.size)
            result = pickle.loads(message[: lengths[0]])  # noqa: S301 - what our own worker sends
            self._deliver(result, message[lengths[0] :])

    def _expect(self, size: int) -> None:
        self._incoming, self._filled = memoryview(bytearray(size)), 0

    def _deliver(self, result: LineResult, line: Line) -> None:
        deliver = self._take(result.number)
        self._send_next()
        if result.failure is None:
            deliver(self._redactor.settle(line, result.secrets), "")
        else:
            deliver(None, result.failure)

    def connection_lost(self, _failure: Exception | None) -> None:
        """Note that the worker is gone: it was killed, or there is no memory for it."""
        self._lose("the process that made it ended")

    def _lose(self, why: str) -> None:
        process, self._process = self._process, None
        if process is not None:
            self._ended = asyncio.get_running_loop().run_in_executor(None, _wait_for, process)
        began = self._transport is not None
        self._transport, self._starting, self._known, self._sent = None, None, (0, 0), 0
        self._lengths = None
        self._expect(_LENGTHS.size)
        lost = list(self._jobs)[:1] if began else list(self._jobs)
        for number in lost:
            self._take(number)(None, why)
        if self._jobs:  # what the worker had not begun is made by another one
            self._starting = asyncio.get_running_loop().create_task(self._start())

    async def end(self) -> None:
        """End the worker, and its current job."""
        if self._starting is not None:
            await self._starting
        process, self._process = self._process, None
        if process is not None:
            os.kill(process, signal.SIGKILL)
            await asyncio.get_running_loop().run_in_executor(None, _wait_for, process)
        if self._transport is not None:
            self._transport.abort()
        if self._ended is not None:
            await self._ended


def _wait_for(process: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(process, 0)
