"""Asks a daemon whether it is there and which version it is, past the recording."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
from typing import NamedTuple

from signet_recording_proxy.upstream import Upstream

TIMEOUT_S = 3.0


class Health(NamedTuple):
    """What GET /health told: whether anybody answered, and the version if it was said."""

    answered: bool
    version: str | None


async def ask(upstream: Upstream) -> Health:
    """Ask the daemon; takes three seconds at most."""
    return await asyncio.to_thread(_ask, upstream)


def _ask(upstream: Upstream) -> Health:
    connection: http.client.HTTPConnection
    if upstream.scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(upstream.host, upstream.port, timeout=TIMEOUT_S, context=context)
    else:
        connection = http.client.HTTPConnection(upstream.host, upstream.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/health", headers={"Accept": "application/json"})
        answer = connection.getresponse().read(1 << 20)
    except (OSError, http.client.HTTPException):
        return Health(False, None)
    finally:
        connection.close()
    try:
        body = json.loads(answer)
    except (ValueError, RecursionError):
        body = None
    version = body.get("version") if isinstance(body, dict) else None
    return Health(True, version if isinstance(version, str) else None)
