"""The daemon of a run: the embedded one, one that runs already, or one that a command starts.

A run writes sessions, memories, transcripts, summaries and a secret. It writes into the workspace of a daemon that is
not its own only if the user allows it.
"""

from __future__ import annotations

import http.client
import os
import shlex
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signet_conformance.children.environment import TAG, clean_environment, end_tagged, free_port, new_tag, tagged_ids
from signet_conformance.children.processes import LineProcess
from signet_conformance.errors import NothingTestedError, UsageError, printable
from signet_conformance.files.json_values import member_of, only_text, parse_value
from signet_conformance.outcome.time_spent import TimePart
from signet_conformance.running.stopwatch import Stopwatch

EMBEDDED = "embedded"
READY_TIMEOUT_S = 60.0
_LEAVES_WITHIN_S = 5.0
"""A command that still runs after this time stays in the foreground, even if its daemon left its session."""


def is_embedded(choice: str) -> bool:
    """Return True for the embedded daemon: `embedded`, or `embedded:0.205` for one of its versions."""
    return choice.partition(":")[0] == EMBEDDED


def is_address(choice: str) -> bool:
    """Return True for the address of a daemon that runs already."""
    return choice.startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class DaemonFacts:
    """The answer of a daemon to GET /health: version and folder of its workspace, None for a member that is missing."""

    url: str
    version: str | None
    workspace: str | None

    def words(self) -> str:
        """Return one line: `daemon http://127.0.0.1:3850: version 0.145.7, workspace /home/robin/.agents`."""
        version = "unknown version" if self.version is None else f"version {printable(self.version, 40)}"
        return f"daemon {printable(self.url, 200)}: {version}, {self.place}"

    @property
    def place(self) -> str:
        """Its workspace in words."""
        if self.workspace is None:
            return "a workspace that it does not name"
        return f"workspace {printable(self.workspace, 400)}"


def demand_consent(choice: str, tell: Callable[[str], None], *, allowed: bool, option: str) -> None:
    """Show the workspace of a daemon at an address; for another choice do nothing.

    Raises UsageError that names `option` unless writing is `allowed`, NothingTestedError if no daemon answers.
    """
    if not is_address(choice):
        return
    url = choice.rstrip("/")
    _wait_healthy(url, 5.0, choice)
    facts = _ask_facts(url)
    if not allowed:
        raise UsageError(
            f"the run would write into it: sessions, memories, transcripts, summaries and a secret. {facts.words()}",
            where=f"--daemon {printable(choice)}",
            remedy=f"leave it out to use a daemon of the run's own, or add {option} if that may stay there",
        )
    tell(f"writing into {facts.words()}")


def _ask_facts(url: str) -> DaemonFacts:
    health: Any = None
    # HTTPException: the body contradicts its header.
    with (
        suppress(OSError, ValueError, http.client.HTTPException),
        ask_directly(f"{url}/health", timeout_s=5) as answer,
    ):
        health = parse_value(answer.read(1 << 20))
    version, *folders = (only_text(member_of(health, name)) for name in ("version", "agentsDir", "workspace"))
    return DaemonFacts(url, version, next(filter(None, folders), None))


class DaemonUnderTest:
    """A daemon of a run. `choice` is `embedded`, `embedded:VERSION`, a URL, or a command that starts one."""

    def __init__(self, choice: str, folder: Path, stopwatch: Stopwatch | None = None) -> None:
        self._stopwatch = stopwatch or Stopwatch()
        self._choice = choice
        self._folder = folder
        self._tag = new_tag()
        self._process: LineProcess | None = None
        self.url = ""

    def start(self, port: int = 0, *, claims_expire: bool = False) -> None:
        """Launch it, or check that it answers; sets `url`. `claims_expire` is for the embedded daemon alone."""
        if not self.can_restart:
            self.url = self._choice.rstrip("/")
            with self._stopwatch.on(TimePart.HEALTH):
                _wait_healthy(self.url, 5.0, self._choice)
            return
        if is_embedded(self._choice):
            version = self._choice.partition(":")[2]
            command = [
                sys.executable, "-P", "-m", "signet_conformance.daemon",
                "--port", str(port), "--workspace", str(self._folder), "--until-stdin-closes",
                *(["--daemon-version", version] if version else []), *(["--claims-expire"] if claims_expire else []),
            ]  # fmt: skip
            self._process = LineProcess("the embedded daemon", command, env=clean_environment(self._folder))
            self.url = str(self._process.receive(READY_TIMEOUT_S)["url"])
            return
        port = port or free_port()
        command = shlex.split(self._choice)
        if not command:
            raise UsageError("is empty", where="--daemon", remedy="embedded, a URL, or a command that starts a daemon")
        own = str(self._folder)
        env = clean_environment(
            self._folder,
            SIGNET_PORT=str(port),
            SIGNET_HOST="127.0.0.1",
            SIGNET_PATH=own,
            SIGNET_WORKSPACE=own,
            **{TAG: self._tag},
        )
        # Imported here: only a started daemon needs it.
        from signet_conformance.drivers.process import redact

        self._process = LineProcess(
            "the daemon", command, env=env, error=NothingTestedError, redacted=redact, drops_output=True
        )
        self.url = f"http://127.0.0.1:{port}"
        try:
            with self._stopwatch.on(TimePart.HEALTH):
                _wait_healthy(self.url, READY_TIMEOUT_S, self._choice, self._process, self._tag)
            self._demand_foreground()
            self._demand_own_workspace()
        except BaseException:
            self.close()
            raise

    def _demand_foreground(self) -> None:
        """Raise UsageError if the command ends and its daemon keeps running in the background."""
        assert self._process is not None  # noqa: S101 - it has just been started
        deadline = time.monotonic() + _LEAVES_WITHIN_S
        while any(_session(pid) != self._process.pid for pid in tagged_ids(self._tag)):
            if self._process.returncode is not None:
                raise _background(self._choice)
            if time.monotonic() > deadline:
                return
            time.sleep(0.05)

    def _demand_own_workspace(self) -> None:
        """Raise UsageError if the command ignores the variables that name its workspace."""
        facts = _ask_facts(self.url)
        if facts.workspace is None or _is_within(facts.workspace, self._folder):
            return
        raise UsageError(
            f"the daemon that this command starts does not use the run's folder: {facts.place}",
            where=f"--daemon {printable(self._choice)}",
            remedy="make it take its workspace from SIGNET_PATH, or start it yourself and give its URL",
        )

    @property
    def can_restart(self) -> bool:
        """Whether the kit starts it, and so may end it: every daemon that is not given by address."""
        return not is_address(self._choice)

    def restart(self, *, claims_expire: bool = False) -> None:
        """End it and start it again on the same port, with the same workspace."""
        port = int(self.url.rsplit(":", 1)[1])
        self.close()
        self.start(port, claims_expire=claims_expire)

    def close(self) -> None:
        """End what was started."""
        if self._process is not None:
            self._process.close()
            self._process = None
            # Ends processes that left the group, such as a daemon in the background.
            if not is_embedded(self._choice):
                end_tagged(self._tag)


