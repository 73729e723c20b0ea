"""A load client and an upstream that take as little processor time as Python can: bare sockets, one epoll each.

Messages are not parsed, except for the head of a connection's first one, which shows whether bodies are chunked. Every
message ends with the last bytes of a known body, or with the last chunk.
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
    """Raised if the other side closes a connection, is silent for long, or gives another answer."""


@dataclass(slots=True)
class _Side:
    """One end of a connection that sends the same message again and again, and reads messages with the same body."""

    connection: socket.socket
    body: bytes
    tail: bytes = b""
    received: list[bytes] = field(default_factory=list)
    remaining: int = 0
    sent_at: float = 0.0

    def receive(self) -> bool:
        """Read what has arrived; return whether a message is complete. Raises ConnectionError if it closed."""
        data = self.connection.recv(_LARGEST_READ)
        if not data:
            raise ConnectionError
        if not self.tail:
            self._read_head(data)
        elif not self.received and len(data) >= _TAIL:
            return data.endswith(self.tail) or self._add(data)
        return self._add(data)

    def _read_head(self, data: bytes) -> None:
        head, mark, _ = b"".join([*self.received, data]).partition(b"\r\n\r\n")
        if mark:
            self.tail = _LAST_CHUNK if b"chunked" in head.lower() else self.body[-_TAIL:]

    def _add(self, data: bytes) -> bool:
        self.received.append(data)
        whole = b"".join(self.received)
        if not self.tail or not whole.endswith(self.tail):
            return False
        self.received.clear()
        return True


def serve(answer: bytes, request_body: bytes, on_port: Callable[[int], None]) -> None:
    """Answer every request with `answer`, for ever; `on_port` is called with the port."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
    listening.setblocking(False)
    on_port(listening.getsockname()[1])
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
                if side.receive():
                    side.connection.sendall(answer)
            except ConnectionError:
                poll.unregister(number)
                del sides[number]
                side.connection.close()


def load(port: int, message: bytes, answer_body: bytes, connections: int, requests: int) -> tuple[float, list[float]]:
    """Keep `connections` connections busy until each has sent its share of `requests`, each after the previous answer.

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
                sides[connection.fileno()] = _Side(connection, answer_body, remaining=requests // connections)
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
                    if side.receive():
                        took_s.append(now() - side.sent_at)
                        side.remaining -= 1
                        if side.remaining > 0:
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
