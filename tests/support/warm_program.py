"""`warm_program.py PROGRAM ARGUMENT...` runs a program of the kit beside a fork server that needs to import nothing.

A run starts such a server, which takes a third of a second to import what daemons, recorders and harnesses need. Here
the first one that the program starts is a fork of the same process as the program, which has imported all that.
"""

from __future__ import annotations

import atexit
import os
import runpy
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from signet_conformance.children import forks, watchdog
from signet_conformance.children.environment import clean_environment
from signet_conformance.children.fork_server import ForkServer


class _ServerProcess:
    """The forked server; what is needed of `subprocess.Popen`, under the same names."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._parent: int | None = os.getpid()

    def kill(self) -> None:
        """Kill it."""
        os.kill(self._pid, signal.SIGKILL)

    def wait(self, _timeout: float) -> None:
        """Wait for its end: it ends soon after its control channel."""
        os.waitpid(self._pid, 0)
        self._parent = None

    def end(self) -> None:
        """End it at the end of its parent, if it is still there."""
        if self._parent == os.getpid():
            self.kill()
            os.waitpid(self._pid, 0)


def _serve_beside() -> Mapping[str, Any] | None:
    """Fork a server for this process. Return None, but in a fork of the server what it is to run."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        ours.close()
        os.setsid()
        with Path(os.devnull).open("r+b", 0) as nothing:
            for descriptor in range(3):
                os.dup2(nothing.fileno(), descriptor)
        asked = ForkServer(theirs).serve()
        return asked if asked is not None else sys.exit()
    theirs.close()
    process = _ServerProcess(pid)
    atexit.register(process.end)
    started_plainly = forks._Server

    class Server(forks._Server):
        def __init__(self) -> None:
            forks._Server = started_plainly
            self._env = watchdog.watched_environment(clean_environment(Path(tempfile.gettempdir())))
            ours.settimeout(forks._ANSWER_S)
            self._control, self._process, self._forks, self.refuses = ours, process, [], False

    forks._Server = Server
    return None


asked = _serve_beside() or {"program": sys.argv[1], "arguments": sys.argv[2:]}
sys.argv = [asked["program"], *asked["arguments"]]
if asked["program"].endswith(".py"):
    runpy.run_path(asked["program"], run_name="__main__")
else:
    runpy.run_module(asked["program"], run_name="__main__", alter_sys=True)
