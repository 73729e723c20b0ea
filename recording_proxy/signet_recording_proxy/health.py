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
    """What GET /health told: whether anybody answered, the version if it was said, and what no daemon says.

    `odd` is empty for a daemon's.
    """

    answered: bool
    version: str | None
    odd: str = ""


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
        response = connection.getresponse()
        answer = response.read(1 << 20)
    except (OSError, http.client.HTTPException):
        return Health(False, None)
    finally:
        connection.close()
    try:
        body = json.loads(answer)
    except (ValueError, RecursionError):
        body = None
    version = body.get("version") if isinstance(body, dict) else None
    # A daemon that is starting or ill may answer 503, and says so as JSON.
    odd = "" if isinstance(body, dict) else f"with status {response.status} and no JSON object"
    return Health(True, version if isinstance(version, str) else None, odd)
