"""A runtime adapter behind HTTP: one POST a call, bounded as a whole."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.server_process import ServerProcess

CALL_TIMEOUT_S = 60.0
MAX_ANSWER_BYTES = 4 * 1024 * 1024
DAEMON_HEADER = "x-signet-daemon-url"
_ABSENT = (404, 405, 501)


@dataclass(frozen=True, slots=True)
class AdapterAnswer:
    """The result of one call. `status` None: no answer; `said` is the object of a 2xx answer, else empty."""

    status: int | None
    said: Mapping[str, Any]
    ms: float
    timed_out: bool = False
    thrown: str | None = None

    @property
    def absent(self) -> bool:
        """Whether the adapter says that it has no such method."""
        return self.status in _ABSENT

    def to_json(self, method: str) -> Mapping[str, Any]:
        """The call as the answer to a step tells it."""
        noted: dict[str, Any] = {"event": method, "ms": self.ms, "status": self.status}
        if self.timed_out:
            noted["timed_out"] = True
        if self.thrown:
            noted["thrown"] = self.thrown
        return noted


class AdapterServer:
    """The adapter of a server. Every call names the `daemon`, for a server that the kit did not start."""

    def __init__(self, command: Sequence[str], url: str, daemon: str) -> None:
        self._daemon = daemon
        self._server = ServerProcess("the adapter's server", command, url)
        self._url = urlsplit(self._server.url)

    def call(self, path: str, params: Mapping[str, Any], timeout_s: float = CALL_TIMEOUT_S) -> AdapterAnswer:
        """POST `params` as JSON; never raises for what the adapter does. Raises StepError when its process is gone."""
        self._server.demand_alive()
        began = time.perf_counter()
        connection = _Bounded(str(self._url.hostname), self._url.port or 80, timeout_s)
        status: int | None = None
        said: Mapping[str, Any] = {}
        thrown: str | None = None
        try:
            headers = {"content-type": "application/json", DAEMON_HEADER: self._daemon}
            status, raw = connection.post(self._url.path.rstrip("/") + path, json.dumps(params), headers)
            answered = _object(raw) if status < 300 else {}
            said, thrown = (answered, None) if answered is not None else ({}, "the answer's body is not a JSON object")
        except ConnectionRefusedError:
            self._server.demand_alive()
            raise StepError(f"nothing listens at {self._server.url} any more: the adapter's server is gone") from None
        except (OSError, http.client.HTTPException) as failure:
            thrown = None if connection.late else f"{type(failure).__name__}: {failure}"
        took = round((time.perf_counter() - began) * 1000, 3)
        return AdapterAnswer(status, said, took, connection.late, thrown)

    def close(self) -> None:
        """End the server that was started."""
        self._server.close()


class _Bounded:
    """One request with a deadline for the whole of it: that of a socket begins anew with every byte."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self.late = False
        self._connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
        self._timeout_s = timeout_s

    def post(self, path: str, body: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Status and body of the answer; raises what the connection raises, with `late` set past the deadline."""
        self._connection.connect()
        # The connection forgets its socket as soon as an answer says that it is the last one on it.
        timer = threading.Timer(self._timeout_s, self._give_up, (self._connection.sock,))
        timer.start()
        try:
            self._connection.request("POST", path, body, dict(headers))
            answer = self._connection.getresponse()
            return answer.status, answer.read(MAX_ANSWER_BYTES)
        except TimeoutError:
            self.late = True
            raise
        finally:
            timer.cancel()
            self._connection.close()

    def _give_up(self, sock: socket.socket) -> None:
        self.late = True
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def _object(raw: bytes) -> Mapping[str, Any] | None:
    """The JSON object of an answer; an empty one for null and for an empty body, None for any other JSON or text."""
    if raw.strip() in (b"", b"null"):
        return {}
    try:
        told = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None
