"""What the lean engine speaks with a daemon."""

from __future__ import annotations

from signet_conformance.errors import UsageError
from signet_recording_proxy.upstream import Upstream


def demand_plain_http(upstream: Upstream) -> None:
    """Raise UsageError for a daemon that is spoken to over TLS."""
    if upstream.scheme != "http":
        raise UsageError(
            "the lean engine speaks plain HTTP and no TLS",
            where=upstream.url,
            remedy="start the recorder with --engine mitmproxy",
        )
