"""OpenClaw: a gateway for all sessions, and `openclaw acp` for each, as an editor speaks with it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.real.acp_session import AcpSession
from signet_conformance.drivers.hosts.real.conversation import Launch, Refusal
from signet_conformance.drivers.hosts.real.openclaw_gateway import QUIT_S, Gateway, give_back, lease
from signet_conformance.drivers.hosts.real.process import deadline_in

CLEAR_S = 200.0
_LOOK_S = 0.05


class OpenclawAcp(AcpSession):
    """A session of OpenClaw. Its key names the agent, whose workspace it works in."""

    title = "OpenClaw"

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch)
        agent = launch.env.get("SIGNET_AGENT_ID") or "main"
        self._session = f"agent:{agent}:conversation-{uuid.uuid4().hex[:12]}"
        self._gateway: Gateway | None = None
        self._told: list[Refusal] = []

    @property
    def key(self) -> str | None:
        """The key of the session, which plugins are told."""
        return self._session

    @property
    def words(self) -> Sequence[str]:
        """What gateway and bridge say."""
        return [*(self._gateway.process.words if self._gateway is not None else ()), *super().words]

    @property
    def refused(self) -> Sequence[Refusal]:
        """What the gateway has refused so far."""
        if self._gateway is not None:
            self._told = [*self._gateway.refused]
        return self._told

    def open(self) -> None:
        """Start the gateway, unless it runs, and a bridge to it in a session of its own."""
        self._gateway = gateway = lease(self._launch)
        gateway.await_ready()
        address = f"ws://127.0.0.1:{gateway.port}"
        self._id = self._begin(self._start("acp", "--no-prefix-cwd", "--url", address, "--session", self._session))
        gateway.settle(self._launch.settle_s)

    def resume(self) -> None:
        """Start them with the key of the session."""
        self.open()

    def clear(self) -> None:
        """Type its own command, which begins anew under the same key."""
        self.say("/new")
        deadline = deadline_in(CLEAR_S)
        while not self.is_over():
            if time.monotonic() > deadline:
                raise StepError(f"OpenClaw began no new session within {CLEAR_S:g} s{self._running.process.told}")
            time.sleep(_LOOK_S)

    def end(self, *, for_good: bool = True) -> None:
        """End the bridge as an editor does, and the gateway with the last session; the session stays in a file."""
        gateway, self._gateway = self._gateway, None
        rpc = self._leave()
        try:
            # The end of its input does not end it.
            if rpc is not None and not rpc.process.terminate(QUIT_S):
                told = rpc.process.told
                raise StepError(f"the bridge of OpenClaw did not end within {QUIT_S:g} s after it was asked to{told}")
        finally:
            if rpc is not None:
                rpc.process.kill()
            if gateway is not None:
                give_back(self._launch, gateway, resumed=not for_good)