def _background(choice: str) -> UsageError:
    return UsageError(
        "the command put the daemon into the background and ended, so the kit can neither watch nor end it",
        where=f"--daemon {printable(choice)}",
        remedy="name a command that stays in the foreground until it is ended; the kit ended the daemon",
    )


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _is_within(workspace: str, folder: Path) -> bool:
    try:
        return Path(workspace).resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError):
        return False


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Makes a redirect the answer: an error."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Return None: no redirect is followed."""


class _PromptConnection(http.client.HTTPConnection):
    """A connection whose answer begins within its timeout: that of a socket begins anew with every 100 Continue."""

    def getresponse(self) -> http.client.HTTPResponse:
        """Wait for the head of the answer. Raises TimeoutError."""
        timeout_s = self.timeout or READY_TIMEOUT_S
        deadline = time.monotonic() + timeout_s
        timer = threading.Timer(timeout_s, self._hang_up, (self.sock,))
        timer.start()
        try:
            return super().getresponse()
        except (OSError, http.client.HTTPException):
            if time.monotonic() >= deadline:
                raise TimeoutError("no answer began in time") from None
            raise
        finally:
            timer.cancel()

    @staticmethod
    def _hang_up(sock: socket.socket) -> None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


class _PromptHandler(urllib.request.HTTPHandler):
    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_PromptConnection, request)


_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect(), _PromptHandler())


def ask_directly(request: str | urllib.request.Request, timeout_s: float) -> http.client.HTTPResponse:
    """Ask a daemon at its own http address. Raises OSError, or ValueError if the address is not valid.

    No proxy is used and no redirect followed: the request may hold a secret.
    """
    try:
        answer: http.client.HTTPResponse = _DIRECT.open(request, timeout=timeout_s)
    except http.client.HTTPException as failure:
        raise OSError(f"the answer is not HTTP: {type(failure).__name__}") from None
    return answer


def _healthy(url: str) -> bool:
    try:
        with ask_directly(f"{url}/health", timeout_s=2) as answer:
            return int(answer.status) == 200
    except (OSError, ValueError):
        return False


def _wait_healthy(url: str, timeout_s: float, choice: str, process: LineProcess | None = None, tag: str = "") -> None:
    ends = time.monotonic() + timeout_s
    deadline = None if process is None else process.deadline(timeout_s)
    while not _healthy(url):
        ended = process is not None and process.returncode is not None
        if ended and tag and tagged_ids(tag):
            raise _background(choice)
        if ended or (time.monotonic() > ends if deadline is None else not deadline.left_s()):
            raise NothingTestedError(
                "the daemon ended before it answered" if ended else f"no daemon answers GET {url}/health",
                where=f"--daemon {printable(choice)}",
                remedy=f"{_remedy(process, ended=ended)}, or use --daemon embedded{_last_words(process)}",
            )
        time.sleep(0.05)


def _remedy(process: LineProcess | None, *, ended: bool) -> str:
    if process is None:
        return "start it"
    return "run the command by hand" if ended else "let the command listen at the port in SIGNET_PORT"


def _last_words(process: LineProcess | None) -> str:
    lines = () if process is None else process.tail()
    return "; its standard error ends with:" + "".join(f"\n    {line}" for line in lines) if lines else ""
