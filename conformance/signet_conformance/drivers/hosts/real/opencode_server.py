"""OpenCode: `opencode serve`, a server for each session, with requests over HTTP and a stream of events."""

from __future__ import annotations

import contextlib
import json
import re
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.real.conversation import Launch, ProcessConversation
from signet_conformance.drivers.hosts.real.process import LAST_S, ProgramProcess, deadline_in
from signet_conformance.drivers.hosts.real.refusals import ConnectorRefusedError, Refusal, is_of_the_kit
from signet_conformance.files.json_values import object_in

START_S = 200.0
IDLE_S = 60.0
"""How long OpenCode may take to report that a session is idle after a compaction, or that it is deleted."""
_PLUGINS_S = 1.0
"""Plugins learn of an end after the client does, and no event tells when they are done: they get this many seconds."""
_LISTENS = re.compile(r"listening on (http://\S+)")
_INVALID = re.compile(r"Configuration is invalid at (?P<file>\S+\.jsonc?)")
_COMPLAINS = "\N{DOWNWARDS ARROW WITH TIP RIGHTWARDS}"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_MODEL = {"providerID": "scripted", "modelID": "scripted"}
_NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""The server is on loopback, and loading the certificate store takes each client 20 ms."""


class OpencodeServer(ProcessConversation[ProgramProcess]):
    """A session of OpenCode. When it ends for good it is deleted: the program reports no other end."""

    title = "OpenCode"

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch)
        self._http: httpx.Client | None = None
        self._idle = threading.Event()
        self._idle.set()
        self._idle_at = -_PLUGINS_S
        self._busy = False
        self._summarized = threading.Event()
        self._summarized.set()
        self._connected = threading.Event()
        self._deleted = threading.Event()

    def open(self) -> None:
        """Start the server, and make a session."""
        self._start()
        self._id = str(self._ask("POST", "/session", {})["id"])

    def resume(self) -> None:
        """Start the server; the session is still there."""
        self._start()
        self._ask("GET", f"/session/{self._id}")

    def say(self, text: str) -> None:
        """Prompt it.

        Plugins learn of the end of a turn later than the client. So wait a moment first, as a reading user would:
        otherwise the prompt might reach them before the end.
        """
        time.sleep(max(0.0, self._idle_at + _PLUGINS_S - time.monotonic()))
        self._idle.clear()
        body = {"model": _MODEL, "parts": [{"type": "text", "text": text}]}
        self._ask("POST", f"/session/{self._id}/prompt_async", body)

    def is_over(self) -> bool:
        """Whether the session was reported idle; a compaction is answered too, before that or after it."""
        if self._process is not None and self._process.has_ended and not self._idle.is_set():
            raise self._process.failure("OpenCode has ended")
        return self._idle.is_set() and self._summarized.is_set()

    def compact(self) -> None:
        """Let the server summarize the session, in a thread, since it answers only when that is done.

        The event that the session is idle comes separately: after the answer, it would end the turn that follows.
        """
        http = self._client
        self._idle.clear()
        self._summarized.clear()

        def summarize() -> None:
            done = False
            with contextlib.suppress(httpx.HTTPError):
                done = http.post(f"/session/{self._id}/summarize", json=_MODEL, timeout=120).is_success
            if not (done and self._idle.wait(IDLE_S)):
                self._idle.set()
            self._summarized.set()

        threading.Thread(target=summarize, daemon=True).start()

    def clear(self) -> None:
        """Begin a new session in the same server."""
        self._id = str(self._ask("POST", "/session", {})["id"])

    def end(self, *, for_good: bool = True) -> None:
        """Delete the session, unless it is resumed later, and end the server."""
        process = self._process
        if process is None:
            return
        try:
            began = time.monotonic()
            if for_good:
                self._ask("DELETE", f"/session/{self._id}")
                self._deleted.wait(IDLE_S)
            # Plugins learn of a deletion, and of the end of a turn, after the answer, and nothing shows when they are
            # done. So they get a second, or as long as the deletion took on a busy machine.
            time.sleep(max(_PLUGINS_S, time.monotonic() - began))
        finally:
            if self._http is not None:
                self._http.close()
            self._http = self._process = None
            self._idle.set()
            process.end(0.0)

    @property
    def _client(self) -> httpx.Client:
        if self._http is None:
            raise StepError("no session is open: start it first")
        return self._http

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the server. Raises StepError when it refuses or does not answer, EndedError if it has ended."""
        try:
            answer = self._client.request(method, path, json=body).raise_for_status()
            return answer.json() if answer.content else None
        except (httpx.HTTPError, ValueError) as error:
            if self._process is not None and self._process.wait(LAST_S):
                raise self._process.failure("OpenCode has ended") from None
            raise StepError(f"{method} {path} failed in OpenCode: {error or type(error).__name__}") from None

    def _start(self) -> None:
        launch = self._launch
        command = [*launch.command, "serve", "--hostname", "127.0.0.1", "--port", "0"]
        self._connected.clear()
        self._process = process = ProgramProcess(command, launch.env, launch.cwd)
        deadline = deadline_in(START_S)
        while not process.has_ended and time.monotonic() < deadline:
            if address := next((listening[1] for word in process.words if (listening := _LISTENS.search(word))), None):
                self._http = httpx.Client(base_url=address, trust_env=False, timeout=60.0, verify=_NO_CERTIFICATES)
                threading.Thread(target=self._follow_events, args=(address,), daemon=True).start()
                self._connected.wait(START_S)
                return
            time.sleep(0.05)
        if not process.has_ended:
            raise StepError(f"OpenCode did not listen within {START_S:g} s{process.last_words}")
        failure = process.failure("OpenCode ended before it listened")
        raise ConnectorRefusedError(str(failure)) if self._refuses(process.words) else failure

    def _refuses(self, words: Iterable[str]) -> bool:
        """Whether it ended because of an entry of its configuration that the connector's installer wrote."""
        file, complaints = "", []
        for word in (_COLOURS.sub("", each).strip() for each in words):
            if (invalid := _INVALID.search(word)) is not None:
                file = invalid["file"]
            elif file and word.startswith(_COMPLAINS):
                complaints.append(word.removeprefix(_COMPLAINS).strip())
        home, settings = Path(self._launch.env["HOME"]), self._launch.settings
        of_others = [each for each in complaints if not is_of_the_kit(settings, home, file, _member_in(each), each)]
        self._refused += [Refusal(file, each) for each in of_others]
        return bool(of_others)

    def _follow_events(self, address: str) -> None:
        """Handle the server's events, in a thread of its own."""
        events = f"{address}/event"
        with (
            contextlib.suppress(httpx.HTTPError),
            httpx.Client(trust_env=False, timeout=None, verify=_NO_CERTIFICATES) as http,  # noqa: S113 - it ends with the server
            http.stream("GET", events) as stream,
        ):
            for line in _lines_of(stream.iter_bytes()):
                if line.startswith(b"data:"):
                    self._hear(json.loads(line.removeprefix(b"data:")))

    def _hear(self, event: Mapping[str, Any]) -> None:
        about = object_in(event.get("properties"))
        match event.get("type"):
            case "server.connected":
                self._connected.set()
            case "session.status" if about.get("sessionID") == self._id:
                self._busy = object_in(about.get("status")).get("type") == "busy"
            case "session.idle" if about.get("sessionID") == self._id:
                self._end_turn()
            case "session.deleted":
                self._deleted.set()
            case "session.error":
                self._words.append(str(about.get("error"))[:300])
                # This ends a turn that a plugin lost before it began; any other turn has an end of its own.
                if about.get("sessionID") == self._id and not self._busy:
                    self._end_turn()

    def _end_turn(self) -> None:
        self._idle_at = time.monotonic()
        self._idle.set()


def _lines_of(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield whole lines, ended by line feeds only: httpx also splits at U+2028 and the like, which JSON may hold."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines


def _member_in(complaint: str) -> str:
    """The path of the member that is wrong: the last word, unless a quotation ends there."""
    last = complaint.rpartition(" ")[2]
    return "" if set(last) & set("\"'") else last
