"""Daemons as subjects: the embedded one, one that a command starts, and one that runs already."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from signet_reference_harness.bench import programs
from signet_reference_harness.bench.log import BenchFailureError
from signet_reference_harness.bench.performing import Latencies, OpenDatabase, Subject
from signet_reference_harness.bench.sessions import DaemonPlayer, TimedClient
from signet_reference_harness.config import HARNESS_NAME
from signet_reference_harness.daemon_client.reply import Reply
from signet_reference_harness.errors import ConfigError

EMBEDDED: Final = "embedded"
POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonOptions:
    """How the daemons of a run are started and used."""

    limit: int
    initial_database: programs.Database | None = None
    record: bool = False
    """Record the traffic with each daemon into the folder `traces` of the run."""
    keep: bool = False
    """Keep the folders of the databases."""
    clock: str | None = None
    """The fixed time of the embedded daemon's clock."""
    token: str | None = None
    agent: dict[str, Any] | None = None
    """The members of agent.yaml in each workspace."""


class _OwnDaemon(Subject):
    """A daemon that the run starts. Its database is at `database_path` in a workspace of its own."""

    database_path: str

    def __init__(self, options: DaemonOptions) -> None:
        self._options = options

    @abstractmethod
    async def _serve(self, stack: AsyncExitStack, place: programs.DatabaseFolder, log: Path) -> str:
        """Start the daemon of a place, and return its address."""

    @asynccontextmanager
    async def open(self, folder: Path, database: str, number: int) -> AsyncIterator[OpenDatabase]:
        """Start a daemon with a workspace of its own."""
        options, name = self._options, programs.folder_name(database, number)
        place = programs.DatabaseFolder(folder / "databases" / name)
        place.prepare(options.initial_database, self.database_path)
        if options.agent is not None:
            # JSON is YAML.
            (place.workspace / "agent.yaml").write_text(json.dumps(options.agent), "utf-8")
        log = place.folder / "programs.log"
        async with AsyncExitStack() as stack:
            url = await self._serve(stack, place, log)
            url = await _start_recorder(stack, url, options, folder, name, log)
            yield await stack.enter_async_context(_client(url, options))
        if not options.keep:
            place.remove()


class EmbeddedDaemon(_OwnDaemon):
    """The embedded daemon of the conformance kit."""

    name = EMBEDDED
    database_path = "memories.db"

    def __init__(self, version: str | None, options: DaemonOptions) -> None:
        super().__init__(options)
        self._version = version

    def describe(self) -> dict[str, Any]:
        """The daemon's kind, the release it answers as, and its fixed time."""
        return {
            "kind": self.name,
            "release": self._version,
            "clock": self._options.clock,
            "database": _sha256(self._options),
        }

    async def _serve(self, stack: AsyncExitStack, place: programs.DatabaseFolder, log: Path) -> str:
        module = [
            *("signet_conformance.cli", "daemon", "--workspace", str(place.workspace)),
            *(["--daemon-version", self._version] if self._version else []),
            *(["--clock", self._options.clock] if self._options.clock else []),
        ]
        try:
            return await programs.start_module(stack, "the embedded daemon", module, place.environment(), log)
        except BenchFailureError as failure:
            if self._version is None:
                raise
            message = f"--subject {EMBEDDED}:{self._version}: {failure.message}"
            raise ConfigError(message, remedy="name a version that it knows, or leave it out") from None


