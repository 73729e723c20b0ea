"""The state of one daemon: its settings, its clock, and its stored data."""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from signet_conformance.daemon import js
from signet_conformance.daemon.behaviour import behaviour_of
from signet_conformance.daemon.js import Clock
from signet_conformance.daemon.state.agents import Agents, seed
from signet_conformance.daemon.state.auth import MODES, Auth
from signet_conformance.daemon.state.graph import Graph
from signet_conformance.daemon.state.secrets import Secrets
from signet_conformance.daemon.state.sessions import AgentPresence, Epochs, SessionClaims, StartedSessions
from signet_conformance.daemon.state.store import Store
from signet_conformance.daemon.state.transcripts import Captures, Transcripts
from signet_conformance.errors import UsageError, os_errors


class Daemon:
    """The parts of one daemon. `clock` returns epoch seconds; nothing else here reads the time.

    Raises `UsageError` when the settings or the workspace cannot be used.
    """

    def __init__(self, settings: DaemonSettings, clock: Clock) -> None:
        if settings.auth not in MODES:
            raise UsageError(
                f"unknown authentication mode {settings.auth!r}", remedy=f"choose one of {', '.join(MODES)}"
            )
        self.settings = settings
        self.clock = clock
        self.behaviour = behaviour_of(settings.version)
        self.started_at = clock()
        self.port = settings.port
        self._temporary = None if settings.workspace else tempfile.TemporaryDirectory(prefix="signet-daemon-")
        self.workspace = (settings.workspace or Path(self._temporary.name if self._temporary else ".")).absolute()
        remedy = "name another folder, or none, so that a temporary one is used"
        with os_errors("the workspace cannot be written to", where=str(self.workspace), remedy=remedy):
            self.workspace.mkdir(parents=True, exist_ok=True)
            self.store = Store.open(self.workspace)
            seed(self.workspace)
        self.agents = Agents(self.store, clock, self.behaviour)
        self.auth = Auth(self.store, clock, settings.auth, dict(settings.rate_limits), api_keys=self.behaviour.api_keys)
        self.sessions = SessionClaims(clock, self.behaviour, self.store, expired=settings.claims_expire)
        self.started = StartedSessions(clock)
        self.presence = AgentPresence(clock)
        self.epochs = Epochs(self.store)
        self.graph = Graph(self.store)
        self.transcripts = Transcripts(self.store, clock)
        self.secrets = Secrets(self.store, clock, shell=self.behaviour.early)
        self.captures = Captures()
        self.prompted: dict[str, deque[set[str]]] = {}
        """By session, the rows that its last prompts showed, for versions that do not show them again."""
        self.agents.register("default")

    def now(self) -> str:
        """The current time as the daemon writes it."""
        return js.iso(self.clock())

    def count_reads(self, memories: Iterable[str]) -> None:
        """Note that these memories were shown."""
        self.store.run_many(
            """UPDATE memories SET access_count = access_count + 1, last_accessed = datetime(?, 'unixepoch')
               WHERE id = ?""",
            [(int(self.clock()), memory) for memory in memories],
        )

    async def close(self) -> None:
        """Stop running commands, close the database and remove a temporary workspace."""
        await self.secrets.close()
        self.store.close()
        if self._temporary:
            self._temporary.cleanup()


@dataclass(frozen=True)
class DaemonSettings:
    """The settings of a daemon; the defaults make one on a free loopback port with a temporary workspace."""

    host: str = "127.0.0.1"
    port: int = 0
    workspace: Path | None = None
    """A folder of its own for this daemon, kept at the end; None = a temporary one, removed at the end."""
    version: str = "0.145"
    """The contract version to answer as, one of `behaviour.VERSIONS`."""
    auth: str = "local"
    """The mode of authentication: local, team or hybrid."""
    allow_remote: bool = False
    """Whether `host` may be reachable from other machines."""
    until_stdin_closes: bool = False
    """End when standard input is closed, so that a dead parent leaves no daemon behind."""
    frozen: bool = False
    """Changes of memories are answered 503, as with the kill switch of a real daemon."""
    shutting_down: bool = False
    """Everything but /health is answered 503, as while a real daemon stops."""
    claims_expire: bool = False
    """The claims in the workspace have expired: the daemon was down for longer than they last."""
    clock_stands_at: float | None = None
    """Epoch seconds at which the clock stands still, so that ages are the same in each run."""
    rate_limits: Mapping[str, int] = field(default_factory=dict)
    """Limits per minute, by operation (forget, modify, batchForget, ...), in place of the daemon's own."""
