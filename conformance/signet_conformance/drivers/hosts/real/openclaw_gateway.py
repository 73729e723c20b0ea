"""The gateway of OpenClaw: one process for all sessions of a home, from the first that opens to the last that ends."""

from __future__ import annotations

import re
import socket
import threading
import time
from pathlib import Path

from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.real.conversation import Launch, Refusal
from signet_conformance.drivers.hosts.real.process import ProgramProcess, deadline_in

START_S = 300.0
"""It takes some twenty seconds of a processor, which it may have to share."""
QUIT_S = 40.0
_LOOK_S = 0.05
_READY = re.compile(r"\[gateway\] ready$")
_PLUGIN = re.compile(r"\[plugins\] (?P<words>.*?) \(plugin=(?P<plugin>[^,)]+), source=")
_INVALID = re.compile(r"^\W (?P<file>\S+\.json)\S* — (?P<words>.*)")
_REFUSES = ("must declare", "blocked because", "ignored", "failed", "invalid", "missing")
_gateways: dict[Path, Gateway] = {}


class Gateway:
    """A running gateway; `refused` is what it said of the connector's installation so far."""

    def __init__(self, launch: Launch) -> None:
        self.port = _free_port()
        self.sessions = 0
        self._since = time.monotonic()
        self.refused: list[Refusal] = []
        self._ready = threading.Event()
        command = [*launch.command, "gateway", "run", "--port", str(self.port)]
        self.process = ProgramProcess(command, launch.env, launch.cwd, self._hear)

    def await_ready(self) -> None:
        """Wait until it takes sessions. Raises StepError with its own words when it does not."""
        deadline = deadline_in(START_S)
        while not self._ready.wait(_LOOK_S):
            if self.process.ended:
                raise StepError(f"the gateway of OpenClaw ended before it took a session{self.process.told}")
            if time.monotonic() > deadline:
                raise StepError(f"the gateway of OpenClaw took no session within {START_S:g} s{self.process.told}")

    def settle(self, settle_s: float) -> None:
        """Wait until it has taken sessions for that time: of what it goes on loading meanwhile it says nothing."""
        time.sleep(max(0.0, self._since + settle_s - time.monotonic()))

    def _hear(self, word: str) -> None:
        """Called by the threads that read it."""
        if _READY.search(word):
            self._since = time.monotonic()
            self._ready.set()
        refusal = refusal_in(word)
        if refusal is not None and refusal not in self.refused:
            self.refused.append(refusal)


def refusal_in(word: str) -> Refusal | None:
    """What a line of the gateway's log refuses of a plugin that is not its own, or of its configuration."""
    if (invalid := _INVALID.search(word.strip())) is not None:
        return Refusal(invalid["file"], invalid["words"])
    told = _PLUGIN.search(word)
    if told is None or not any(each in told["words"] for each in _REFUSES) or told["plugin"] == "memory-core":
        return None
    manifest = "contracts." in told["words"]
    return Refusal("openclaw.plugin.json" if manifest else "openclaw.json", told["words"])


def lease(launch: Launch) -> Gateway:
    """The gateway of the launch's home, started unless it runs, for one session more."""
    home = Path(launch.env["HOME"])
    gateway = _gateways.get(home)
    if gateway is None or gateway.process.ended:
        gateway = _gateways[home] = Gateway(launch)
    gateway.sessions += 1
    return gateway


def give_back(launch: Launch, gateway: Gateway, *, resumed: bool) -> None:
    """One session of the gateway's has ended; with the last one it is asked to end, as a service is.

    It goes on for a session that is `resumed` later. Raises StepError when it does not end.
    """
    gateway.sessions -= 1
    if gateway.sessions > 0 or resumed:
        return
    _gateways.pop(Path(launch.env["HOME"]), None)
    if not gateway.process.terminate(QUIT_S):
        told = gateway.process.told
        gateway.process.kill()
        raise StepError(f"the gateway of OpenClaw did not end within {QUIT_S:g} s after it was asked to{told}")
    gateway.process.kill()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
