"""A channel over HTTP, for a program in the place of a person.

    POST /turns    {"content": "…", "metadata": {…}}      202, and how many turns wait
    GET  /outputs  server-sent events: an output each, as JSON
    POST /stop     stops the answer that is being made
    POST /close    ends the conversation

Each request carries the bearer token: a client of this channel has the agent's tools, and they write files.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from signet_reference_harness.channels import AgentOutput, Closing, UserTurn, refusal_of
from signet_reference_harness.local_server import body_within, foreign
from signet_reference_harness.session.events import as_json
from signet_reference_harness.tools import ToolResult

LARGEST_BODY: Final = 4 * 1024 * 1024
HELD: Final = 1_024
"""How many outputs are queued for a reader before pieces of an answer are dropped."""


class HttpChannel(Closing):
    """The conversation of one agent; `app` serves it."""

    kind = "http"

    def __init__(self, token: str) -> None:
        super().__init__()
        self.interrupt: Callable[[], bool] = lambda: False
        """Stops the answer in progress; returns False without one."""
        self._token = token.encode()
        self.first_reader = asyncio.Event()
        """Set once a reader of the outputs connects."""
        self._readers: set[Reader] = set()
        self.on_close(self._finish)

    @property
    def app(self) -> ASGIApp:
        """The application that serves the channel."""
        return Starlette(
            routes=[
                Route("/turns", self._guard(self._turns), methods=["POST"]),
                Route("/outputs", self._guard(self._outputs), methods=["GET"]),
                Route("/stop", self._guard(self._stop), methods=["POST"]),
                Route("/close", self._guard(self._close), methods=["POST"]),
            ]
        )

    async def send(self, output: AgentOutput) -> None:
        """Send an output to all readers. A slow reader loses pieces of the answer, and learns how many."""
        members = _members(output)
        for reader in self._readers:
            reader.enqueue(members, droppable=output.streaming and not output.tool_results)

    def add_reader(self) -> Reader:
        """Add a reader of the outputs from here on."""
        reader = Reader()
        self._readers.add(reader)
        self.first_reader.set()
        return reader

    def _finish(self) -> None:
        for reader in self._readers:
            reader.end()

    def _guard(self, answer: Callable[[Request], Any]) -> Callable[[Request], Any]:
        async def answer_guarded(request: Request) -> Response:
            refusal = foreign(request)
            if refusal is not None:
                return JSONResponse({"error": refusal}, 403)
            given = request.headers.get("authorization", "").removeprefix("Bearer ").encode()
            if not hmac.compare_digest(given, self._token):
                return JSONResponse({"error": "the bearer token is missing or wrong"}, 401)
            if self.closed:
                return JSONResponse({"error": "the conversation is over"}, 409)
            response: Response = await answer(request)
            return response

        return answer_guarded

    async def _turns(self, request: Request) -> Response:
        body = await body_within(request, LARGEST_BODY)
        if body is None:
            return JSONResponse({"error": f"the body is larger than {LARGEST_BODY} bytes"}, 413)
        try:
            turn = msgspec.json.decode(body, type=UserTurn)
        except msgspec.MsgspecError as error:
            return JSONResponse({"error": f"the body: {error}"}, 400)
        refusal = refusal_of(turn)
        if refusal:
            return JSONResponse({"error": refusal}, 422)
        self.enqueue(turn)
        return JSONResponse({"waiting": self.waiting}, 202)

    async def _outputs(self, _request: Request) -> Response:
        reader = self.add_reader()

        async def lines() -> AsyncIterator[str]:
            try:
                yield ": the outputs from here on\n\n"
                while (output := await reader.take()) is not None:
                    yield f"data: {json.dumps(output)}\n\n"
            finally:
                self._readers.discard(reader)

        return StreamingResponse(lines(), media_type="text/event-stream", headers={"cache-control": "no-store"})

    async def _stop(self, _request: Request) -> Response:
        return JSONResponse({"stopped": self.interrupt()})

    async def _close(self, _request: Request) -> Response:
        self.close()
        return JSONResponse({"closed": True})


class Reader:
    """The outputs that a reader has not taken yet."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue()
        self._dropped = 0

    def enqueue(self, output: Mapping[str, Any], *, droppable: bool) -> None:
        """Queue an output, or count it as dropped if too many are queued."""
        if droppable and self._queue.qsize() >= HELD:
            self._dropped += 1
            return
        self._queue.put_nowait({**output, "dropped": self._dropped} if self._dropped else output)
        self._dropped = 0

    def end(self) -> None:
        """Note that nothing more comes."""
        self._queue.put_nowait(None)

    async def take(self) -> Mapping[str, Any] | None:
        """The next output; None after the last."""
        return await self._queue.get()


def _members(output: AgentOutput) -> Mapping[str, Any]:
    """The output as JSON, with the member names of the runtime's specification."""
    return {
        "content": output.content,
        "toolResults": [_result(each) for each in output.tool_results],
        "streaming": output.streaming,
        "error": output.error,
        "metadata": dict(output.metadata),
        "event": None if output.event is None else as_json(output.event),
    }


def _result(result: ToolResult) -> Mapping[str, Any]:
    outcome = {"content": result.content} if result.ok else {"error": result.error}
    return {"name": result.name, "ok": result.ok, **outcome}
