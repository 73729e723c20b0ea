"""What carries the bytes between clients and the daemon, and tells the recorder of them.

An engine is given the Listener, from which it knows the recorder and the daemon of the moment. For each client it
makes a connection, which says `recorder.begin` when a request head has come, feeds both bodies, and says
`recorder.finish` when the exchange is over. Faults act inside the connection; the recorder chose them in `begin`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from signet_recording_proxy.listener import Engine, Listener

ENGINES = ("mitmproxy", "lean")
"""Every engine; the first is the one that is taken when none is asked for."""


def engine(name: str, listener: Listener) -> Engine:
    """The engine of this name, one of ENGINES. Imports it, and what it stands on, only now."""
    match name:
        case "mitmproxy":
            from signet_recording_proxy.engines.mitmproxy.engine import Mitmproxy

            return Mitmproxy(listener)
        case "lean":
            from signet_recording_proxy.engines.lean.engine import Lean

            return Lean(listener)
        case _:
            raise ValueError(name)
