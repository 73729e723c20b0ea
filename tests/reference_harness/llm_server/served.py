"""A running scripted model server, as tests use it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import httpx

from tests.support import warm
from tests.support.plain_http import NO_CERTIFICATES

PATIENCE_S = 60.0


class Serve(Protocol):
    """Plays a script, given as its members except `format`."""

    def __call__(self, **script: object) -> Served:
        """The server, with that script."""


class Served:
    """The server's address, with its requests."""

    def __init__(self, url: str, process: warm.Begun) -> None:
        self.url = url
        self.process = process
        self.http = httpx.Client(base_url=url, timeout=60, trust_env=False, verify=NO_CERTIFICATES)
        self.last = 0

    def play(self, **script: object) -> None:
        """Play a script, given as its members except `format`; `last` is then the number of the request before."""
        self.http.put("/script", json={"format": "signet-llm/1", **script}).raise_for_status()
        self.last = self.http.delete("/requests").raise_for_status().json()["last"]

    def requests(self) -> list[dict[str, Any]]:
        """The requests that reached it."""
        kept: list[dict[str, Any]] = self.http.get("/requests").json()["requests"]
        return kept


@contextmanager
def started(path: Path, *options: str, **script: object) -> Iterator[Served]:
    """Start a server for a script, which is written to `path`; at the end close its standard input, which ends it."""
    path.write_text(json.dumps({"format": "signet-llm/1", **script}))
    command = [sys.executable, "-m", "signet_reference_harness.cli", "llm", str(path), "--until-stdin-closes", *options]
    process = warm.begin(command, os.environ)
    try:
        assert process.stdout is not None
        served = Served(json.loads(process.stdout.readline())["url"], process)
        with served.http:
            yield served
    finally:
        warm.end(process, PATIENCE_S)
