"""The daemon of a run: the embedded one, one that runs already, or one that a command starts."""

from __future__ import annotations

import http.client
import shlex
import socket
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from signet_conformance.children.environment import clean_environment
from signet_conformance.children.processes import LineProcess
from signet_conformance.errors import NothingTestedError, UsageError, printable
from signet_conformance.running.plan import EMBEDDED

READY_TIMEOUT_S = 60.0


def is_embedded(choice: str) -> bool:
    """Whether a daemon choice is the embedded one: `embedded`, or `embedded:0.205` for one of its versions."""
    return choice.partition(":")[0] == EMBEDDED


def _version_words(choice: str) -> list[str]:
    version = choice.partition(":")[2]
    return ["--daemon-version", version] if version else []


class DaemonUnderTest:
    """A daemon of a run. `choice` is `embedded`, `embedded:VERSION`, a URL, or a command that starts one."""

    def __init__(self, choice: str, folder: Path) -> None:
        self._choice = choice
        self._folder = folder
        self._process: LineProcess | None = None
        self.url = ""

    def start(self, port: int = 0) -> None:
        """Launch it, or look whether it is there; sets `url`."""
        if not self.can_restart:
            self.url = self._choice.rstrip("/")
            _wait_healthy(self.url, 5.0, self._choice)
            return
        if is_embedded(self._choice):
            command = [
                sys.executable, "-P", "-m", "signet_conformance.daemon",
                "--port", str(port), "--workspace", str(self._folder), "--until-stdin-closes",
                *_version_words(self._choice),
            ]  # fmt: skip
            self._process = LineProcess("the embedded daemon", command, env=clean_environment(self._folder))
            self.url = str(self._process.receive(READY_TIMEOUT_S)["url"])
            return
        port = port or _free_port()
        command = shlex.split(self._choice)
        if not command:
            raise UsageError("is empty", where="--daemon", remedy="embedded, a URL, or a command that starts a daemon")
        env = clean_environment(
            self._folder, SIGNET_PORT=str(port), SIGNET_HOST="127.0.0.1", SIGNET_PATH=str(self._folder)
        )
        self._process = LineProcess("the daemon", command, env=env, error=NothingTestedError)
        self.url = f"http://127.0.0.1:{port}"
        _wait_healthy(self.url, READY_TIMEOUT_S, self._choice, self._process)

    @property
    def can_restart(self) -> bool:
        """Whether the kit starts it, and so may end it: it does unless it is given an address."""
        return not self._choice.startswith(("http://", "https://"))

    def restart(self) -> None:
        """End it and start it again on the same port, with the same workspace."""
        port = int(self.url.rsplit(":", 1)[1])
        self.close()
        self.start(port)

    def close(self) -> None:
        """End what was started."""
        if self._process is not None:
            self._process.close()
            self._process = None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Makes a redirect the answer: an error."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Nowhere."""


_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())


def ask_directly(request: str | urllib.request.Request, timeout_s: float) -> http.client.HTTPResponse:
    """The answer of a daemon at its own http address. Raises OSError, or ValueError where the address is not valid.

    No proxy of the environment is asked and no redirect followed: what is sent may be a secret.
    """
    answer: http.client.HTTPResponse = _DIRECT.open(request, timeout=timeout_s)
    return answer


def _healthy(url: str) -> bool:
    try:
        with ask_directly(f"{url}/health", timeout_s=2) as answer:
            return int(answer.status) == 200
    except (OSError, ValueError):
        return False


def _wait_healthy(url: str, timeout_s: float, choice: str, process: LineProcess | None = None) -> None:
    deadline = time.monotonic() + timeout_s
    while not _healthy(url):
        ended = process is not None and process.returncode is not None
        if ended or time.monotonic() > deadline:
            tail = (
                ""
                if process is None
                else "".join(f"\n    {printable(line, 300)}" for line in list(process.stderr)[-5:])
            )
            raise NothingTestedError(
                "the daemon ended before it answered" if ended else f"no daemon answers GET {url}/health",
                where=f"--daemon {printable(choice)}",
                remedy=f"start it, or use --daemon embedded{tail}",
            )
        time.sleep(0.05)
