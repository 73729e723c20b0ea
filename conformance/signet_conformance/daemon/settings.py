"""How a daemon is to run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True)
class DaemonSettings:
    """What a daemon is started with; the defaults make one on a free loopback port with a temporary workspace."""

    host: str = "127.0.0.1"
    port: int = 0
    workspace: Path | None = None
    """A folder of its own for this daemon, kept at the end; None = a temporary one, removed at the end."""
    version: str = "0.145"
    """The contract version to answer as: 0.58, 0.145 or 0.205."""
    auth: str = "local"
    """The mode of authentication: local, team or hybrid."""
    allow_remote: bool = False
    """Whether `host` may be reachable from other machines."""
    parent: int | None = None
    """A process without which the daemon ends too."""
    until_stdin_closes: bool = False
    """End when standard input is closed, so that a dead parent leaves no daemon behind."""
    frozen: bool = False
    """Changes of memories are answered 503, as with the kill switch of a real daemon."""
    shutting_down: bool = False
    """Everything but /health is answered 503, as while a real daemon stops."""
    clock_stands_at: float | None = None
    """Epoch seconds at which the clock stands still, so that what depends on age is the same in each run."""
    rate_limits: Mapping[str, int] = field(default_factory=dict)
    """Other limits a minute than the daemon's own, by operation (forget, modify, batchForget, ...)."""
