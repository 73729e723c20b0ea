"""OpenClaw: a gateway for all sessions of a home, and its bridge `openclaw acp`, by which editors reach it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from signet_conformance.children.environment import free_port, listens
from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.real.conversation import Launch
from signet_conformance.drivers.hosts.real.json_rpc import AcpSession, JsonRpc
from signet_conformance.drivers.hosts.real.process import ProgramProcess, deadline_in, remove_at_the_end
from signet_conformance.drivers.hosts.real.refusals import (
    OBSERVER,
    ConnectorRefusedError,
    Refusal,
    has_first_member,
    is_of_the_kit,
)

_SYSTEM_FOLDER = Path("/tmp")  # noqa: S108 - where the program itself puts them
_DIGITS = 8


class LockFiles:
    """The lock files of the databases below `state`. Those of the user's own OpenClaw are in the same folder."""

    def __init__(self, state: Path, system_folder: Path | None = None) -> None:
        self._state = state
        self._folder = (system_folder or _SYSTEM_FOLDER) / f"openclaw-state-locks-{os.getuid()}"
        self._was_there = self._folder.is_dir()

    def remove(self) -> None:
        """Remove the files, and their folder if it was made for them."""
        for database in self._state.rglob("*.sqlite"):
            # The program derives each name from the whole path of the database.
            name = hashlib.sha256(os.fsencode(database.resolve())).hexdigest()[:_DIGITS]
            for file in self._folder.glob(f"*.{name}.lock.sqlite"):
                file.unlink(missing_ok=True)
        if not self._was_there:
            with contextlib.suppress(OSError):
                self._folder.rmdir()


GATEWAY_START_S = 300.0
"""A start takes some ten seconds of CPU time, on a processor that may be shared."""
GATEWAY_QUIT_S = 200.0
DECIDED_S = 3.0
"""How long after it is ready the gateway may take to report the result of a plugin's first probe of its daemon."""
_LOOK_S = 0.05
_LOOK_AGAIN_S = 0.5
_READY = re.compile(r"\[gateway\] ready$")
_PLUGIN = re.compile(r"\[plugins\] (?P<words>.*?) \(plugin=(?P<plugin>[^,)]+), source=")
_UNKNOWN_EVENT = re.compile(r"unknown typed hook \"(?P<event>[^\"]+)\" ignored")
_INVALID = re.compile(r"Invalid config at (?P<file>\S+?\.json)\b")
_BLOCKED = re.compile(r"Gateway start blocked: (?P<words>.*?(?P<member>gateway\.mode).*?\.)")
_COMPLAINT = re.compile(r"^(?:\W )?(?:(?P<file>\S+\.json)\S* — )?(?P<words>(?P<member><root>|[\w.-]+): .+)")
_CONFIGURATION = "openclaw.json"
_NO_MORE = 'Run "openclaw'
_NOT_THE_CONNECTOR = ("memory-core", OBSERVER)
"""Plugins of OpenClaw and of the kit: messages about them are not about the connector."""
_REFUSES = ("must declare", "manifest not found", "blocked because", "ignored", "failed", "invalid", "missing")

Listener = Callable[[Mapping[str, Any]], None]


