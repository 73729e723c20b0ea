"""Serves a growing page on loopback, below a token that only its reader knows; a page of anybody else gets nothing."""

from __future__ import annotations

import hmac
import json
import secrets
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from signet_conformance.cli.live.growing import Growing
from signet_conformance.errors import UsageError

_WAIT_S = 20.0
"""How long a question for a later state is held."""


class PageServer:
    """A server for one growing page. A context manager; `url` is where it is seen, its token included.

    Raises UsageError when nothing can listen at that port.
    """

    def __init__(self, growing: Growing, port: int = 0) -> None:
        token = secrets.token_urlsafe(16)
        try:
            self._server = _Server(("127.0.0.1", port), _Handler)
        except OSError as failure:
            raise UsageError(
                f"nothing can listen at 127.0.0.1:{port}: {failure.strerror}",
                where="--port",
                remedy="choose another port, or none for a free one",
            ) from None
        self._server.growing = growing
        self._server.token = token
        self.url = f"http://127.0.0.1:{self._server.server_port}/{token}/"
        self._thread = threading.Thread(target=self._server.serve_forever, name="signet page", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    growing: Growing
    token: str

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet of a reader that left; whatever else fails is the kit's own failure, and is told."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET; whoever is not the page's own reader is told nothing, not even that there is a page."""

    server: _Server
    server_version = "signet-conformance"
    sys_version = ""
    timeout = 60.0

    def do_GET(self) -> None:
        """The page, or the number of the state after the one that is known."""
        asked = urlsplit(self.path)
        token, _, name = asked.path.removeprefix("/").partition("/")
        if not self._is_own() or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"")
        elif name == "":
            self._answer(HTTPStatus.OK, "text/html", self.server.growing.seen.page.encode())
        elif name == "version":
            after = parse_qs(asked.query).get("after", ["0"])[0]
            growing = self.server.growing
            seen = growing.after(int(after) if after.isdecimal() and len(after) < 16 else 0, _WAIT_S)
            told = {"version": seen.version, "exchanges": seen.exchanges, "new": seen.new, "ended": growing.ended}
            self._answer(HTTPStatus.OK, "application/json", json.dumps(told).encode())
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"")

    def _is_own(self) -> bool:
        """Whether the request names this server, and no page of another origin sent it."""
        port = self.server.server_port
        own = [f"{host}:{port}" for host in ("127.0.0.1", "localhost")]
        origins = self.headers.get_all("Origin", [])
        return (
            self.headers.get("Host", "").lower() in own
            and all(origin.lower() in [f"http://{host}" for host in own] for origin in origins)
            and self.headers.get("Sec-Fetch-Site", "none").lower() in ("none", "same-origin")
        )

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Keep quiet: addresses hold the token."""
