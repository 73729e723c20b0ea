"""Shared by the suites: failures, and daemons for tests, on a real socket or as an httpx transport.

The daemons keep every request, and give the answers that a test sets.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import socketserver
import struct
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Coroutine, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NoReturn, TypeVar
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from signet_reference_harness.channels import AgentOutput, Closing, UserTurn
from signet_reference_harness.messages import Message
from signet_reference_harness.providers import CompletionChunk, CompletionOptions, CompletionResult
from signet_reference_harness.session.events import Event
from signet_reference_harness.session.watching import Publisher

Result = TypeVar("Result")
LONGEST_S = 60.0


def demand(fact: object, otherwise: str) -> None:
    """Fail the test with `otherwise` unless `fact` holds."""
    if not fact:
        pytest.fail(otherwise, pytrace=False)


def skip_unless_overridden(what: str) -> NoReturn:
    """Skip a test that needs a method which the author has not overridden."""
    pytest.skip(f"the suite is not told how: override {what}")


def run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Run `work` and return its result. The test fails if it takes longer than a minute."""
    try:
        return asyncio.run(asyncio.wait_for(work, LONGEST_S))
    except TimeoutError:
        pytest.fail(f"it was not done within {LONGEST_S:g} s", pytrace=False)


START = "/api/hooks/session-start"
PROMPT = "/api/hooks/user-prompt-submit"
END = "/api/hooks/session-end"
PRE = "/api/hooks/pre-compaction"
COMPLETE = "/api/hooks/compaction-complete"
CHECKPOINT = "/api/hooks/session-checkpoint-extract"
REMEMBER = "/api/hooks/remember"
RECALL = "/api/memory/recall"
MODIFY = "/api/memory/modify"
FORGET = "/api/memory/forget"
EXEC = "/api/secrets/exec"
REGISTRY = "/api/marketplace/mcp"

USUAL: dict[str, dict[str, Any]] = {
    "/health": {"status": "healthy"},
    START: {"inject": "", "memories": [], "identity": {"name": "Atlas"}},
    PROMPT: {"inject": "", "memoryCount": 0, "sessionKnown": True},
    END: {"memoriesSaved": 0, "queued": False},
    PRE: {"summaryPrompt": "Summarise.", "guidelines": ""},
    COMPLETE: {"success": True, "memoryId": None},
    CHECKPOINT: {"skipped": True},
    REMEMBER: {"id": "m-1"},
    RECALL: {"results": []},
    MODIFY: {"total": 1, "updated": 1, "results": []},
    FORGET: {"mode": "execute", "requested": 1, "deleted": 1, "results": []},
    EXEC: {"id": "job-1", "status": "running"},
    REGISTRY: {"servers": [], "count": 0},
}


@dataclass(frozen=True)
class Request:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Answer:
    """The reaction to a request: an answer, or with `fault` one of reset, hang, drip, cut."""

    body: Any = None
    status: int = 200
    text: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    fault: str = ""


class DaemonScript:
    """A fake daemon: its requests so far, and its answers, which are the USUAL bodies unless a test replaces them."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answers: defaultdict[str, list[Answer]] = defaultdict(list)
        """By path, the answers to the next requests, one each."""
        self.always: dict[str, Answer] = {}
        """By path, the answer to every request after those."""

    def paths(self) -> list[str]:
        """The last path segment of every request but /health and the registry's listing, in order of arrival."""
        paths = [request.path for request in self.requests if request.path not in ("/health", REGISTRY)]
        return [path.rsplit("/", 1)[-1] for path in paths]

    def bodies(self, path: str) -> list[Any]:
        """The bodies sent to a path, in order of arrival."""
        return [request.body for request in self.requests if request.path == path]

    def answer_to(self, path: str) -> Answer:
        """Return the answer to the next request to a path."""
        if self.answers[path]:
            return self.answers[path].pop(0)
        if path in self.always:
            return self.always[path]
        if path in USUAL:
            return Answer(USUAL[path], 202 if path == EXEC else 200)
        return Answer({"error": "not found"}, 404)


