"""Starts the kit's own programs by forking: `python -P -m signet_conformance.children.fork_server FD`.

It imports the modules that a program needs once; each process of that program is then a fork, which has them already.
The server runs no thread, no event loop and no request of its own, so a fork inherits modules only.

The control channel is the sequenced-packet socket FD. Each packet is a JSON object:

    {"op": "import", "imports": [MODULE, ...]}            imports the modules; not answered
    {"op": "start", "program": NAME, "imports": [MODULE, ...], "arguments": [...], "env": {...}, "cwd": PATH or null,
     "safe_path": true}
        with the descriptors of stdin, stdout, stderr and a pipe for the end -> {"pid": 123}; null: not forked

NAME is a module, or the path of a script. Once the process was waited for and its group killed, the server writes the
exit status (negative for a signal) and the seconds of CPU time into the pipe, both in decimal. When the control
channel ends, the processes that still run get a moment to end, and are then killed.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TextIO

from signet_conformance.children.watchdog_program import signal_group

MOST_BYTES: Final = 100_000
"""The longest packet."""
DESCRIPTORS: Final = 4
_GRACE_S: Final = 3.0
_NEEDLESS: Final = "httpx._main"
"""The command line of httpx, which works without it: importing it would import a terminal library."""


class ForkServer:
    """Forks programs as `control` asks for them. In each fork, `serve` returns the request that it is to run."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._imported: set[str] = set()
        self._ends: dict[int, int] = {}
        """The pipe for the end of each process that runs, by its id."""
        self._woken, self._wakes = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wakes, False)

    def serve(self) -> Mapping[str, Any] | None:
        """Fork until the control channel ends, then return None. In a fork, return the request that it runs."""
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._wakes, warn_on_full_buffer=False)
        ready = select.poll()
        ready.register(self._control.fileno(), select.POLLIN)
        ready.register(self._woken, select.POLLIN)
        while True:
            for descriptor, _ in ready.poll():
                if descriptor == self._woken:
                    self._reap()
                    continue
                packet, descriptors, _, _ = socket.recv_fds(self._control, MOST_BYTES, DESCRIPTORS)
                if not packet:
                    self._leave()
                    return None
                request: dict[str, Any] = json.loads(packet)
                self._import(request["imports"])
                if request["op"] == "start" and self._fork(request, descriptors):
                    return request

    def _import(self, modules: list[str]) -> None:
        new = [module for module in modules if module not in self._imported]
        if not new:
            return
        self._imported.update(new)
        # Imports create little garbage: searching for it would take a tenth of their time.
        gc.disable()
        with _pretend_not_installed(_NEEDLESS):
            for module in new:
                # If an import fails here, it fails in the program too, which then reports it.
                with contextlib.suppress(Exception):
                    importlib.import_module(module)
        # Collections in the forks skip the objects that exist now, so that their memory pages stay shared.
        gc.freeze()
        gc.enable()

    def _fork(self, request: Mapping[str, Any], descriptors: list[int]) -> bool:
        """Fork; return True in the fork. Do not fork if an import has started a thread: the fork would lack it."""
        alone = len(list(Path("/proc/self/task").iterdir())) == 1
        pid = os.fork() if alone else None
        if pid == 0:
            self._become_program(request, descriptors)
            return True
        if pid is not None:
            self._ends[pid] = descriptors.pop()
        for descriptor in descriptors:
            os.close(descriptor)
        self._control.send(json.dumps({"pid": pid}).encode())
        return False

    def _become_program(self, request: Mapping[str, Any], descriptors: list[int]) -> None:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, number)
        # The old streams keep the state of the server's own descriptors, so new ones are opened.
        sys.stdout = _writer(1, sys.stdout)
        sys.stderr = _writer(2, sys.stderr, buffering=1)
        self._control.close()
        for descriptor in (*descriptors, self._woken, self._wakes, *self._ends.values()):
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(request["env"])
        _show_command([request["program"], *request["arguments"]])
        time.tzset()
        if request["cwd"] is not None:
            os.chdir(request["cwd"])
        if not request["safe_path"]:
            sys.path.insert(0, os.getcwd())  # noqa: PTH109 - as python -m does, a string

    def _reap(self) -> None:
        """Wait for the processes that have ended, and report their ends."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 4096)
        for pid in list(self._ends):
            waited, status, used = os.wait4(pid, os.WNOHANG)
            if waited == pid:
                # At once: the system may soon reuse the id of a process that was waited for.
                signal_group(pid, signal.SIGKILL)
                end = self._ends.pop(pid)
                with contextlib.suppress(BrokenPipeError):
                    os.write(end, f"{os.waitstatus_to_exitcode(status)} {used.ru_utime + used.ru_stime}".encode())
                os.close(end)

    def _leave(self) -> None:
        """Let the processes end by themselves, since their input has ended too; kill those that stay."""
        deadline = time.monotonic() + _GRACE_S
        woken = select.poll()
        woken.register(self._woken, select.POLLIN)
        self._reap()
        while self._ends and (left_s := deadline - time.monotonic()) > 0:
            woken.poll(left_s * 1000)
            self._reap()
        for pid in self._ends:
            signal_group(pid, signal.SIGKILL)


@contextlib.contextmanager
def _pretend_not_installed(module: str) -> Iterator[None]:
    """During the block, let a module look as if it were not installed, unless it is imported already."""
    stand_in = sys.modules.setdefault(module, None)  # type: ignore[arg-type]  # None makes an import fail
    try:
        yield
    finally:
        if stand_in is None:
            del sys.modules[module]


def _writer(descriptor: int, like: TextIO, buffering: int = -1) -> TextIO:
    """Open a text stream on a descriptor, with the encoding of another stream."""
    return open(descriptor, "w", buffering, encoding=like.encoding, errors=like.errors, closefd=False)


def _show_command(words: list[str]) -> None:
    """Let `ps` show these words as the command line, after Python's own words, as far as there is room."""
    before = sys.orig_argv[: sys.orig_argv.index("-m") + (not words[0].endswith(".py"))]
    shown = b"".join(os.fsencode(word) + b"\0" for word in (*before, *words))
    numbers = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = map(int, numbers[45:47])
    if 0 < start < end:
        # The command line is in this process's own memory, and Python has read it already.
        ctypes.memmove(start, shown[: end - start - 1].ljust(end - start, b"\0"), end - start)


class _QuickEnd:
    """Ends a fork after its exit handlers: unloading modules would only copy shared memory pages."""

    def __init__(self) -> None:
        self._status: int | None = None
        # The handler that is registered first is called last.
        atexit.register(self._end)

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """Note the exit status of the program that runs in the block."""
        try:
            yield
        except SystemExit as ended:
            self._status = 0 if ended.code is None else ended.code if isinstance(ended.code, int) else 1
            raise
        except Exception:
            self._status = 1
            raise
        self._status = 0

    def _end(self) -> None:
        if self._status is not None:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            os._exit(self._status & 0xFF)


def main() -> None:
    """Serve the descriptor that the command line names; run the program in each fork."""
    end = _QuickEnd()
    request = ForkServer(socket.socket(fileno=int(sys.argv[1]))).serve()
    if request is not None:
        sys.argv = [request["program"], *request["arguments"]]
        with end.around():
            if request["program"].endswith(".py"):
                runpy.run_path(request["program"], run_name="__main__")
            else:
                runpy.run_module(request["program"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
