"""What a run launches beside its connectors: the daemon under test, and the recorder in front of it."""

from __future__ import annotations

import http.client
import os
import shlex
import socket
import sys
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from signet_conformance.children.processes import LineProcess
from signet_conformance.errors import KitError, NothingTestedError, UsageError, printable

READY_TIMEOUT_S = 60.0
CONTROL_TIMEOUT_S = 30.0
CANARY_VARIABLE = "SIGNET_CONFORMANCE_CANARY"

_INHERITED = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "PYTHONPATH",
    "PYTHONHASHSEED",
    "VIRTUAL_ENV",
    "COVERAGE_PROCESS_START",
)
"""What a child may see of our environment: never a credential, never the user's own Signet settings."""


def clean_environment(home: Path, **extra: str) -> dict[str, str]:
    """An environment for a child: a home of its own, no inherited credentials."""
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**kept, "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "NO_COLOR": "1", **extra}


EMBEDDED = "embedded"


def is_embedded(choice: str) -> bool:
    """Whether a daemon choice is the embedded one: `embedded`, or `embedded:0.205` for one of its versions."""
    return choice.partition(":")[0] == EMBEDDED


def _version_words(choice: str) -> list[str]:
    version = choice.partition(":")[2]
    return ["--daemon-version", version] if version else []


class DaemonUnderTest:
    """The daemon of a run: the embedded one, one that runs already, or one that a command starts."""

    def __init__(self, choice: str, folder: Path) -> None:
        self._choice = choice
        self._folder = folder
        self._process: LineProcess | None = None
        self.url = ""

    def start(self, port: int = 0) -> None:
        """Launch it, or look whether it is there; sets `url`."""
        if self._choice.startswith(("http://", "https://")):
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
        """Whether the kit started it, and so may end it."""
        return self._process is not None

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
    """The answer of a daemon at its own http address. Raises OSError, or ValueError for an address that is none.

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


class Recorder:
    """The recorder process and its control channel."""

    def __init__(self, upstream: str, folder: Path, canary: str) -> None:
        command = [
            sys.executable, "-P", "-m", "signet_recording_proxy",
            "--upstream", upstream, "--out", str(folder / "before.jsonl"), "--control", "--canary-env", CANARY_VARIABLE,
        ]  # fmt: skip
        env = clean_environment(folder, **{CANARY_VARIABLE: canary})
        self._process = LineProcess("the recorder", command, env=env)
        self.url = str(self._process.receive(READY_TIMEOUT_S)["url"])

    def ask(self, *commands: Mapping[str, Any], timeout_s: float = CONTROL_TIMEOUT_S) -> None:
        """Send commands at once and wait for all answers; raise KitError when the recorder refuses one."""
        for command in commands:
            self._process.send(command)
        refused: KitError | None = None
        for command in commands:
            answer = self._process.receive(timeout_s)
            if answer.get("ok") is not True and refused is None:
                refused = KitError(
                    f"the recorder refused {command['op']}: {printable(answer.get('error'), 300)}",
                    remedy=answer.get("remedy"),
                )
        if refused is not None:
            raise refused

    def mark(self, name: str, /, **data: Any) -> None:
        """Write a mark into the trace."""
        self.ask(mark(name, **data))

    def close(self) -> None:
        """End it."""
        self._process.close()


def mark(name: str, /, **data: Any) -> dict[str, Any]:
    """The recorder's command for a mark."""
    return {"op": "mark", "name": name, "data": data}
