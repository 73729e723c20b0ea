"""What a run says to the daemon itself: it goes there and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError

import pytest

from signet_conformance.running.daemon import ask_directly


@contextmanager
def server(status: int, **headers: str) -> Iterator[tuple[str, list[str]]]:
    """A server on loopback that answers everything alike: its address, and the request lines that it got."""
    seen: list[str] = []

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(status)
            for name, value in {"content-length": "0", **headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing is written down."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}", seen
        finally:
            listening.shutdown()
            thread.join()


def test_no_proxy_is_asked() -> None:
    """A proxy that the environment names sees nothing of what is said to the daemon."""
    program = (
        "import sys; from signet_conformance.running.daemon import ask_directly; ask_directly(sys.argv[1], 10).close()"
    )
    with server(200) as (daemon, seen), server(200) as (proxy, asked):
        named = dict.fromkeys(("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"), proxy)
        env = {**os.environ, **named, "no_proxy": "", "NO_PROXY": ""}
        subprocess.run([sys.executable, "-c", program, f"{daemon}/health"], env=env, check=True, timeout=60)
    assert (seen, asked) == (["/health"], [])


def test_no_redirect_is_followed() -> None:
    """An answer that leads elsewhere is an error, and nobody goes there."""
    with (
        server(200) as (elsewhere, asked),
        server(307, location=f"{elsewhere}/taken") as (daemon, _),
        pytest.raises(HTTPError, match="307"),
    ):
        ask_directly(f"{daemon}/health", timeout_s=10)
    assert asked == []