class Gateway:
    """A running gateway with its bridge; `refusals` lists the parts of the connector's installation that it refused.

    It serves the sessions that have joined. It keeps running without any, as users leave it running.
    """

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._port = free_port()
        self._sessions: list[Listener] = []
        self._bridge: JsonRpc | None = None
        self._closes = False
        self._since = time.monotonic()
        self.refusals: list[Refusal] = []
        self._invalid: str | None = None
        self._ready = threading.Event()
        self._lacks_daemon = False
        self._settled = False
        self._locks = LockFiles(Path(launch.env["HOME"], ".openclaw"))
        remove_at_the_end(self._locks.remove)
        self.process = ProgramProcess(
            [*launch.command, "gateway", "run", "--port", str(self._port)], launch.env, launch.cwd, self._hear
        )

    @property
    def idle(self) -> bool:
        """Whether it serves no session."""
        return not self._sessions

    @property
    def has_ended(self) -> bool:
        """Whether one of its processes has ended."""
        return self.process.has_ended or (self._bridge is not None and self._bridge.has_ended)

    def join(self, listener: Listener) -> JsonRpc:
        """Add a session, whose `listener` gets the bridge's messages. Return the bridge once both are ready.

        Raises StepError with their own words if they do not become ready.
        """
        self._await_ready()
        if self._bridge is None:
            address = f"ws://127.0.0.1:{self._port}"
            command = [*self._launch.command, "acp", "--no-prefix-cwd", "--url", address]
            self._bridge = JsonRpc("OpenClaw", command, self._launch, self._pass_on)
            can = self._bridge.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}}, GATEWAY_START_S)
            sessions = can.get("agentCapabilities", {}).get("sessionCapabilities", {})
            self._closes = isinstance(sessions, dict) and "close" in sessions
        self._sessions.append(listener)
        return self._bridge

    def leave(self, listener: Listener, name: str | None) -> None:
        """Close a session, as an editor does. Raises StepError when the bridge refuses that."""
        self._sessions.remove(listener)
        if self._closes and name is not None and self._bridge is not None and not self.has_ended:
            self._bridge.ask("session/close", {"sessionId": name}, GATEWAY_START_S)

    def decide(self) -> None:
        """Wait until the connector's first probe of its daemon has probably ended."""
        if self._launch.settles is not None:
            time.sleep(max(0.0, self._since + DECIDED_S - time.monotonic()))

    def settle(self) -> None:
        """Wait while the connector reports a listening daemon as lost, for as long as the profile allows.

        Only before the first session: users meet later losses of the daemon too.
        """
        if self._settled:
            return
        self._settled = True
        settles, daemon = self._launch.settles, self._launch.env.get("SIGNET_DAEMON_URL", "")
        deadline = deadline_in(0.0 if settles is None else settles["at_most_s"])
        while self._lacks_daemon and not self.has_ended and time.monotonic() < deadline and listens(daemon):
            time.sleep(_LOOK_AGAIN_S)

    def end(self) -> None:
        """Terminate both, as a service supervisor does. Raises StepError if one does not end."""
        bridge, self._bridge = self._bridge, None
        processes = {"gateway": self.process, **({} if bridge is None else {"bridge": bridge})}
        try:
            for name in reversed(processes):
                if not processes[name].terminate(GATEWAY_QUIT_S):
                    last_words = processes[name].last_words
                    raise StepError(
                        f"the {name} of OpenClaw did not end within {GATEWAY_QUIT_S:g} s after SIGTERM{last_words}"
                    )
        finally:
            for process in processes.values():
                process.kill()
            self._locks.remove()

    def _await_ready(self) -> None:
        deadline = deadline_in(GATEWAY_START_S)
        while not self._ready.wait(_LOOK_S):
            if self.process.has_ended:
                # Its last lines have been read by then.
                failure = self.process.failure("the gateway of OpenClaw ended before it accepted a session")
                raise ConnectorRefusedError(str(failure)) if self.refusals else failure
            if time.monotonic() > deadline:
                raise StepError(
                    f"the gateway of OpenClaw accepted no session within {GATEWAY_START_S:g} s{self.process.last_words}"
                )

    def _pass_on(self, message: Mapping[str, Any]) -> None:
        for listener in self._sessions:
            listener(message)

    def _hear(self, word: str) -> None:
        """Read a line of output, in one of the reading threads."""
        if _READY.search(word):
            self._since = time.monotonic()
            self._ready.set()
        settles = self._launch.settles
        if settles is not None and (settles["lacks"] in word or settles["has"] in word):
            self._lacks_daemon = settles["lacks"] in word
        refusal = self._complaint_in(word) or refusal_in(word)
        if refusal is not None and refusal not in self.refusals:
            self.refusals.append(refusal)

    def _complaint_in(self, word: str) -> Refusal | None:
        """Read the refusal of a member of the configuration from a line, unless the kit wrote that member."""
        if (invalid := _INVALID.search(word)) is not None:
            self._invalid = Path(invalid["file"]).name
            return None
        if word.startswith(_NO_MORE):
            self._invalid = None
        home, settings = Path(self._launch.env["HOME"]), self._launch.settings
        complaint, file = _BLOCKED.search(word), _CONFIGURATION
        if complaint is None:
            complaint = _COMPLAINT.search(word.strip())
            if complaint is None:
                return None
            file = Path(complaint["file"] or self._invalid or "").name
            # A message without a file is about the file just reported as invalid, or is an error of the program.
            if file not in (_CONFIGURATION, self._invalid) or not (
                complaint["file"] or has_first_member(settings, home, file, complaint["member"])
            ):
                return None
        ours = is_of_the_kit(settings, home, file, complaint["member"], complaint["words"])
        return None if ours else Refusal(file, complaint["words"])


