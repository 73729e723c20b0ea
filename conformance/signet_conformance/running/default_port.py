"""Occupies the default port of Signet's daemon during a run, and notes stray requests to it.

A connector that ignores its given address calls the program at the default port: in the worst case the user's own
daemon. Held by the kit, the port answers 503. A request belongs to a run only if the process that sent it was started
for the run: it is then written into a file beside that process's HOME, which the recorded daemon reads. So the run
that holds the port notes the requests for all runs of this machine. Requests of other processes are answered and
ignored.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import stat
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from signet_conformance.errors import UsageError, printable
from signet_conformance.running.daemon import ask_directly
from signet_conformance.trace.marks import StrayMark

PORT = 3850
_MARK = "x-signet-conformance-holds"
"""The header of the kit's answers: the process that holds the port."""
_PASSES_ON = "x-signet-conformance-passes-on"
"""The header of a holder that passes requests on to other runs: the name of the file that it writes."""
_FILE = "default-port.jsonl"
_KIT = "another run of the kit"
_HOSTS = ("127.0.0.1", "::1")
_TABLE = Path("/proc/net/tcp")
_TRY_AGAIN_S = 0.2
_ANSWER_S = 2.0
_MOST_WAITING = 20
"""The most requests of one connector that its recorded daemon takes at once."""


class StrayRequests:
    """The requests of the connectors of one HOME to the default port, read from the file of the port's holder."""

    def __init__(self, home: Path) -> None:
        self._path = _file_beside(home)
        self._path.touch(mode=0o600)
        self._read = 0

    def take(self) -> Sequence[StrayMark]:
        """Return the newest requests since the last call, 20 at most."""
        if self._path.stat().st_size == self._read:
            return ()
        with self._path.open("rb") as file:
            file.seek(self._read)
            lines = file.read().splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n")]
        self._read += sum(map(len, whole))
        return [StrayMark(**json.loads(line)) for line in whole[-_MOST_WAITING:]]


def _file_beside(home: Path) -> Path:
    return home.parent / _FILE


