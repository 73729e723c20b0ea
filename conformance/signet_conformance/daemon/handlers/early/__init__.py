"""What release 0.58 answers where later ones answer otherwise: one agent for most, no epochs, no scopes, no jobs.

Here is the gate that stands before the work of each hook: is it wanted, complete, of its own session, not bypassed?
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from signet_conformance.daemon import js
from signet_conformance.daemon.handlers import hooks as shared
from signet_conformance.daemon.state import Daemon
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest, RefusedError

#: All sessions belong to this agent, whatever a request says.
AGENT = "default"


@dataclass(frozen=True)
class AcceptedRequest:
    """A request that may do its work: its fields, its runtime path, and its session key, None when it gives none."""

    fields: Mapping[str, Any]
    path: str | None
    key: Any


@dataclass(frozen=True)
class Gate:
    """The questions of one hook. `needed` are its fields; `nothing` answers a bypassed session."""

    needed: tuple[str, ...]
    nothing: Mapping[str, Any]
    asks_inside: bool = True
    """A hook inside a hook is answered with `nothing`; otherwise it is not asked whether it is one."""
    claims: bool = False
    """The hook claims the session; otherwise it asks who holds it."""
    seen: bool = False
    """The session is shown as present from here on."""

    def admit(self, daemon: Daemon, call: DaemonRequest) -> AcceptedRequest:
        """The visit. Raises `RefusedError` with the answer that ends it here."""
        fields = shared.read_fields(call, self.nothing if self.asks_inside else None, *self.needed)
        path, key = shared.runtime_path(call, fields), fields.get("sessionKey")
        (shared.claim if self.claims else shared.demand_unclaimed)(daemon, key, path, AGENT)
        if self.seen:
            shared.meet(daemon, fields, path)
        if shared.is_bypassed(daemon, fields):
            raise RefusedError(DaemonAnswer({**self.nothing, "bypassed": True}))
        return AcceptedRequest(fields, path, key if js.truthy(key) else None)
