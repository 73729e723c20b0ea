"""A harness that speaks to a runtime adapter over HTTP (signet-adapter/1): one POST for each method of its lifecycle.

    python -m signet_conformance.drivers.hosts.http_adapter OPTIONS

OPTIONS holds `command` (the server to start) or none, its `url`, and the `paths` of methods that are not served
under their own names. docs/driver-protocol.md is the specification.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import urlsplit

from signet_conformance.drivers.hosts.protocol import Lateness, Peer, Skipped, StepError
from signet_conformance.drivers.hosts.server_process import ServerProcess
from signet_conformance.files.json_values import parse_value, text_in

CALL_TIMEOUT_S = 60.0
MAX_ANSWER_BYTES = 4 * 1024 * 1024
DAEMON_HEADER = "x-signet-daemon-url"
_ABSENT = (404, 405, 501)


@dataclass(frozen=True, slots=True)
class AdapterAnswer:
    """The result of one call. `status` None: no answer; `body` is the object of a 2xx answer, else empty."""

    status: int | None
    body: Mapping[str, Any]
    ms: float
    late_ms: float
    timed_out: bool = False
    thrown: str | None = None

    @property
    def absent(self) -> bool:
        """Whether the adapter says that it has no such method."""
        return self.status in _ABSENT

    def to_json(self, method: str) -> Mapping[str, Any]:
        """The call as a member of the answer to a step."""
        noted: dict[str, Any] = {"event": method, "ms": self.ms, "late_ms": self.late_ms, "status": self.status}
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
        lateness = Lateness()
        connection = _Bounded(str(self._url.hostname), self._url.port or 80, timeout_s)
        status: int | None = None
        body: Mapping[str, Any] = {}
        thrown: str | None = None
        try:
            headers = {"content-type": "application/json", DAEMON_HEADER: self._daemon}
            status, raw = connection.post(self._url.path.rstrip("/") + path, json.dumps(params), headers)
            parsed = _object(raw) if status < 300 else {}
            body, thrown = (parsed, None) if parsed is not None else ({}, "the answer's body is not a JSON object")
        except ConnectionRefusedError:
            self._server.demand_alive()
            raise StepError(f"nothing listens at {self._server.url}: the adapter's server has ended") from None
        except (OSError, http.client.HTTPException) as failure:
            thrown = None if connection.late else f"{type(failure).__name__}: {failure}"
        finally:
            late_ms = lateness.end()
        took = round((time.perf_counter() - began) * 1000, 3)
        return AdapterAnswer(status, body, took, late_ms, connection.late, thrown)

    def close(self) -> None:
        """End the server that was started."""
        self._server.close()


class _Bounded:
    """One request with a deadline for all of it: a socket's own timeout begins again with every byte."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self.late = False
        self._connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
        self._timeout_s = timeout_s

    def post(self, path: str, body: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Status and body of the answer; raises what the connection raises, with `late` set past the deadline."""
        self._connection.connect()
        # The socket is kept here: the connection drops it at an answer with `Connection: close`.
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
    value = parse_value(raw)
    return value if isinstance(value, dict) else None


PROTOCOL = "signet-adapter/1"


@dataclass(slots=True)
class AdapterSession:
    """One session of the harness. `lines` are its transcript, `fresh` counts the turns since the last compaction.

    `reply` is the model's last.
    """

    agent: str | None
    project: str | None
    key: str = field(default_factory=lambda: str(uuid.uuid4()))
    lines: list[str] = field(default_factory=list)
    reply: str | None = None
    fresh: int = 0
    compacting: bool = False

    def params(self, *members: str, **more: Any) -> dict[str, Any]:
        """The parameters of a call: the session's own, then those of the method, without unknown ones."""
        known = {"sessionKey": self.key, "agentId": self.agent, "project": self.project}
        params = {**{name: known[name] for name in ("sessionKey", "agentId", *members)}, **more}
        return {name: value for name, value in params.items() if value is not None}


class HttpAdapter:
    """Performs steps by calling the adapter."""

    def __init__(self, options: Mapping[str, Any], peer: Peer) -> None:
        self._peer = peer
        self._paths: Mapping[str, str] = options.get("paths", {})
        daemon = os.environ.get("SIGNET_DAEMON_URL", "")
        self._server = AdapterServer(options.get("command", ()), options["url"], daemon)
        self._sessions: dict[str, AdapterSession] = {}
        self._calls: list[tuple[str, AdapterAnswer]] = []

    def about(self) -> Mapping[str, Any]:
        """The protocol of the adapter."""
        return {"adapter": PROTOCOL, "awaits_compaction": True}

    def perform(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        """Perform one step; the result has the outcome of each call."""
        performer = self._STEPS.get(str(step.get("step")))
        if performer is None:
            raise Skipped(f"{PROTOCOL} has no method for {step.get('step')}")
        session = self._session(step)
        result = performer(self, session, step)
        calls, self._calls = self._calls, []
        if calls and all(answer.absent for _, answer in calls):
            raise Skipped(f"the adapter serves no {' and no '.join(method for method, _ in calls)}")
        noted = [answer.to_json(method) for method, answer in calls]
        return {"session": step.get("session"), "key": session.key, **result, "calls": noted}

    def _session(self, step: Mapping[str, Any]) -> AdapterSession:
        name, kind = str(step.get("session")), step.get("step")
        if kind == "start":
            self._sessions[name] = AdapterSession(step.get("agent"), step.get("project"))
        elif kind == "resume" and name not in self._sessions:
            self._sessions[name] = AdapterSession(
                step.get("agent"), step.get("project"), str(step.get("key") or uuid.uuid4())
            )
        if name not in self._sessions:
            raise StepError(f"session {name!r} is not known: start it first")
        return self._sessions[name]

    def _call(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = self._server.call(self._paths.get(method, f"/{method}"), params)
        self._calls.append((method, answer))
        return answer.body

    def _start(self, session: AdapterSession, step: Mapping[str, Any]) -> Mapping[str, Any]:
        source = "resume" if step["step"] == "resume" else "startup"
        answer = self._call("onSessionStart", session.params("project", source=source))
        return {"injected": text_in(answer.get("inject"))}

    def _prompt(self, session: AdapterSession, step: Mapping[str, Any]) -> Mapping[str, Any]:
        text = str(step.get("text"))
        params = session.params("project", prompt=text, lastAssistantMessage=session.reply)
        answer = self._call("onUserPromptSubmit", params)
        self._peer.model_turn(step.get("session"))
        session.reply = str(step.get("reply") or "Understood.")
        session.lines += [_line("User", text), _line("Assistant", session.reply)]
        session.fresh += 1
        return {"turn": True, "injected": text_in(answer.get("inject"))}

    def _pre_compaction(self, session: AdapterSession, _step: Mapping[str, Any]) -> Mapping[str, Any]:
        if not session.fresh:
            raise Skipped("nothing was said since the last compaction, so the harness compacts nothing")
        session.compacting = True
        answer = self._call("onPreCompaction", session.params(messageCount=len(session.lines)))
        return {"text": answer.get("summaryPrompt") or ""}

    def _compaction_complete(self, session: AdapterSession, step: Mapping[str, Any]) -> Mapping[str, Any]:
        if not session.compacting:
            raise Skipped("no compaction is under way")
        session.compacting, session.fresh = False, 0
        self._call("onCompactionComplete", session.params("project", summary=str(step.get("summary") or "")))
        return {}

    def _compact(self, session: AdapterSession, step: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = self._pre_compaction(session, step)
        self._peer.model_turn(step.get("session"))
        return {**answer, **self._compaction_complete(session, step)}

    def _call_session_end(self, session: AdapterSession, reason: str) -> None:
        transcript = "\n".join(session.lines)
        self._call("onSessionEnd", session.params("project", reason=reason, transcript=transcript))

    def _clear(self, session: AdapterSession, _step: Mapping[str, Any]) -> Mapping[str, Any]:
        self._call_session_end(session, "clear")
        session.key, session.lines, session.reply = str(uuid.uuid4()), [], None
        session.fresh, session.compacting = 0, False
        answer = self._call("onSessionStart", session.params("project", source="clear"))
        return {"injected": text_in(answer.get("inject"))}

    def _end(self, session: AdapterSession, _step: Mapping[str, Any]) -> Mapping[str, Any]:
        self._call_session_end(session, "exit")
        return {"ended": True}

    _STEPS: ClassVar[Mapping[str, Callable[[HttpAdapter, AdapterSession, Mapping[str, Any]], Mapping[str, Any]]]] = {
        "start": _start,
        "resume": _start,
        "prompt": _prompt,
        "compact": _compact,
        "pre_compaction": _pre_compaction,
        "compaction_complete": _compaction_complete,
        "clear": _clear,
        "end": _end,
    }

    def flush(self) -> None:
        """Do nothing: the adapter answers when the work of a method is done, and reports no other work."""

    def close(self) -> None:
        """End the server that was started."""
        self._server.close()


def _line(role: str, text: str) -> str:
    """A text as one line: a second line could look like another speaker's."""
    words = text.replace("\n", " ")
    return f"{role}: {words}"


if __name__ == "__main__":
    Peer.play(HttpAdapter)
