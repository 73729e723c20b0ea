"""Has the lines of exchanges with large bodies made by a process of their own, started when the first one comes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import signal
import socket
from collections.abc import Callable
from itertools import islice
from typing import Any

from signet_recording_proxy import line_worker
from signet_recording_proxy.exchange_line import EndedExchange
from signet_recording_proxy.line_worker import LENGTH, LineJob, Made, pack
from signet_recording_proxy.redaction.redactor import Redactor

Deliver = Callable[[bytes | None, str], None]
"""Takes the line, or None with the reason why it could not be made."""
MOST_HELD = 512 * 1024 * 1024
"""So many bytes of bodies wait for their lines at most. Of what comes then, no more than its place is written."""
_BUFFER = 1 << 20
_AHEAD = 2


class LineMaker(asyncio.Protocol):
    """The recorder's side of the connection to the worker. Lines come back in the order of their jobs."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._jobs: dict[int, tuple[EndedExchange, Deliver]] = {}
        self._count = self._sent = self._held = 0
        self._known = (0, 0)
        """How many secrets, and how many learned ones, the worker has been told."""
        self._transport: Any = None
        self._starting: asyncio.Task[None] | None = None
        self._process: int | None = None
        self._ended: asyncio.Future[None] | None = None
        self._pieces: list[bytes] = []
        self._came = 0
        self._wanted: int | None = None

    def make(self, exchange: EndedExchange, deliver: Deliver) -> None:
        """Have the line of an exchange made."""
        # What headers give away is looked for from now on, in whatever line is made next.
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
        """Send what the worker may begin with: the next one is there when it is done with the one before."""
        for number, (exchange, _) in islice(self._jobs.items(), _AHEAD):
            if number > self._sent:
                self._sent = number
                secrets, learned = self._redactor.news(*self._known)
                self._known = (self._known[0] + len(secrets), self._known[1] + len(learned))
                self._transport.write(pack(LineJob(number, exchange, self._redactor.canaries, secrets, learned)))

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
                self._process = line_worker.start(theirs)
            await loop.create_unix_connection(lambda: self, sock=ours)
        except OSError as failure:
            ours.close()
            self._lose(f"no process for it: {failure.strerror or failure}")

    # ---- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The worker is there."""
        self._transport = transport
        self._send_next()

    def data_received(self, data: bytes) -> None:
        """A part of a line has come, or several."""
        self._pieces.append(data)
        self._came += len(data)
        while self._came >= (LENGTH.size if self._wanted is None else self._wanted):
            whole = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            end = LENGTH.size if self._wanted is None else self._wanted
            message, rest = whole[:end], whole[end:]
            self._pieces, self._came = [rest], len(rest)
            if self._wanted is None:
                (self._wanted,) = LENGTH.unpack(message)
            else:
                self._wanted = None
                self._deliver(pickle.loads(message))  # noqa: S301 - what our own worker sends

    def _deliver(self, made: Made) -> None:
        deliver = self._take(made.number)
        self._send_next()
        if made.failure is None:
            deliver(self._redactor.settle(made.line, made.secrets), "")
        else:
            deliver(None, made.failure)

    def connection_lost(self, _failure: Exception | None) -> None:
        """The worker is there no longer: it was killed, or there is no memory for it."""
        self._lose("the process that made it ended")

    def _lose(self, why: str) -> None:
        process, self._process = self._process, None
        if process is not None:
            self._ended = asyncio.get_running_loop().run_in_executor(None, _wait_for, process)
        began = self._transport is not None
        self._transport, self._starting, self._known, self._sent = None, None, (0, 0), 0
        self._pieces, self._came, self._wanted = [], 0, None
        lost = list(self._jobs)[:1] if began else list(self._jobs)
        for number in lost:
            self._take(number)(None, why)
        if self._jobs:  # what the worker had not begun is made by another one
            self._starting = asyncio.get_running_loop().create_task(self._start())

    async def end(self) -> None:
        """End the worker, and whatever it still does."""
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
