"""A connection to the daemon, which serves the exchanges of one client in turn; the back pressure of both sides."""

from __future__ import annotations

import asyncio
from collections import deque
from enum import Enum
from typing import Protocol, cast

from signet_recording_proxy.engine.connection_limits import ConnectionLimits
from signet_recording_proxy.engine.messages import AnswerReader, Incoming
from signet_recording_proxy.upstream import Upstream


class PauseReason(Enum):
    """Reasons to stop reading from one side."""

    OTHER_SIDE = 1
    """The other side has not taken what was written to it."""
    EARLIER_REQUEST = 2
    """The request before it is not answered yet."""
    NO_DAEMON = 3
    """The daemon is not connected yet."""
    KEPT_BACK = 4
    """A fault holds the answer back."""


class ReadControl:
    """Controls the reading from a transport: on unless there is a reason to wait."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._reasons: set[PauseReason] = set()

    def shut(self, why: PauseReason) -> None:
        """Stop reading for a reason until `open` is called with the same reason."""
        if not self._reasons and not self._transport.is_closing():
            self._transport.pause_reading()
        self._reasons.add(why)

    def open(self, *reasons: PauseReason) -> None:
        """Drop these reasons; read again if none is left."""
        if self._reasons:
            self._reasons.difference_update(reasons)
            if not self._reasons and not self._transport.is_closing():
                self._transport.resume_reading()


class RequestSource(Protocol):
    """The sender of a request to the daemon."""

    def answer_arrived(self, messages: deque[Incoming]) -> None:
        """Take in more of the answer."""

    def daemon_left(self, messages: deque[Incoming], failure: Exception | None) -> None:
        """Note that the daemon closed or reset the connection while an answer was awaited."""

    def daemon_is_full(self, *, full: bool) -> None:
        """Note whether the daemon lags behind in reading what was sent to it."""

    def crashed(self, bug: Exception) -> None:
        """Report an error that was raised by `answer_arrived`."""


class DaemonConnection(asyncio.Protocol):
    """Passes the daemon's bytes to the request's sender. Bytes that come without a request end the connection."""

    read_control: ReadControl

    def __init__(self, upstream: Upstream, limits: ConnectionLimits) -> None:
        self.upstream = upstream
        self._limits = limits
        self.lost = False
        self._asker: RequestSource | None = None
        self._reader = AnswerReader()
        self._transport: asyncio.Transport | None = None

    def ask(self, asker: RequestSource, request: bytes, *, head_only: bool, at_once: bool) -> None:
        """Send the beginning of a request, or all of it. `asker` gets the answer, and notice of the end.

        A whole request may wait for what else this loop turn brings.
        """
        self._asker = asker
        self._reader.head_only = head_only
        if at_once:
            self.write(request)
        else:
            asyncio.get_running_loop().call_soon(self.write, request)

    def write(self, data: bytes) -> None:
        """Send more of the request."""
        if self._transport is not None and not self.lost:
            self._transport.write(data)

    def free(self, *, reusable: bool) -> None:
        """Note that the answer is complete: the connection waits for the next request, or is dropped."""
        self._asker = None
        if not reusable or self._reader.broken or self._reader.messages:
            self.drop()

    def drop(self) -> None:
        """Close it at once: no answer is awaited any more."""
        self._asker = None
        self._lose()
        if self._transport is not None:
            self._transport.abort()

    def _lose(self) -> None:
        if not self.lost:
            self.lost = True
            self._limits.give_back()

    # ---- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note that the daemon accepted the connection."""
        self._transport = cast("asyncio.Transport", transport)
        self.read_control = ReadControl(self._transport)

    def data_received(self, data: bytes) -> None:
        """Take in bytes from the daemon."""
        asker = self._asker
        if asker is None:
            self.drop()
            return
        try:
            self._reader.feed(data)
            asker.answer_arrived(self._reader.messages)
        except Exception as bug:  # noqa: BLE001 - a bug costs this exchange, and no other
            asker.crashed(bug)

    def connection_lost(self, failure: Exception | None) -> None:
        """Note that the daemon closed or reset the connection."""
        self._lose()
        asker, self._asker = self._asker, None
        self._reader.close()
        if asker is None:
            return
        try:
            asker.daemon_left(self._reader.messages, failure)
        except Exception as bug:  # noqa: BLE001 - as above
            asker.crashed(bug)

    def pause_writing(self) -> None:
        """Note that the daemon does not read what is sent."""
        if self._asker is not None:
            self._asker.daemon_is_full(full=True)

    def resume_writing(self) -> None:
        """Note that the daemon reads again."""
        if self._asker is not None:
            self._asker.daemon_is_full(full=False)