def refusal_in(word: str) -> Refusal | None:
    """Read the refusal of a foreign plugin from a line of the gateway's log."""
    match = _PLUGIN.search(word)
    if match is None or not any(each in match["words"] for each in _REFUSES) or match["plugin"] in _NOT_THE_CONNECTOR:
        return None
    manifest = "contracts." in match["words"] or "manifest" in match["words"]
    unknown = _UNKNOWN_EVENT.search(match["words"])
    event = None if unknown is None else unknown["event"]
    return Refusal("openclaw.plugin.json" if manifest else "openclaw.json", match["words"], event)


CLEAR_S = 200.0


class OpenclawAcp(AcpSession):
    """A session of OpenClaw. Its key names the agent, whose workspace it works in."""

    title = "OpenClaw"

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch)
        agent = launch.env.get("SIGNET_AGENT_ID") or "main"
        self._session = f"agent:{agent}:conversation-{uuid.uuid4().hex[:12]}"
        self._gateway: Gateway | None = None
        self._seen_refusals: list[Refusal] = []

    @property
    def key(self) -> str | None:
        """The key of the session, as plugins get it."""
        return self._session

    @property
    def words(self) -> Sequence[str]:
        """The last words of gateway and bridge."""
        return [*(self._gateway.process.words if self._gateway is not None else ()), *super().words]

    @property
    def refusals(self) -> Sequence[Refusal]:
        """The gateway's refusals so far."""
        if self._gateway is not None:
            self._seen_refusals = [*self._gateway.refusals]
        return self._seen_refusals

    def open(self) -> None:
        """Start the gateway and the bridge, unless they run, and tell the bridge the key of the session."""
        self._gateway = gateway = self._launch.services.lease(lambda: Gateway(self._launch))
        self._process = bridge = gateway.join(self._hear)
        gateway.decide()
        params = {"cwd": str(self._launch.cwd), "mcpServers": [], "_meta": {"sessionKey": self._session}}
        self._id = str(bridge.ask("session/new", params).get("sessionId"))
        gateway.settle()

    def resume(self) -> None:
        """Tell the bridge the key of the session again."""
        self.open()

    def is_over(self) -> bool:
        """Whether the prompt was answered. Raises EndedError if the gateway has ended."""
        self._demand_gateway()
        over = super().is_over()
        # Look again: the bridge also answers because the gateway has ended.
        self._demand_gateway()
        return over

    def _demand_gateway(self) -> None:
        if self._gateway is not None and self._gateway.process.has_ended:
            raise self._gateway.process.failure("the gateway of OpenClaw has ended")

    def clear(self) -> None:
        """Type its own command, which begins anew under the same key."""
        self.say("/new")
        deadline = deadline_in(CLEAR_S)
        while not self.is_over():
            if time.monotonic() > deadline:
                raise StepError(f"OpenClaw began no new session within {CLEAR_S:g} s{self._running.last_words}")
            time.sleep(_LOOK_S)

    def end(self, *, for_good: bool = True) -> None:
        """Close it in the bridge, as an editor does; the session stays in a file, and the gateway keeps running."""
        del for_good
        gateway, bridge = self._gateway, self._process
        self._gateway, self._process, self._over = None, None, True
        if bridge is not None and gateway is not None:
            gateway.leave(self._hear, self._id)
