"""The daemon's address, and its answer to GET /health."""

from __future__ import annotations

import asyncio
import http.client
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple
from urllib.parse import urlsplit

from signet_conformance.errors import UsageError, printable
from signet_conformance.files.json_values import member_of, only_text, parse_value

_NAME = re.compile(r"(?!xn--)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*\.?\Z")
_ADDRESS_V6 = re.compile(r"[0-9a-f:.]+\Z")
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Upstream:
    """The daemon's address, taken apart once. `url` is its origin, `authority` its name in a Host header."""

    def __init__(self, url: str) -> None:
        """Raise UsageError when `url` is not an http or https origin that can be asked."""
        if "@" in url:
            # A password may precede the `@`, so the message does not repeat the address.
            raise UsageError(
                "the upstream holds credentials",
                where="--upstream",
                remedy="give the token to the connector; the recorder passes its Authorization header on",
            )
        try:
            parts = urlsplit(url)
            given, host = parts.port, parts.hostname or ""
        except ValueError:
            raise _no_origin(url) from None
        self.host = host
        self.scheme = parts.scheme
        self.port = _DEFAULT_PORTS.get(self.scheme, 0) if given is None else given
        is_v6 = ":" in host
        known_host = (_ADDRESS_V6 if is_v6 else _NAME).match(host)
        if self.scheme not in _DEFAULT_PORTS or not self.port or not known_host:
            raise _no_origin(url)
        if parts.path not in ("", "/") or parts.query or parts.fragment:
            raise _no_origin(url)
        name = f"[{host}]" if is_v6 else host
        self.authority = name if given is None else f"{name}:{given}"
        self.url = f"{self.scheme}://{self.authority}"
        self.tls = ssl.create_default_context() if self.scheme == "https" else None
        """None for plain HTTP. A certificate is verified by the authorities in SSL_CERT_FILE, if that is set."""


def _no_origin(url: str) -> UsageError:
    return UsageError(
        f"{printable(url)} is not an origin such as http://127.0.0.1:3850",
        where="--upstream",
        remedy="give scheme, host and port of the daemon, without a path",
    )


TIMEOUT_S = 3.0


class Health(NamedTuple):
    """The answer to GET /health: whether there was one, the version if given, and what is odd about it.

    `odd` is empty for the answer of a daemon.
    """

    answered: bool
    version: str | None
    odd: str = ""


async def ask(upstream: Upstream) -> Health:
    """As `health`, while the event loop goes on."""
    return await asyncio.to_thread(health, upstream)


def health(upstream: Upstream) -> Health:
    """Ask the daemon for its health, unrecorded; takes three seconds at most."""
    connection: http.client.HTTPConnection
    if upstream.tls is not None:
        connection = http.client.HTTPSConnection(upstream.host, upstream.port, timeout=TIMEOUT_S, context=upstream.tls)
    else:
        connection = http.client.HTTPConnection(upstream.host, upstream.port, timeout=TIMEOUT_S)
    try:
        connection.connect()
        with _hung_up_after(TIMEOUT_S, connection.sock):
            connection.request("GET", "/health", headers={"Accept": "application/json"})
            response = connection.getresponse()
            answer = response.read(1 << 20)
    except (OSError, http.client.HTTPException):
        return Health(False, None)
    finally:
        connection.close()
    body = parse_value(answer)
    # A daemon that is starting or ill may answer 503, and says so as JSON.
    odd = "" if isinstance(body, dict) else f"with status {response.status} and no JSON object"
    return Health(True, only_text(member_of(body, "version")), odd)


@contextmanager
def _hung_up_after(seconds: float, sock: socket.socket) -> Iterator[None]:
    """Shut a socket down if the block takes longer: its own timeout begins anew with every byte."""

    def hang_up() -> None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)

    late = threading.Timer(seconds, hang_up)
    late.start()
    try:
        yield
    finally:
        late.cancel()
