"""What release 0.58 answers where later ones answer otherwise: one agent for most, no epochs, no scopes, no jobs.

This module holds the checks that precede the work of each hook: a complete request, an unclaimed session, no bypass.
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
    """A request that passed the checks: its fields, its runtime path, and its session key, None if it gives none."""

    fields: Mapping[str, Any]
    path: str | None
    key: Any


@dataclass(frozen=True)
class Gate:
    """The checks of one hook. `required` are the fields it needs; `empty` is the answer in a bypassed session."""

    required: tuple[str, ...]
    empty: Mapping[str, Any]
    heeds_no_hooks: bool = True
    """A request with the header `x-signet-no-hooks` is answered with `empty`; otherwise the header is ignored."""
    claims: bool = False
    """The hook claims the session; otherwise it only asks who holds it."""
    shows_session: bool = False
    """The session is listed as present from here on."""

    def admit(self, daemon: Daemon, call: DaemonRequest) -> AcceptedRequest:
        """Check a request. Raises `RefusedError` with the answer if it does not pass."""
        fields = shared.read_fields(call, self.empty if self.heeds_no_hooks else None, *self.required)
        path, key = shared.runtime_path(call, fields), fields.get("sessionKey")
        (shared.claim if self.claims else shared.demand_unclaimed)(daemon, key, path, AGENT)
        if self.shows_session:
            shared.register_session(daemon, fields, path)
        if shared.is_bypassed(daemon, fields):
            raise RefusedError(DaemonAnswer({**self.empty, "bypassed": True}))
        return AcceptedRequest(fields, path, key if js.truthy(key) else None)
