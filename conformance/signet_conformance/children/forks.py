"""The client of the fork server, which forks the kit's own programs with their modules already imported.

Where forks are not known to be safe, or a fork would differ from a plain start, nothing is forked: the caller then
starts the program itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, Final

from signet_conformance.children import watchdog
from signet_conformance.children.environment import clean_environment
from signet_conformance.children.fork_server import MOST_BYTES
from signet_conformance.children.temporary import system_folder
from signet_conformance.children.watchdog_program import signal_group

Programs = Mapping[str, Sequence[str]]

PROGRAMS: Final[Programs] = MappingProxyType(json.loads(Path(__file__).with_name("forked_programs.json").read_bytes()))
"""The programs that may be forked, with the modules that each imports at some time.

The program's own module is not among them: a fork runs it as `__main__`.
"""

POSSIBLE: Final = sys.platform == "linux"
"""On other systems a fork without exec is not safe: system libraries of macOS forbid it."""
_ANSWER_S: Final = 60.0
_SERVER_MODULE: Final = "signet_conformance.children.fork_server"
_READ_AT_START: Final = ("PYTHON", "COVERAGE", "LANG", "LC_", "LD_")
"""Prefixes of variables that a process reads when it starts, and a fork never reads."""


class ForkedProcess:
    """A process that the fork server started, with the members of `subprocess.Popen` that the kit needs."""

    def __init__(self, pid: int, streams: tuple[IO[bytes], IO[bytes], IO[bytes]], end: int) -> None:
        self.pid = pid
        self.stdin, self.stdout, self.stderr = streams
        self.returncode: int | None = None
        self.cpu_s = 0.0
        self._end = end
        self._reading = threading.Lock()

    def wait(self, timeout: float | None = None) -> int:
        """The exit status. Raises subprocess.TimeoutExpired."""
        with self._reading:
            if self.returncode is not None:
                return self.returncode
            # A duplicate, since another waiting thread may close the descriptor.
            end = os.dup(self._end)
        try:
            poll = select.poll()
            poll.register(end, select.POLLIN)
            if not poll.poll(None if timeout is None else max(0.0, timeout) * 1000):
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        finally:
            os.close(end)
        with self._reading:
            if self.returncode is None:
                self.returncode = self._status()
                os.close(self._end)
        return self.returncode

    def _status(self) -> int:
        status, _, cpu_s = os.read(self._end, 64).partition(b" ")
        if status:
            self.cpu_s = float(cpu_s)
            return int(status)
        # The fork server was killed, so nobody can wait for the process any more: it ends too.
        signal_group(self.pid, signal.SIGKILL)
        return -signal.SIGKILL


class _Server:
    """The process that forks."""

    def __init__(self) -> None:
        self._env = watchdog.watched_environment(clean_environment(system_folder()))
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _SERVER_MODULE, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=self._env,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        control.settimeout(_ANSWER_S)
        self._control = control
        self._forks: list[ForkedProcess] = []
        self.refuses = False
        """Whether it refuses to fork because one of its modules started a thread."""

    def can_fork(self, env: Mapping[str, str]) -> bool:
        """Whether a process with this environment may be a fork."""
        return _read_at_start(env) == _read_at_start(self._env)

    def warm_up(self, program: str) -> None:
        """Let the server import the modules of a program before its first start."""
        with contextlib.suppress(OSError):
            self._control.send(json.dumps({"op": "import", "imports": PROGRAMS[program]}).encode())

    def start(self, request: bytes) -> ForkedProcess | None:
        """Start the requested process; return None if the server is gone, or refuses."""
        pipes = [os.pipe() for _ in range(4)]
        (their_in, our_in), (our_out, their_out), (our_err, their_err), (our_end, their_end) = pipes
        ours = (our_in, our_out, our_err, our_end)
        try:
            socket.send_fds(self._control, [request], [their_in, their_out, their_err, their_end])
            pid = json.loads(self._control.recv(MOST_BYTES))["pid"]
            self.refuses = pid is None
        except (OSError, ValueError):
            pid = None
        finally:
            for descriptor in (their_in, their_out, their_err, their_end):
                os.close(descriptor)
        if pid is None:
            for descriptor in ours:
                os.close(descriptor)
            return None
        streams = (open(our_in, "wb", 0), open(our_out, "rb", 0), open(our_err, "rb", 0))  # noqa: SIM115, PTH123 - of descriptors
        self._forks = [fork for fork in self._forks if fork.returncode is None]
        self._forks.append(ForkedProcess(pid, streams, our_end))
        return self._forks[-1]

    def close(self) -> None:
        """End it, and what still runs of its forks."""
        if all(fork.returncode is not None for fork in self._forks):
            # It may still be importing modules.
            self._process.kill()
        self._control.close()
        try:
            self._process.wait(_ANSWER_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_READ_AT_START)}


class Forks:
    """Starts processes by at most one fork server, which runs during a block of `server`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._server: _Server | None = None

    @contextlib.contextmanager
    def server(self) -> Iterator[None]:
        """Fork programs during the block; the outermost block ends the server."""
        with self._lock:
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                unused = None
                if self._holders == 0:
                    unused, self._server = self._server, None
            if unused is not None:
                unused.close()

    def warm_up(self, *programs: str) -> None:
        """Let the server import the modules of these PROGRAMS in the background; do nothing without a server."""
        with self._lock:
            server = self._running()
            if server is not None:
                for program in programs:
                    server.warm_up(program)

    def start(
        self, command: Sequence[str], env: Mapping[str, str], cwd: str | Path | None, programs: Programs
    ) -> ForkedProcess | None:
        """Start a command as a fork; return None if the caller must start it.

        Commands such as `[sys.executable, "-P", "-m", PROGRAM, ...]` are forked, with a PROGRAM among `programs`.
        """
        words = list(command)
        if words[:1] != [sys.executable] or (cwd is not None and not Path(cwd).is_dir()):
            return None
        safe_path = words[1:2] == ["-P"]
        words = words[2:] if safe_path else words[1:]
        words = words[1:] if words[:1] == ["-m"] else words
        if not words or words[0] not in programs:
            return None
        program, *arguments = words
        packet = json.dumps(
            {
                "op": "start",
                "program": program,
                "imports": programs[program],
                "arguments": arguments,
                "env": dict(env),
                "cwd": None if cwd is None else str(cwd),
                "safe_path": safe_path,
            }
        ).encode()
        with self._lock:
            server = self._running()
            if server is None or len(packet) > MOST_BYTES or not server.can_fork(env):
                return None
            process = None if server.refuses else server.start(packet)
            if process is None and not server.refuses:
                server.close()
                self._server = None
            return process

    def _running(self) -> _Server | None:
        if self._holders == 0 or not POSSIBLE or "COVERAGE_PROCESS_START" in os.environ:
            return None
        if self._server is None:
            self._server = _Server()
        return self._server


_forks = Forks()
server, warm_up = _forks.server, _forks.warm_up


def start(command: Sequence[str], env: Mapping[str, str], cwd: str | Path | None) -> ForkedProcess | None:
    """Start a command as a fork; return None if the caller must start it, such as for a program not in PROGRAMS."""
    return _forks.start(command, env, cwd, PROGRAMS)


@contextmanager
def warmed(target: str | None, daemon: str | None) -> Iterator[None]:
    """Fork the kit's own programs during the block, and begin to import the modules of those that a run needs."""
    with server():
        embedded = (daemon or "embedded").partition(":")[0] == "embedded"
        warm_up(
            *(["signet_conformance.daemon"] if embedded else []),
            "signet_recording_proxy",
            *(["signet_reference_harness"] if target == "reference" else []),
        )
        yield
