"""A client's connection: its requests are forwarded one at a time, in order.

A client that closes only its sending side after its requests still gets its answers, if it runs on this machine and
the system is Linux; otherwise it counts as gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import sys
import time
from collections.abc import Coroutine
from typing import Any, cast

from signet_conformance.errors import KitError
from signet_conformance.trace.model import NOT_CARRIED
from signet_recording_proxy.engine.answer_forwarder import ClientPresence
from signet_recording_proxy.engine.connection_limits import ConnectionLimits
from signet_recording_proxy.engine.daemon_connection import DaemonConnection, PauseReason, ReadControl
from signet_recording_proxy.engine.messages import RequestReader
from signet_recording_proxy.engine.turn import RequestTurn
from signet_recording_proxy.faults import Fault
from signet_recording_proxy.listener import Listener
from signet_recording_proxy.upstream import Upstream

_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _REQUEST = 4, 20, 1
_HEADER = struct.Struct("=IHHII")
_ANY_STATE, _NO_COOKIE = 0xFFFFFFFF, 0xFFFFFFFF
_INODE_AT = _HEADER.size + 4 + 48 + 16
"""The inode follows four bytes, the addresses, and four counters (`struct inet_diag_msg` of Linux)."""
_KERNEL_TIMEOUT_S = 0.05


def peer_is_open(connection: socket.socket) -> bool:
    """Whether a program of this machine still has the other end of a connection open.

    False also if that is unknown: on systems other than Linux, and for clients on other machines.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        query = _socket_query(connection)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
            kernel.settimeout(_KERNEL_TIMEOUT_S)
            kernel.send(query)
            answer = kernel.recv(4096)
    except OSError:
        return False
    kind = _HEADER.unpack_from(answer)[1] if len(answer) >= _INODE_AT + 4 else None
    # A socket that no program has open has no inode.
    return kind == _SOCK_DIAG_BY_FAMILY and bool(struct.unpack_from("=I", answer, _INODE_AT)[0])


def _socket_query(connection: socket.socket) -> bytes:
    """The netlink request for the socket at the other end, whose address is our peer's."""
    family = connection.family
    theirs, ours = connection.getpeername(), connection.getsockname()
    addresses = b"".join(socket.inet_pton(family, host).ljust(16, b"\0") for host in (theirs[0], ours[0]))
    ports = struct.pack("!HH", theirs[1], ours[1])
    identity = ports + addresses + struct.pack("=III", 0, _NO_COOKIE, _NO_COOKIE)
    request = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, _ANY_STATE) + identity
    return _HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _REQUEST, 1, 0) + request


_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_LINGER_S = 2.0
"""How long a client may keep sending after the end; closing the socket at once would reset the answer."""
_SILENCE_S = 600.0
_FIRST_CHECK_S, _LATER_CHECKS_S = 0.01, 0.1
"""When to check whether a client that sends nothing more is there: at once it may be closing."""


