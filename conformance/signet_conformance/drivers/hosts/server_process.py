"""A connector's server on this machine: started as a child with a free port, or reached where it runs already."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO

from signet_conformance.children.environment import free_port, listens
from signet_conformance.drivers.hosts.protocol import StepError

START_TIMEOUT_S = 30.0
_GRACE_S = 3.0
_LOOK_S = 0.05


class ServerProcess:
    """A server that messages call `name`. A `command` starts it; `{port}` in command and `url` becomes a free port.

    Raises StepError when nothing listens at `url` in time.
    """

    def __init__(self, name: str, command: Sequence[str], url: str) -> None:
        port = str(free_port())
        self._name = name
        self._printer: threading.Thread | None = None
        self.url = url.replace("{port}", port)
        self._process = (
            self._start_server([word.replace("{port}", port) for word in command], port) if command else None
        )
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def _start_server(self, command: Sequence[str], port: str) -> subprocess.Popen[bytes]:
        """Start the child in this process's group, which the kit kills as a whole, and print its output here."""
        env = {**os.environ, "PORT": port}
        try:
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env
            )
        except OSError as failure:
            raise StepError(f"{self._name} {command[0]} cannot be started: {failure.strerror}") from None
        self._printer = threading.Thread(target=_print_lines, args=(child.stdout,), daemon=True)
        self._printer.start()
        return child

    def _wait(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not listens(self.url):
            self.demand_alive()
            if self._process is None:
                raise StepError(f"nothing listens at {self.url}: start {self._name}, or fix url")
            if time.monotonic() > deadline:
                late = f"nothing listens at {self.url} {START_TIMEOUT_S:g} s after {self._name} was started"
                raise StepError(f"{late}: let it listen at the port in PORT, or fix url")
            time.sleep(_LOOK_S)

    def demand_alive(self) -> None:
        """Raise StepError if the server was started here and has ended."""
        if self._process is not None and self._process.poll() is not None:
            raise StepError(f"{self._name} ended with status {self._process.returncode}; see its output")

    def close(self) -> None:
        """End the server if it was started here: ask it, then kill it."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._printer is not None:
            # A child of the server's may outlive it and hold its output open.
            self._printer.join(_LOOK_S)


def _print_lines(output: IO[bytes]) -> None:
    with output:
        for line in output:
            sys.stderr.write(line.decode("utf-8", "replace"))
