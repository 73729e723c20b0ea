"""A real recorder process and a scriptable upstream, both on loopback."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import socket
import struct
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from signet_conformance import trace
from tests.support import warm

CANARY = 'canary "of" the tést/1'
HEALTH = b'{"status":"healthy","version":"0.145.7"}'
PATIENCE_S = 180.0


@dataclass
class Call:
    """One request as the upstream got it, and the means to answer it by hand."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: socket.socket

    def send(self, data: bytes) -> None:
        """Send raw bytes."""
        self.connection.sendall(data)

    def answer(self, body: bytes, *headers: str, status: str = "200 OK", media_type: str = "application/json") -> None:
        """Send a whole answer with its length."""
        lines = [f"HTTP/1.1 {status}", f"content-type: {media_type}", f"content-length: {len(body)}", *headers]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def reset(self) -> None:
        """Cut the connection with a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # close() would wait for the reading file that still holds the socket.
        os.close(self.connection.detach())

    def wait_until_left(self) -> None:
        """Return when the recorder has closed its side."""
        self.connection.settimeout(PATIENCE_S)
        with contextlib.suppress(OSError):
            while self.connection.recv(4096):
                pass


Handler = Callable[[Call], None]


@dataclass
class Upstream:
    """A threaded HTTP/1.1 server. A path without a handler is answered with a JSON object that names it."""

    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    handlers: dict[str, Handler] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.port: int = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Refuse from now on."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), connection:
            stream = connection.makefile("rb")
            while (call := _read_call(stream, connection)) is not None:
                self.calls.append(call)
                path = call.target.partition("?")[0]
                self.handlers.get(path, _answer_by_default)(call)


def _read_call(stream: Any, connection: socket.socket) -> Call | None:
    first = stream.readline().decode().split()
    if len(first) != 3:
        return None
    headers = {k.lower(): v for k, v in http.client.parse_headers(stream).items()}
    body = bytearray(stream.read(int(headers.get("content-length", 0))))
    if headers.get("transfer-encoding") == "chunked":
        while size := int(stream.readline(), 16):
            body += stream.read(size)
            stream.readline()
        stream.readline()
    return Call(first[0], first[1], headers, bytes(body), connection)


def _answer_by_default(call: Call) -> None:
    if call.method == "HEAD":
        call.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n")
    elif call.target == "/health":
        call.answer(HEALTH)
    else:
        call.answer(json.dumps({"path": call.target}).encode())


class RecorderProcess:
    """`python -m signet_recording_proxy`, its control channel, and the trace it writes at the moment."""

    def __init__(self, *arguments: str, out: Path, environment: dict[str, str] | None = None) -> None:
        self.out = out
        command = [sys.executable, "-m", "signet_recording_proxy", "--out", str(out), *arguments]
        self.process = warm.begin(command, {**os.environ, **(environment or {})})
        ready = self.next_line()
        if ready is None:
            self.process.wait(PATIENCE_S)
            raise RuntimeError(self.stderr())
        self.url: str = ready["url"]
        self.port = int(self.url.rpartition(":")[2])

    def next_line(self) -> dict[str, Any] | None:
        """The next line on its stdout, None at the end."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def stderr(self) -> str:
        """All it wrote on stderr; only after its end."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def raw_command(self, line: bytes) -> dict[str, Any]:
        """Send a control line, return the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()
        answer = self.next_line()
        assert answer is not None
        return answer

    def command(self, op: str, **members: Any) -> dict[str, Any]:
        """Send a control command, return the answer."""
        return self.raw_command(json.dumps({"op": op, **members}).encode())

    def let_it_work(self) -> None:
        """Return when it has dealt with all that reached its sockets before: a command takes a turn of its loop."""
        for _ in range(20):
            self.command("counts")

    def fault(self, kind: str, *, path: str | None = None, count: int | None = None, **parameters: Any) -> int:
        """Switch a fault on, return its id."""
        match = {} if path is None else {"path": path}
        answer = self.command("fault", fault={"kind": kind, **parameters}, match=match, count=count)
        assert answer["ok"], answer
        number: int = answer["id"]
        return number

    def begin(self, out: Path) -> None:
        """Write to a new trace from here on."""
        assert self.command("trace", out=str(out)) == {"ok": True}
        self.out = out

    def trace(self) -> trace.Trace:
        """The trace, once nothing is in flight."""
        answer = self.command("idle", timeout_s=PATIENCE_S)
        assert answer["ok"], answer
        return trace.read(self.out)

    def request(self, method: str, target: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        """One request on a connection of its own: status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, target, body, named)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def connect(self) -> socket.socket:
        """A raw connection to it."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def close(self) -> None:
        """End it, whatever state it is in."""
        if self.process.poll() is None:
            self.process.terminate()
        warm.end(self.process, PATIENCE_S)


def read_until_closed(connection: socket.socket) -> bytes:
    """All that comes until the peer closes or resets."""
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            data += piece
    return data


def is_reset(connection: socket.socket) -> bool:
    """Whether the peer ends the connection by a reset, without a byte before."""
    try:
        return connection.recv(1) != b""
    except ConnectionResetError:
        return True


def readable(connection: socket.socket) -> bool:
    """Whether something has come already."""
    return bool(select.select([connection], [], [], 0)[0])
