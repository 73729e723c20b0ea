"""A daemon without a socket: an httpx transport that keeps every request and answers as a test tells it to."""

from __future__ import annotations

import json

import httpx

from signet_conformance.contracts.recording_daemon import DaemonScript, Request

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
