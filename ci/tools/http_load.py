"""A load client and an upstream that take as little of a processor as Python can: bare sockets, one epoll each.

A message is read as far as its end is told: the head of a connection's first message says whether chunks follow, and
every message ends with the bytes that end a known body, or with the last chunk. An answer's whole body is looked at
once a connection.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

_LAST_CHUNK = b"\r\n0\r\n\r\n"
_LARGEST_READ = 65536
_SILENCE_S = 60.0
_TAIL = 48


class LoadError(Exception):
    """The other side closed a connection, said nothing for long, or answered something else."""


@dataclass(slots=True)
class _Side:
    """One end of a connection that sends the same message again and again, and reads messages with the same body."""

    connection: socket.socket
    body: bytes
    tail: bytes = b""
    got: list[bytes] = field(default_factory=list)
    left: int = 0
    sent_at: float = 0.0

    def came(self) -> bool:
        """Read what has come; whether a message is whole now. A connection that was closed raises ConnectionError."""
        data = self.connection.recv(_LARGEST_READ)
        if not data:
            raise ConnectionError
        if not self.tail:
            self._look_at_head(data)
        elif not self.got and len(data) >= _TAIL:
            return data.endswith(self.tail) or self._more(data)
        return self._more(data)

    def _look_at_head(self, data: bytes) -> None:
        head, mark, _ = b"".join([*self.got, data]).partition(b"\r\n\r\n")
        if mark:
            self.tail = _LAST_CHUNK if b"chunked" in head.lower() else self.body[-_TAIL:]

    def _more(self, data: bytes) -> bool:
        self.got.append(data)
        whole = b"".join(self.got)
        if not self.tail or not whole.endswith(self.tail):
            return False
        self.got.clear()
        return True


def serve(answer: bytes, request_body: bytes, told: Callable[[int], None]) -> None:
    """Answer every request with `answer`, for ever; `told` is given the port."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
    listening.setblocking(False)
    told(listening.getsockname()[1])
    poll, sides = select.epoll(), dict[int, _Side]()
    poll.register(listening, select.EPOLLIN)
    while True:
        for number, _ in poll.poll():
            if number == listening.fileno():
                connection, _ = listening.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sides[connection.fileno()] = _Side(connection, request_body)
                poll.register(connection, select.EPOLLIN)
                continue
            side = sides[number]
            try:
                if side.came():
                    side.connection.sendall(answer)
            except ConnectionError:
                poll.unregister(number)
                del sides[number]
                side.connection.close()


def load(port: int, message: bytes, answer_body: bytes, connections: int, requests: int) -> tuple[float, list[float]]:
    """Keep `connections` busy until each has made its share of `requests`, the next as soon as the last is answered.

    Returns requests a second and the seconds that each answer took. Raises LoadError.
    """
    sides = dict[int, _Side]()
    took_s: list[float] = []
    now = time.perf_counter
    try:
        with select.epoll() as poll:
            for _ in range(connections):
                connection = socket.create_connection(("127.0.0.1", port), timeout=_SILENCE_S)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sides[connection.fileno()] = _Side(connection, answer_body, left=requests // connections)
                poll.register(connection, select.EPOLLIN)
            began = now()
            for side in sides.values():
                side.sent_at = now()
                side.connection.sendall(message)
            busy = len(sides)
            while busy:
                ready = poll.poll(_SILENCE_S)
                if not ready:
                    raise LoadError("nothing was answered for a minute")
                for number, _ in ready:
                    side = sides[number]
                    if side.came():
                        took_s.append(now() - side.sent_at)
                        side.left -= 1
                        if side.left > 0:
                            side.sent_at = now()
                            side.connection.sendall(message)
                        else:
                            busy -= 1
            return len(took_s) / (now() - began), took_s
    except ConnectionError:
        raise LoadError("a connection was closed") from None
    finally:
        for side in sides.values():
            side.connection.close()