class ClientConnection(asyncio.Protocol):
    """Carries one client's requests to the daemon and records them."""

    read_control: ReadControl

    def __init__(self, listener: Listener, limits: ConnectionLimits, number: int) -> None:
        self.listener = listener
        self.limits = limits
        self.recorder = listener.recorder
        self.number = number
        self.presence = ClientPresence(listener.recorder)
        self._requests = RequestReader(listener.is_ours)
        self._turn: RequestTurn | None = None
        self._advancing = False
        self._over_limit = False
        self._is_closing = False
        self._ignores_input = False
        self._sends_no_more_since: float | None = None
        self._daemon: DaemonConnection | None = None
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._active_at = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # ---- what turns ask for

    def write(self, data: bytes) -> None:
        """Send bytes to the client."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def daemon_at_hand(self, upstream: Upstream) -> DaemonConnection | None:
        """The open connection to this daemon, if there is one."""
        daemon = self._daemon
        if daemon is not None and (daemon.lost or daemon.upstream is not upstream):
            self.take_daemon(None)
        return self._daemon

    def take_daemon(self, daemon: DaemonConnection | None) -> None:
        """Use this connection from now on, and drop the one before."""
        if self._daemon is not None and self._daemon is not daemon:
            self._daemon.drop()
        self._daemon = daemon

    def drop_idle_daemon(self) -> bool:
        """Close the connection to the daemon if no request uses it; return whether there was one."""
        if self._turn is not None or self._daemon is None or self._daemon.lost:
            return False
        self.take_daemon(None)
        return True

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the background. A bug in it ends this connection, with a message, but no other."""
        task = self._loop.create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as bug:  # noqa: BLE001 - a bug costs this connection, and no other
            self.crashed(bug)

    def end_turn(self, *, keeps_open: bool) -> None:
        """End the turn: the next request begins, or the connection closes."""
        self._turn = None
        if self._requests.messages:
            self._requests.messages.popleft()
        self.read_control.open(PauseReason.OTHER_SIDE, PauseReason.NO_DAEMON)
        if not keeps_open or (self._sends_no_more_since is not None and not self._requests.messages):
            self.end()
            return
        if not self._advancing:
            self._advance()

    def end(self) -> None:
        """Close the connection when everything was sent to the client."""
        self._is_closing = self._ignores_input = True
        self.presence.note_closed()
        self.take_daemon(None)
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._requests.at_rest:
            transport.close()
            return
        self.read_control.open(*PauseReason)
        with contextlib.suppress(OSError, RuntimeError):
            transport.write_eof()
        self._loop.call_later(_LINGER_S, transport.abort)

    def reset(self) -> None:
        """Reset the client's connection."""
        self._is_closing = self._ignores_input = True
        self.presence.note_closed()
        self.take_daemon(None)
        transport = self._transport
        if transport is None:
            return
        connection: socket.socket | None = transport.get_extra_info("socket")
        if connection is not None and not transport.is_closing():
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        transport.abort()

    def crashed(self, bug: Exception) -> None:
        """Report a bug, without any content of the messages, and close this connection."""
        self.listener.report(KitError(f"an exchange could not be passed on: {type(bug).__name__}"))
        if self._turn is not None:
            self._turn.give_up(NOT_CARRIED, "the recorder failed")
        self.reset()

    # ---- what the listener asks for

    def cut_off(self, fault: Fault) -> None:
        """Reset the client because `fault` takes the whole daemon away."""
        if self._turn is not None:
            self._turn.cut_off(fault)
        self.reset()

    # ---- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note that the client has connected."""
        self._transport = cast("asyncio.Transport", transport)
        self.read_control = ReadControl(self._transport)
        self.listener.add(self)
        self._over_limit = not self.limits.enter(self)
        self._timer = self._loop.call_later(_SILENCE_S, self._check_silence)

    def data_received(self, data: bytes) -> None:
        """Take in bytes from the client."""
        if self._ignores_input:
            return
        self._active_at = self._loop.time()
        try:
            self._requests.feed(data)
            self._advance()
        except Exception as bug:  # noqa: BLE001 - a bug costs this connection, and no other
            self.crashed(bug)

    def eof_received(self) -> bool:
        """Note that the client sends nothing more. Return whether it may still receive."""
        if self._sends_no_more_since is None:
            if not self._awaits_answer():
                self._note_left()
                return False
            self._sends_no_more_since = time.monotonic()
            self._loop.call_later(_FIRST_CHECK_S, self._check_presence)
        return True

    def connection_lost(self, _failure: Exception | None) -> None:
        """Note that the client is gone."""
        self._note_left()
        self._requests.close()
        self.listener.remove(self)
        self.limits.leave(self)
        if self._timer is not None:
            self._timer.cancel()

    def pause_writing(self) -> None:
        """Note that the client does not read what is sent."""
        if self._daemon is not None and not self._daemon.lost:
            self._daemon.read_control.shut(PauseReason.OTHER_SIDE)

    def resume_writing(self) -> None:
        """Note that the client reads again."""
        if self._daemon is not None and not self._daemon.lost:
            self._daemon.read_control.open(PauseReason.OTHER_SIDE)

    # ---- inside

    def _advance(self) -> None:
        """Process what has come of the current request, and of those after it when it is answered."""
        messages = self._requests.messages
        self._advancing = True
        while messages and not self._ignores_input:
            turn = self._turn
            if turn is None:
                request = messages[0]
                if not request.has_head and request.complaint is None:
                    break
                if self._over_limit and self.limits.full:
                    request.complaint = request.complaint or self.limits.complaint()
                turn = self._turn = RequestTurn(self, request)
                turn.begin()
            if self._turn is turn:
                turn.request_arrived()
            if self._turn is turn:
                break
        self._advancing = False
        if len(messages) > 1:
            self.read_control.shut(PauseReason.EARLIER_REQUEST)
        else:
            self.read_control.open(PauseReason.EARLIER_REQUEST)

    def _awaits_answer(self) -> bool:
        """Whether a client that sends nothing more waits for an answer: its requests are whole, and it is there."""
        messages = self._requests.messages
        whole = all(message.whole and message.complaint is None for message in messages)
        return bool(messages) and whole and not self._ignores_input and self._is_present()

    def _is_present(self) -> bool:
        connection = None if self._transport is None else self._transport.get_extra_info("socket")
        return connection is not None and peer_is_open(connection)

    def _check_presence(self) -> None:
        if self._ignores_input or self._transport is None or self._transport.is_closing():
            return
        if self._is_present():
            self._sends_no_more_since = time.monotonic()
            self._loop.call_later(_LATER_CHECKS_S, self._check_presence)
        else:
            self._note_left(self._sends_no_more_since)
            self._transport.close()

    def _note_left(self, at: float | None = None) -> None:
        if self._is_closing or self.presence.left_at is not None:
            return
        self.presence.note_left(at)
        self._ignores_input = True
        if self._turn is not None:
            self._turn.client_left()
            self._turn = None
        self.take_daemon(None)

    def _check_silence(self) -> None:
        silent_s = self._loop.time() - self._active_at
        if silent_s < _SILENCE_S:
            self._timer = self._loop.call_later(_SILENCE_S - silent_s, self._check_silence)
            return
        if self._turn is not None:
            self._turn.give_up("upstream_timeout", "nothing passed for ten minutes")
        self.reset()

    def note_activity(self) -> None:
        """Note that data passed on this connection, which then is not silent."""
        self._active_at = self._loop.time()