class RecordingDaemon(DaemonScript):
    """A daemon on a port of its own; end it with :meth:`stop`."""

    def __init__(self) -> None:
        super().__init__()
        self.left = threading.Event()
        """Set when a client disconnects during an answer with the fault drip or hang."""
        self.over = threading.Event()
        self._server = self._listen(0)
        self.port = int(self._server.server_address[1])
        self.origin = f"http://127.0.0.1:{self.port}"

    def refuse(self) -> None:
        """Stop listening: connections are refused from now on."""
        self._server.shutdown()
        self._server.server_close()

    def listen_again(self) -> None:
        """Listen on the same port again."""
        self._server = self._listen(self.port)

    def stop(self) -> None:
        """End every open connection, and stop."""
        self.over.set()
        self.refuse()

    def _listen(self, port: int) -> ThreadingHTTPServer:
        daemon = self

        class BoundHandler(_Handler):
            recorder = daemon

        server = _Server(("127.0.0.1", port), BoundHandler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return server


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def server_bind(self) -> None:
        # The usual way looks up the machine's name, which can take long without a resolver.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", self.server_address[1]

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that disconnect: the tests are about them."""

    def server_close(self) -> None:
        super().server_close()
        for handler in list(_Handler.connected):
            if handler.server is self:
                with contextlib.suppress(OSError):
                    handler.connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    recorder: RecordingDaemon
    connected: ClassVar[set[_Handler]] = set()

    def setup(self) -> None:
        super().setup()
        self.connected.add(self)

    def finish(self) -> None:
        self.connected.discard(self)
        super().finish()

    def log_message(self, *args: object) -> None:
        """Print nothing."""

    def _take(self) -> None:
        parts = urlsplit(self.path)
        content = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.recorder.requests.append(
            Request(
                self.command,
                parts.path,
                dict(parse_qsl(parts.query)),
                {name.lower(): value for name, value in self.headers.items()},
                json.loads(content) if content else None,
            )
        )
        answer = self.recorder.answer_to(parts.path)
        if answer.fault:
            self._fail(answer)
            return
        text = answer.text if answer.text is not None else json.dumps(answer.body)
        self._begin(answer, len(text.encode()))
        self.wfile.write(text.encode())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _take  # noqa: N815 - http.server's names

    def _begin(self, answer: Answer, length: int) -> None:
        self.send_response(answer.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(length))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _fail(self, answer: Answer) -> None:
        self.close_connection = True
        if answer.fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        elif answer.fault == "cut":
            self._begin(answer, 100)
            self.wfile.write(b'{"inject":"')
        elif answer.fault == "hang":
            self._wait_for_client()
        elif answer.fault == "drip":
            self._begin(answer, 1_000_000)
            try:
                while not self.recorder.over.wait(0.02):
                    self.wfile.write(b" ")
            except OSError:
                self.recorder.left.set()

    def _wait_for_client(self) -> None:
        self.connection.settimeout(0.02)
        while not self.recorder.over.is_set():
            try:
                if not self.connection.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        self.recorder.left.set()


class DaemonTransport(DaemonScript, httpx.AsyncBaseTransport):
    """Pass it as the `transport` of a client or a host, for any origin.

    Any fault of an answer is a reset. While `away` is True every connection is refused, and counted in `refused`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.away = False
        self.refused = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        if self.away:
            self.refused += 1
            raise httpx.ConnectError("connection refused", request=request)
        content = await request.aread()
        # The client learns by these events of its transport that the request was sent.
        trace = request.extensions.get("trace")
        if trace is not None:
            await trace("connection.connect_tcp.complete", {})
            await trace("http11.send_request_headers.started", {})
        self.requests.append(
            Request(
                request.method,
                request.url.path,
                dict(request.url.params),
                dict(request.headers),
                json.loads(content) if content else None,
            )
        )
        answer = self.answer_to(request.url.path)
        if answer.fault:
            raise httpx.ReadError(f"fault: {answer.fault}", request=request)
        text = answer.text if answer.text is not None else json.dumps(answer.body)
        headers = {"content-type": "application/json", **answer.headers}
        return httpx.Response(answer.status, headers=headers, stream=httpx.ByteStream(text.encode()))


class EventRecorder(Publisher):
    """Pass it as the `listener` of a turn: it keeps the `events` of the stream, and the `messages`, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.messages: list[Message] = []
        super().__init__(self.events.append)

    def message(self, message: Message) -> None:
        """Keep it."""
        self.messages.append(message)


class RecordingChannel(Closing):
    """Keeps what was sent in `outputs`. :meth:`say` adds a turn, and :meth:`close` ends the channel."""

    kind = "recording"

    def __init__(self, *texts: str) -> None:
        """`texts` are the first turns."""
        super().__init__()
        self.outputs: list[AgentOutput] = []
        for text in texts:
            self.say(text)

    def say(self, text: str) -> None:
        """Add a turn of the other side."""
        self.enqueue(UserTurn(content=text))

    async def send(self, output: AgentOutput) -> None:
        """Keep it, unless the channel is closed."""
        if not self.closed:
            self.outputs.append(output)

    @property
    def shown(self) -> str:
        """Everything that was sent: the pieces of answers, and errors."""
        return "".join(output.content if output.streaming else f"{output.error}\n" for output in self.outputs)


class StreamingProvider:
    """Yields `chunks`, then raises `error`, or sets `arrived` and hangs, or does nothing more.

    `closed`: whether its stream was closed.
    """

    id = "stream"

    def __init__(
        self, *chunks: CompletionChunk, error: BaseException | None = None, arrived: asyncio.Event | None = None
    ) -> None:
        self.chunks, self.error, self.arrived, self.closed = chunks, error, arrived, False

    async def complete(self, _messages: Sequence[Message], _options: CompletionOptions) -> CompletionResult:
        """Raise: the loop never calls it."""
        raise NotImplementedError("the loop asks for a stream")

    async def stream(self, _messages: Sequence[Message], _options: CompletionOptions) -> AsyncIterator[CompletionChunk]:
        """Yield the chunks; then raise, hang or end."""
        try:
            for chunk in self.chunks:
                yield chunk
            if self.error is not None:
                raise self.error
            if self.arrived is not None:
                self.arrived.set()
                await asyncio.Event().wait()
        finally:
            self.closed = True

    async def available(self) -> bool:
        """Return True."""
        return True

    async def aclose(self) -> None:
        """Do nothing."""
