"""A small server on a real socket that keeps every request and answers as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

START, PROMPT, END = "/api/hooks/session-start", "/api/hooks/user-prompt-submit", "/api/hooks/session-end"
RECALL, FORGET, JOB = "/api/memory/recall", "/api/memory/forget", "/api/secrets/exec/job-1"


@dataclass(frozen=True)
class Request:
    """One request as it arrived; `body` is None when there was none."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


class RecordingServer:
    """Answers `answers[path]`, (status, JSON value or text), else 200 with `{}`. A context manager."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answers: dict[str, tuple[int, Any]] = {}
        self.arrived = threading.Event()
        """Set by the first request."""
        self.gate = threading.Event()
        self.gate.set()
        """No answer is given while it is clear."""
        recording = self

        class Handler(BaseHTTPRequestHandler):
            def _serve(self) -> None:
                recording.serve(self)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - named by the base class

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by the base class
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.gate.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        """Keep the request of a handler and answer it."""
        content = handler.rfile.read(int(handler.headers.get("content-length", 0)))
        parts = urlsplit(handler.path)
        headers = {name.lower(): value for name, value in handler.headers.items()}
        body = json.loads(content) if content else None
        self.requests.append(Request(handler.command, parts.path, dict(parse_qsl(parts.query)), headers, body))
        self.arrived.set()
        self.gate.wait(30)
        status, answer = self.answers.get(parts.path, (200, {}))
        encoded = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        handler.send_response(status)
        handler.send_header("content-length", str(len(encoded)))
        handler.end_headers()
        handler.wfile.write(encoded)

    @property
    def paths(self) -> list[str]:
        """The paths that were asked for, in order."""
        return [request.path for request in self.requests]
