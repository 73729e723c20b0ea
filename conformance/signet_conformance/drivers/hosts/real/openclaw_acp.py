"""OpenClaw: a gateway for all sessions, and `openclaw acp` beside it, with which an editor speaks to it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import cast

from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.real.acp_session import START_S, AcpSession
from signet_conformance.drivers.hosts.real.conversation import Launch
from signet_conformance.drivers.hosts.real.openclaw_gateway import Gateway
from signet_conformance.drivers.hosts.real.process import deadline_in
from signet_conformance.drivers.hosts.real.refused import Refusal

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
        """Start the gateway and the bridge, unless they run, and tell the bridge the key of the session."""
        # The only service of this program's.
        self._gateway = gateway = cast("Gateway", self._launch.services.lease(lambda: Gateway(self._launch)))
        self._rpc = rpc = gateway.join(self._hear)
        gateway.decide()
        params = {"cwd": str(self._launch.cwd), "mcpServers": [], "_meta": {"sessionKey": self._session}}
        self._id = str(rpc.ask("session/new", params, START_S).get("sessionId"))
        gateway.settle()

    def resume(self) -> None:
        """Tell the bridge the key of the session again."""
        self.open()

    def is_over(self) -> bool:
        """Whether the prompt was answered. Without its gateway the bridge answers with what became of it."""
        self._demand_gateway()
        over = super().is_over()
        # It may have ended since: the bridge answers for that reason then.
        self._demand_gateway()
        return over

    def _demand_gateway(self) -> None:
        if self._gateway is not None and self._gateway.process.ended:
            raise self._gateway.process.failure("the gateway of OpenClaw has ended")

    def clear(self) -> None:
        """Type its own command, which begins anew under the same key."""
        self.say("/new")
        deadline = deadline_in(CLEAR_S)
        while not self.is_over():
            if time.monotonic() > deadline:
                raise StepError(f"OpenClaw began no new session within {CLEAR_S:g} s{self._running.process.told}")
            time.sleep(_LOOK_S)

    def end(self, *, for_good: bool = True) -> None:
        """Close it in the bridge, as an editor does; the session stays in a file, and the gateway goes on."""
        del for_good
        gateway, self._gateway = self._gateway, None
        if self._leave() is not None and gateway is not None:
            gateway.leave(self._hear, self._id)
