"""What carries the bytes between clients and the daemon, and tells the recorder of them.

An engine is given the Listener, from which it knows the recorder and the daemon of the moment. For each client it
makes a connection, which says `recorder.begin` when a request head has come, feeds both bodies, and says
`recorder.finish` when the exchange is over. Faults act inside the connection; the recorder chose them in `begin`.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from signet_conformance.errors import UsageError
from signet_recording_proxy.engines.lean.plain_http import demand_plain_http

if TYPE_CHECKING:
    from signet_recording_proxy.listener import Engine, Listener
    from signet_recording_proxy.upstream import Upstream

ENGINES: Final = ("lean", "mitmproxy")
AUTO: Final = "auto"
"""Stands for the lean engine, unless the daemon is spoken to over TLS."""
MITMPROXY_REMEDY: Final = 'pip install "signet-conformance[mitmproxy]"'


def chosen(name: str, upstream: Upstream) -> str:
    """The engine that `name`, of ENGINES or AUTO, stands for; raise UsageError where it lacks, or cannot do it."""
    needs_tls = name == AUTO and upstream.scheme == "https"
    if name != "mitmproxy" and not needs_tls:
        demand_plain_http(upstream)
        return "lean"
    if find_spec("mitmproxy") is None:
        raise UsageError(
            "TLS to a daemon needs mitmproxy, which is not installed" if needs_tls else "mitmproxy is not installed",
            where=upstream.url if needs_tls else "--engine",
            remedy=MITMPROXY_REMEDY,
        )
    return "mitmproxy"


def engine(name: str, listener: Listener) -> Engine:
    """The engine of this name, one of ENGINES. Imports it, and what it stands on, only now."""
    match name:
        case "lean":
            from signet_recording_proxy.engines.lean.engine import Lean

            return Lean(listener)
        case "mitmproxy":
            from signet_recording_proxy.engines.mitmproxy.engine import Mitmproxy

            return Mitmproxy(listener)
        case _:
            raise ValueError(name)
