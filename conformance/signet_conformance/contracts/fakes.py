"""A daemon without a socket: an httpx transport that keeps every request and answers as a test tells it to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence

import httpx

from signet_conformance.contracts.recording_daemon import DaemonScript, Request
from signet_reference_harness.channels import AgentOutput, Closing, UserTurn
from signet_reference_harness.messages import Message
from signet_reference_harness.providers.completion import CompletionChunk, CompletionOptions, CompletionResult
from signet_reference_harness.session.events import Event
from signet_reference_harness.session.watching import Publisher

ORIGIN = "http://daemon.invalid"


class DaemonTransport(DaemonScript, httpx.AsyncBaseTransport):
    """To be given as the `transport` of a client or a host, for any origin.

    Of the faults there is `reset`. While `away` is True every connection is refused, and counted in `refused`.
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
        # What the client asks of a transport: a request that was answered had been sent.
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
    """To be given as the `listener` of a turn: `events` as a stream would tell them, `messages` as they joined."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.messages: list[Message] = []
        super().__init__(self.events.append)

    def message(self, message: Message) -> None:
        """Keep it."""
        self.messages.append(message)


class RecordingChannel(Closing):
    """`outputs` holds what was sent. Turns come by :meth:`say`, and :meth:`close` ends it."""

    kind = "recording"

    def __init__(self, *texts: str) -> None:
        """`texts` have been said already."""
        super().__init__()
        self.outputs: list[AgentOutput] = []
        for text in texts:
            self.say(text)

    def say(self, text: str) -> None:
        """The other side says something."""
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

    `closed` tells whether its stream was closed.
    """

    id = "stream"

    def __init__(
        self, *chunks: CompletionChunk, error: BaseException | None = None, arrived: asyncio.Event | None = None
    ) -> None:
        self.chunks, self.error, self.arrived, self.closed = chunks, error, arrived, False

    async def complete(self, _messages: Sequence[Message], _options: CompletionOptions) -> CompletionResult:
        """Never asked for by the loop."""
        raise NotImplementedError

    async def stream(self, _messages: Sequence[Message], _options: CompletionOptions) -> AsyncIterator[CompletionChunk]:
        """The chunks, and then what was ordered."""
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
        """Always."""
        return True

    async def aclose(self) -> None:
        """Nothing to close."""
