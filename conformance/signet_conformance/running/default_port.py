"""The port where Signet's daemon listens unless it is told otherwise, held by the kit while it drives.

A connector that ignores the address it is given calls whatever listens there: the user's own daemon, in the worst
case. Held by the kit, the port answers 503 and keeps what arrived. A request belongs to a run only when the process
that sent it was started for it; anybody else's is answered and forgotten.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from signet_conformance.errors import UsageError, printable
from signet_conformance.running.daemon import ask_directly

PORT = 3850
_MARK = "x-signet-conformance-holds"
"""The header of an answer of the kit's: the process that holds the port."""
_KIT = "another run of the kit"
_HOSTS = (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6))
_PROC = Path("/proc")
_TABLE = _PROC / "net" / "tcp"
_DEEPEST = 32

Heard = Callable[[str, str, str, str], None]
"""Told of a request: the home folder of the process that sent it, method, path, and the address where it arrived."""


class DefaultPort:
    """Holds the port on both loopback addresses, as far as they are free. A context manager."""

    def __init__(self, heard: Heard, port: int = PORT) -> None:
        self._heard = heard
        self._port = port
        self._servers: list[ThreadingHTTPServer] = []
        self.unheard: str | None = None
        """Why not all that connectors send there is heard, once it was tried; None where it is."""

    def __enter__(self) -> Self:
        for host, family in _HOSTS:
            try:
                server = _server(host, family, self._port, self._heard)
            except OSError as failure:
                # A machine without that address has no connector that could call it there.
                if failure.errno == errno.EADDRINUSE and self.unheard is None:
                    self.unheard = holder(self._port, host) or f"another program holds port {self._port}"
            else:
                threading.Thread(
                    target=server.serve_forever, args=(0.1,), name="signet default port", daemon=True
                ).start()
                self._servers.append(server)
        if self.unheard is None and not _TABLE.exists():
            self.unheard = "this system does not tell whose a connection is"
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    @property
    def is_held(self) -> bool:
        """Whether this run holds it."""
        return bool(self._servers)


def demand_free(*, allowed: bool, option: str, port: int = PORT) -> str | None:
    """What is to be noted of the port before a run: another run holds it, or a daemon that may be called.

    Raises UsageError where a daemon listens there and `option` does not allow to drive all the same.
    """
    held = holder(port)
    if held is None:
        return None
    if held.startswith(_KIT):
        return f"{held}: what this one's connector sends there is not seen, and SIG-LOAD-003 is not decided"
    if not allowed:
        raise UsageError(
            f"a daemon listens at 127.0.0.1:{port}, Signet's default port: a connector that ignores the address it is "
            "given would write into its workspace",
            where="the default port",
            remedy=f"stop that daemon while the kit drives, or allow it: {option}",
        )
    return f"{held}: what a connector sends there instead of here is not seen, and SIG-LOAD-003 is not decided"


def holder(port: int = PORT, host: str = "127.0.0.1") -> str | None:
    """Who answers at the port, in words: another run of the kit, or a daemon; None where neither does."""
    place = _place(host, port)
    try:
        with ask_directly(f"http://{place}/health", timeout_s=2) as answer:
            return f"a daemon listens at {place}" if int(answer.status) == 200 else None
    except OSError as failure:
        headers = getattr(failure, "headers", None)
        process = None if headers is None else headers.get(_MARK)
        return None if process is None else f"{_KIT} (process {printable(process, 20)}) holds {place}"


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _server(host: str, family: socket.AddressFamily, port: int, heard: Heard) -> ThreadingHTTPServer:
    class Server(ThreadingHTTPServer):
        address_family = family
        daemon_threads = True
        allow_reuse_address = True

        def handle_error(self, *_: Any) -> None:
            """Let go of a connection that its other end breaks off: it told nothing."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            home = _home_of_peer(self.client_address[1], port)
            if home is not None:
                heard(home, self.command, self.path.partition("?")[0][:500], _place(host, port))
            body = b'{"error": "no daemon: the address of the daemon under test is in SIGNET_DAEMON_URL"}'
            self.send_response(503)
            self.send_header(_MARK, str(os.getpid()))
            self.send_header("retry-after", "60")
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _answer  # noqa: N815 - http.server's

        def log_message(self, format: str, *_: Any) -> None:  # noqa: A002 - http.server's name
            """Say nothing."""

    return Server((host, port), Handler)


def _home_of_peer(client_port: int, port: int) -> str | None:
    """The HOME of the process at the other end of a connection, or of the first above it that has one of a run.

    None where the system does not tell, as others than Linux do not: then nothing is blamed on anybody.
    """
    inode = next(iter(_inodes(client_port, port)), None)
    pid = None if inode is None else _owner(inode)
    for _ in range(_DEEPEST):
        if pid is None or pid <= 1:
            return None
        variables = _environment(pid)
        if "SIGNET_DAEMON_URL" in variables:
            return variables.get("HOME")
        pid = _parent(pid)
    return None


def _inodes(client_port: int, port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                ends = (int(fields[1].rpartition(":")[2], 16), int(fields[2].rpartition(":")[2], 16))
                if ends == (client_port, port):
                    yield fields[9]


def _owner(inode: str) -> int | None:
    wanted = f"socket:[{inode}]"
    for folder in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for descriptor in (folder / "fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(descriptor.readlink()) == wanted:
                        return int(folder.name)
    return None


def _environment(pid: int) -> dict[str, str]:
    try:
        raw = (_PROC / str(pid) / "environ").read_bytes().decode("utf-8", "replace")
    except OSError:
        return {}
    return dict(part.partition("=")[::2] for part in raw.split("\0") if "=" in part)


def _parent(pid: int) -> int | None:
    try:
        return int((_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None
