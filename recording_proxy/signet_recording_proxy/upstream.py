"""Where the daemon listens."""

from __future__ import annotations

from urllib.parse import urlsplit

from signet_conformance.errors import UsageError


class Upstream:
    """The daemon's address, taken apart once."""

    def __init__(self, url: str) -> None:
        """Raise UsageError when `url` is no http or https origin."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/") or parts.query:
            raise UsageError(
                "the upstream is no origin such as http://127.0.0.1:3850",
                where="--upstream",
                remedy="give scheme, host and port of the daemon, without a path",
            )
        if "@" in parts.netloc:
            raise UsageError(
                "the upstream holds credentials",
                where="--upstream",
                remedy="give the token to the connector; the recorder passes its Authorization header on",
            )
        self.scheme = parts.scheme
        self.host = parts.hostname
        self.port = port or (443 if parts.scheme == "https" else 80)
        name = f"[{self.host}]" if ":" in self.host else self.host
        self.authority = f"{name}:{self.port}" if port else name
        self.url = f"{self.scheme}://{self.authority}"
