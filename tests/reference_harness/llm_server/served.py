"""A running scripted model server, as a test speaks to it."""

from __future__ import annotations

import subprocess
from typing import Any, Protocol

import httpx


class Serve(Protocol):
    """Starts a server for a script, given as its members but `format`."""

    def __call__(self, **script: Any) -> Served:
        """The server, ready."""


class Served:
    """The server's address, and what it tells of itself."""

    def __init__(self, url: str, process: subprocess.Popen[str]) -> None:
        self.url = url
        self.process = process
        self.http = httpx.Client(base_url=url, timeout=60, trust_env=False)

    def requests(self) -> list[dict[str, Any]]:
        """The requests that reached it."""
        kept: list[dict[str, Any]] = self.http.get("/requests").json()["requests"]
        return kept

    def close(self) -> None:
        """Close its standard input and wait for its end."""
        self.http.close()
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