def _note(home: str, mark: StrayMark) -> None:
    # Open an existing file only: if it is missing, no such run exists.
    line = json.dumps(mark.data).encode() + b"\n"
    with contextlib.suppress(OSError):
        file = os.open(_file_beside(Path(home)), os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
        try:
            about = os.fstat(file)
            if stat.S_ISREG(about.st_mode) and about.st_uid == os.getuid():
                os.write(file, line)
        finally:
            os.close(file)


class DefaultPort:
    """Holds the port on the loopback addresses that are free. A context manager.

    A port held by another run that passes requests on is taken as soon as that run ends.
    """

    def __init__(self, port: int = PORT) -> None:
        self._port = port
        self._servers: list[ThreadingHTTPServer] = []
        self._ended = threading.Event()
        self._waiting: list[threading.Thread] = []
        self.unheard: str | None = None
        """Why some requests to the port are not noted; None if all are."""

    def __enter__(self) -> Self:
        for host in _HOSTS:
            try:
                self._serve(host)
            except OSError as failure:
                # On a machine without that address no connector can call it.
                if failure.errno != errno.EADDRINUSE:
                    continue
                holder = find_holder(self._port, host)
                if holder is not None and holder.passes_on:
                    waiting = threading.Thread(target=self._serve_later, args=(host,), daemon=True)
                    waiting.start()
                    self._waiting.append(waiting)
                elif self.unheard is None:
                    self.unheard = holder.words if holder else f"another program holds port {self._port}"
        if self.unheard is None and not _TABLE.exists():
            self.unheard = "this system does not show which process a connection belongs to"
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for waiting in self._waiting:
            waiting.join()
        for server in self._servers:
            server.shutdown()
            server.server_close()

    @property
    def is_held(self) -> bool:
        """Whether this run holds the port."""
        return bool(self._servers)

    def _serve(self, host: str) -> None:
        server = _PortServer(host, self._port)
        threading.Thread(target=server.serve_forever, args=(0.1,), name="signet default port", daemon=True).start()
        self._servers.append(server)

    def _serve_later(self, host: str) -> None:
        while not self._ended.wait(_TRY_AGAIN_S):
            with contextlib.suppress(OSError):
                self._serve(host)
                return


@dataclass(frozen=True, slots=True)
class PortHolder:
    """The program at the port, described in `words`: another run of the kit, a daemon, or one that does not answer."""

    words: str
    is_daemon: bool = False
    passes_on: bool = False
    """Whether it passes requests on to the runs of their connectors."""


def demand_free(*, allowed: bool, option: str, port: int = PORT) -> str | None:
    """Return a note for the user if a daemon, a silent program or an older kit holds the port; None otherwise.

    Raises UsageError if a daemon listens there, unless `option` allows it.
    """
    held = find_holder(port)
    if held is None or held.passes_on:
        return None
    if held.is_daemon and not allowed:
        raise UsageError(
            f"a daemon listens at 127.0.0.1:{port}, Signet's default port: a connector that ignores its configured "
            "address would write into that workspace",
            where="the default port",
            remedy=f"stop that daemon while the kit drives, or allow it: {option}",
        )
    return f"{held.words}: what this run's connector sends there is not seen, and SIG-LOAD-003 is not decided"


def find_holder(port: int = PORT, host: str = "127.0.0.1") -> PortHolder | None:
    """Find a run of the kit, a daemon or a silent program at the port; None for any other, and for a free port."""
    place = _place(host, port)
    try:
        with ask_directly(f"http://{place}/health", timeout_s=_ANSWER_S) as answer:
            return PortHolder(f"a daemon listens at {place}", is_daemon=True) if int(answer.status) == 200 else None
    except OSError as failure:
        if isinstance(getattr(failure, "reason", failure), TimeoutError):
            # On a busy machine it may be the kit or a daemon, so neither is named.
            return PortHolder(f"a program that gave no answer within {_ANSWER_S:g} s holds {place}")
        headers = getattr(failure, "headers", None) or {}
        process = headers.get(_MARK)
        if process is None:
            return None
        words = f"{_KIT} (process {printable(process, 20)}) holds {place}"
        return PortHolder(words, passes_on=headers.get(_PASSES_ON) == _FILE)


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class _PortServer(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, host: str, port: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _PortHandler)

    def handle_error(self, *_: Any) -> None:
        """Ignore a connection that its other end breaks off."""


class _PortHandler(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        host, port = self.connection.getsockname()[:2]
        home = _home_of_peer(self.client_address[1], port)
        if home is not None:
            path, token = self.path.partition("?")[0][:500], "authorization" in self.headers
            _note(home, StrayMark(method=self.command, path=path, address=_place(host, port), token=token))
        body = b'{"error": "no daemon: the address of the daemon under test is in SIGNET_DAEMON_URL"}'
        self.send_response(503)
        self.send_header(_MARK, str(os.getpid()))
        self.send_header(_PASSES_ON, _FILE)
        self.send_header("retry-after", "60")
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _answer  # noqa: N815 - http.server's

    def log_message(self, format: str, *_: Any) -> None:  # noqa: A002 - http.server's name
        """Print nothing."""


def _home_of_peer(client_port: int, port: int) -> str | None:
    """Return the HOME of the process at the other end of a connection, or of its first parent from a run.

    None if the system does not tell, as on systems other than Linux: then no connector is blamed.
    """
    import psutil

    with contextlib.suppress(psutil.Error, OSError):
        sockets = (each for each in psutil.net_connections("tcp") if each.raddr)
        pids = (each.pid for each in sockets if (each.laddr.port, each.raddr.port) == (client_port, port))
        if (pid := next(pids, None)) is None:
            return None
        process = psutil.Process(pid)
        for each in (process, *process.parents()):
            variables: dict[str, str] = {}
            with contextlib.suppress(psutil.AccessDenied):
                variables = each.environ()
            if "SIGNET_DAEMON_URL" in variables and each.pid > 1:
                return variables.get("HOME")
    return None
