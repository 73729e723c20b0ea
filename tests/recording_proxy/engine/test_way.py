"""Where requests come from and go to, and under which name."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.support.recorder import RecorderProcess, Upstream


def test_the_daemon_hears_its_own_name(recorder: RecorderProcess, upstream: Upstream) -> None:
    """Host is the daemon's towards the daemon, and the recorder's in the trace."""
    recorder.request("GET", "/health")
    assert upstream.calls[-1].headers["host"] == f"127.0.0.1:{upstream.port}"
    assert recorder.trace().exchanges[0].request.header("host") == f"127.0.0.1:{recorder.port}"


def test_a_foreign_host_name_reaches_the_daemon(recorder: RecorderProcess, upstream: Upstream) -> None:
    """A Host that is not the recorder's own is not covered up: the daemon's own guard sees it."""
    recorder.request("GET", "/health", Host="rebound.example:3850")
    assert upstream.calls[-1].headers["host"] == "rebound.example:3850"


def test_ipv6_loopback(upstream: Upstream, tmp_path: Path) -> None:
    """It can listen on ::1, and its URL says so."""
    recorder = RecorderProcess("--upstream", upstream.url, "--host", "::1", out=tmp_path / "t.jsonl")
    try:
        assert recorder.url.startswith("http://[::1]:")
        socket.create_connection(("::1", recorder.port), timeout=180).close()
    finally:
        recorder.close()