class CommandedDaemon(_OwnDaemon):
    """A daemon that a command starts, on the port and in the folders that its environment names."""

    name = "daemon"
    database_path = "memory/memories.db"

    def __init__(self, command: str, words: Sequence[str], options: DaemonOptions) -> None:
        super().__init__(options)
        self._command = command
        self._words = words

    def describe(self) -> dict[str, Any]:
        """The daemon's kind and command."""
        description = {"kind": "command", "command": self._command, "database": _sha256(self._options)}
        return description if self._options.agent is None else {**description, "agent": self._options.agent}

    async def _serve(self, stack: AsyncExitStack, place: programs.DatabaseFolder, log: Path) -> str:
        port = programs.free_port()
        url = f"http://127.0.0.1:{port}"
        environment = place.environment(SIGNET_PORT=str(port), SIGNET_HOST="127.0.0.1")
        process = await stack.enter_async_context(programs.running("the daemon", self._words, environment, log))
        health = await _wait_until_healthy(url, self._options.token, lambda: process.returncode is not None)
        if health is None:
            why = "ended before it answered" if process.returncode is not None else f"does not answer GET {url}/health"
            raise programs.failure_of(
                f"--daemon {self._command}: {why}", log, "let it stay in the foreground, on the port in SIGNET_PORT"
            )
        workspace = health.text("agentsDir") or health.text("workspace")
        if workspace and not place.holds(Path(workspace)):
            raise BenchFailureError(
                f"--daemon {self._command}: it keeps its memories in {workspace}, outside of the run's folder",
                remedy="make it take its workspace from SIGNET_PATH, or start it yourself and give its URL",
            )
        return url


class RunningDaemon(Subject):
    """A daemon at a URL, which others may use too. The run uses agents of its own there."""

    name = "url"

    def __init__(self, url: str, options: DaemonOptions) -> None:
        self._url = url.rstrip("/")
        self._options = options

    def describe(self) -> dict[str, Any]:
        """The daemon's kind and address."""
        return {"kind": "url", "url": self._url}

    @asynccontextmanager
    async def open(self, folder: Path, database: str, number: int) -> AsyncIterator[OpenDatabase]:
        """Use the running daemon, which holds every database of the suite, each with agents of its own."""
        async with AsyncExitStack() as stack:
            name = programs.folder_name(database, number)
            url = await _start_recorder(stack, self._url, self._options, folder, name, folder / "programs.log")
            yield await stack.enter_async_context(_client(url, self._options, mark=secrets.token_hex(4)))


def _sha256(options: DaemonOptions) -> str | None:
    return options.initial_database.sha256 if options.initial_database else None


@asynccontextmanager
async def _client(url: str, options: DaemonOptions, *, mark: str = "") -> AsyncIterator[OpenDatabase]:
    """The database of a daemon that answers; `mark` distinguishes this run's agents from its others."""
    latencies = Latencies()
    async with aclosing(TimedClient(url, options.token, latencies)) as client:
        health = await client.health()
        if health.failure is not None:
            raise BenchFailureError(
                f"no daemon answers at {url}: {health.detail}", remedy="start it, or leave --daemon out"
            )
        version = health.text("version") or None
        yield OpenDatabase(lambda run: DaemonPlayer(client, run, options.limit, mark), latencies, version)


async def health_of(url: str, token: str | None) -> Reply:
    """The answer of a daemon to GET /health."""
    async with aclosing(TimedClient(url, token, Latencies())) as client:
        return await client.health()


async def _wait_until_healthy(url: str, token: str | None, has_ended: Callable[[], bool]) -> Reply | None:
    """The answer to GET /health once there is one; None if the program ended, or took too long."""
    deadline = time.monotonic() + programs.READY_S
    while not has_ended() and time.monotonic() < deadline:
        reply = await health_of(url, token)
        if reply.accepted:
            return reply
        await asyncio.sleep(POLL_S)
    return None


async def _start_recorder(
    stack: AsyncExitStack, url: str, options: DaemonOptions, folder: Path, name: str, log: Path
) -> str:
    """Start a recorder in front of the daemon, if the run records; return the address to use."""
    if not options.record:
        return url
    out = folder / "traces" / f"{name}.jsonl"
    out.unlink(missing_ok=True)
    declared = ["--target", "signet-harness", "--harness", HARNESS_NAME]
    module = ["signet_recording_proxy", "--upstream", url, "--out", str(out), *declared]
    environment = programs.DatabaseFolder(folder).environment()
    return await programs.start_module(stack, "the recorder", module, environment, log)
