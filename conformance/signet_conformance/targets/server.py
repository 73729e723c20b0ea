"""Connectors that are servers: the address that the kit speaks to, always on this machine."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from signet_conformance.errors import TargetError, printable

if TYPE_CHECKING:
    from signet_conformance.targets import Target

PORT = "{port}"
DAEMON = "{daemon}"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_LOOK_S = 1.0


def server_url(target: Target) -> str:
    """The URL of a target's server, with `{port}` and `{daemon}` not yet replaced.

    Raises TargetError if it is not on this machine, or if it is neither given nor started by a command.
    """
    url = target.profile.url
    if url is None:
        url = f"http://127.0.0.1:{PORT}"
    try:
        parts = urlsplit(url.replace(PORT, "80").replace(DAEMON, "http://127.0.0.1"))
    except ValueError:
        parts = urlsplit("")
    if parts.scheme != "http" or parts.hostname not in _LOOPBACK:
        raise TargetError(
            f"url is {printable(url)!r}, which is not an http address on this machine",
            where=target.where,
            remedy="the kit speaks to loopback only, such as http://127.0.0.1:8080",
        )
    if PORT in url and not target.command:
        raise TargetError(
            "neither a command nor a url",
            where=target.where,
            remedy='such as command = ["node", "{root}/server.mjs", "{port}"], or url = "http://127.0.0.1:8080"',
        )
    return url


def listens(url: str) -> bool:
    """Whether an address accepts connections."""
    parts = urlsplit(url)
    with (
        contextlib.suppress(OSError, ValueError),
        socket.create_connection((parts.hostname, parts.port or 80), _LOOK_S),
    ):
        return True
    return False
