"""Bounds the number of open connections: each takes a file descriptor, and a process may have a limited number."""

from __future__ import annotations

import contextlib
import resource
import sys
from typing import Final, Protocol

from signet_recording_proxy.engine.messages import UNAVAILABLE, Complaint

KEPT_FREE: Final = 64
"""Descriptors for everything except connections, and for clients that only get the answer 503."""
_DROPPED_AT_ONCE = 64
_ENOUGH = 1 << 20


class IdleHolder(Protocol):
    """A client, which may hold an unused connection to the daemon."""

    def drop_idle_daemon(self) -> bool:
        """Give up that connection; return whether there was one."""


class ConnectionLimits:
    """Counts connections; drops idle ones to the daemon before it refuses a client."""

    def __init__(self) -> None:
        self._taken = 0
        self._holders: dict[IdleHolder, None] = {}
        self._warned = False

    def enter(self, client: IdleHolder) -> bool:
        """Count a new client; return whether it is within the limit."""
        self._holders[client] = None
        return self.take()

    def leave(self, client: IdleHolder) -> None:
        """Stop counting a client."""
        del self._holders[client]
        self.give_back()

    def take(self) -> bool:
        """Count one more connection, open or about to open, in any case; return whether it is within the limit."""
        self._taken += 1
        if not self.full:
            return True
        dropped = 0
        for holder in self._holders:
            dropped += holder.drop_idle_daemon()
            if dropped == _DROPPED_AT_ONCE:
                break
        return not self.full

    @property
    def full(self) -> bool:
        """Whether more connections are open than the limit allows."""
        return self._taken > most_open_files() - KEPT_FREE

    def give_back(self) -> None:
        """Stop counting a connection."""
        self._taken -= 1

    def complaint(self) -> Complaint:
        """The answer to a client beyond the limit. Warns on stderr the first time."""
        reason = f"no room for another connection: this process may have {most_open_files()} files open"
        if not self._warned:
            self._warned = True
            print(
                f"warning: {reason}; clients are answered 503\ntry: raise the limit (ulimit -n) and record again",
                file=sys.stderr,
                flush=True,
            )
        return Complaint(reason, UNAVAILABLE)


def most_open_files() -> int:
    """How many files this process may have open now."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if most == resource.RLIM_INFINITY else most


def raise_limit() -> None:
    """Let this process open as many files as the system allows it; some systems begin with 256."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    with contextlib.suppress(OSError, ValueError):  # the limit stays as it is
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
