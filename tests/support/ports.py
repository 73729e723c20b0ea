"""Ports of loopback for tests."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unheard_port() -> Iterator[int]:
    """Hold a port at which nothing listens: it refuses connections, and no other test gets it meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
